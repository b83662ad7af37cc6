#include "trace/spool_keeper.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "pasta/quality.h"

namespace pasta::trace {

using namespace spool;

SpoolKeeper::SpoolKeeper(SpoolFolder folder, MappedRunPage page, Options options)
    : folder_(std::move(folder)), page_(std::move(page)), options_(options) {}

Result<SpoolKeeper> SpoolKeeper::open(const std::string& folder, Options options) {
  auto opened = SpoolFolder::open(folder);
  if (!opened) return tl::unexpected(std::move(opened).error());
  auto page = MappedRunPage::open(folder);
  if (!page) return tl::unexpected(std::move(page).error());
  return SpoolKeeper(std::move(*opened), std::move(*page), options);
}

SpoolKeeper::Whole SpoolKeeper::scan(SpoolLane& lane) const {
  // Ranges that are open in a file to which nothing more comes end with it.
  Whole whole{.events = lane.dropped + lane.open.size()};
  std::uint64_t text_cells = 0;
  for (auto cells = folder_.read(lane); !cells.empty(); cells = folder_.read(lane)) {
    for (const Event& cell : cells) {
      if (text_cells > 0) {
        --text_cells;
      } else if (static_cast<CellKind>(cell.kind) == CellKind::kString) {
        StringCell text;
        std::memcpy(&text, &cell, sizeof text);
        text_cells = (std::min(text.bytes, kMaxTextBytes) + kCellBytes - 1) / kCellBytes;
      } else if (static_cast<CellKind>(cell.kind) == CellKind::kNote) {
        NoteCell note;
        std::memcpy(&note, &cell, sizeof note);
        const auto reason = static_cast<Reason>(note.reason);
        if (reason < Reason::kCount && reason_info(reason).severity == Severity::kDropped) {
          whole.events += note.count;
        }
      } else if (static_cast<unsigned>(cell.kind) < kKindCount) {
        whole.events += cell.kind == Kind::kGap ? cell.gap.lost : 1;
        whole.last_ns = std::max(whole.last_ns, cell.end_ns);
      }
    }
  }
  return whole;
}

void SpoolKeeper::let_go(std::map<std::string, SpoolLane>::iterator lane, const Whole& whole) {
  // The thread that wrote it may have taken it away, and raise this too.
  page_.keeps_from(whole.last_ns + 1);
  whole_.erase(lane->first);
  page_->used_bytes.fetch_sub(folder_.remove(lane, [&] { page_->let_go.fetch_add(whole.events); }));
}

// Those that ended earlier and have no files any more.
void SpoolKeeper::let_go_of_processes(std::int64_t oldest_ns) {
  std::set<std::uint32_t> of_lanes;
  for (const auto& [name, lane] : folder_.lanes()) of_lanes.insert(lane.process);
  const auto& processes = folder_.processes();
  for (auto next = processes.begin(); next != processes.end();) {
    const auto known = next++;
    const SpoolProcess& process = known->second;
    if (process.alive || process.process == folder_.run().program ||
        of_lanes.contains(process.number) ||
        (process.exited ? process.end_ns : process.start_ns) >= oldest_ns) {
      continue;
    }
    page_->let_go.fetch_add(process.dropped);
    page_->used_bytes.fetch_sub(folder_.remove(known));
  }
}

Status SpoolKeeper::look() {
  const auto now = folder_.refresh();
  if (!now) return tl::unexpected(now.error());
  auto& lanes = folder_.lanes();
  std::vector<std::pair<std::int64_t, std::string>> by_age;
  for (auto& [name, lane] : lanes) {
    if (!lane.final || !lane.started.empty()) continue;
    const auto [known, is_new] = whole_.try_emplace(name);
    if (is_new) known->second = scan(lane);
    by_age.emplace_back(known->second.last_ns, name);
  }
  std::sort(by_age.begin(), by_age.end());
  const std::int64_t oldest_ns = std::max<std::int64_t>(*now - options_.keep_ns, 0);
  const std::uint64_t most = options_.keep_bytes / 4 * 3;
  for (const auto& [last_ns, name] : by_age) {
    if (last_ns >= oldest_ns && page_->used_bytes.load() <= most) break;
    let_go(lanes.find(name), Whole(whole_.at(name)));
  }
  let_go_of_processes(std::max(oldest_ns, page_->kept_from_ns.load()));
  return {};
}

}  // namespace pasta::trace
