#include "trace/spool_release.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pasta::trace {
namespace {

using namespace spool;

constexpr std::size_t kPageBytes = 4096;
// 1 MiB: holes are few and large.
constexpr std::uint64_t kStretchCells = std::uint64_t{1} << 14;

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Status refused(const std::string& path) {
  const ErrorCode code = errno == EOPNOTSUPP ? ErrorCode::kUnsupported : ErrorCode::kIo;
  return fail(code, fmt::format("{}: {}", path, std::strerror(errno)));
}

bool make_hole(int file, std::uint64_t from, std::uint64_t bytes) {
  return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                   static_cast<off_t>(bytes)) == 0;
}

bool write_all(int file, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = write(file, from, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    from += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
  return true;
}

std::uint64_t cells_of_text(const Event& cell) {
  StringCell text;
  std::memcpy(&text, &cell, sizeof text);
  return (std::min(text.bytes, kMaxTextBytes) + kCellBytes - 1) / kCellBytes;
}

}  // namespace

Result<SpoolRelease> SpoolRelease::open(const std::string& folder) {
  auto page = MappedRunPage::open(folder);
  if (!page) return tl::unexpected(std::move(page).error());
  return SpoolRelease(folder, std::move(*page));
}

void SpoolRelease::read(const std::string& name, std::uint64_t first,
                        std::span<const Event> cells) {
  Lane& lane = lanes_[name];
  lane.read = first;
  for (const Event& cell : cells) {
    if (lane.text_cells > 0) {
      --lane.text_cells;
      if (lane.text_stays) lane.definitions.back().cells.push_back(cell);
    } else if (static_cast<unsigned>(cell.kind) < kKindCount) {
      lane.now.events += cell.kind == Kind::kGap ? cell.gap.lost : 1;
      lane.now.last_ns = std::max(lane.now.last_ns, cell.end_ns);
      lane.event_follows = false;
    } else {
      const auto kind = static_cast<CellKind>(cell.kind);
      const bool has_text = kind == CellKind::kString || kind == CellKind::kBlob;
      if (has_text) lane.text_cells = cells_of_text(cell);
      // The bytes of an event go with it. What a note counts is counted by each who reads all.
      lane.event_follows = lane.event_follows || kind == CellKind::kBlob;
      lane.text_stays = kind != CellKind::kBlob;
      if (lane.text_stays) lane.definitions.push_back({lane.read, {cell}});
    }
    ++lane.read;
    if (lane.text_cells == 0 && !lane.event_follows && lane.read - lane.begin >= kStretchCells) {
      lane.now.end = lane.begin = lane.read;
      lane.whole.push_back(std::exchange(lane.now, {}));
    }
  }
}

Status SpoolRelease::can_make_holes() const {
  const std::string path = folder_ + "/hole";
  const File file(path, O_RDWR | O_CREAT | O_EXCL);
  if (file.get() < 0) return refused(path);
  const bool could = ftruncate(file.get(), kPageBytes) == 0 && make_hole(file.get(), 0, kPageBytes);
  Status status = could ? Status() : refused(path);
  unlink(path.c_str());
  return status;
}

Status SpoolRelease::look(SpoolFolder& folder, std::int64_t before_ns) {
  const std::uint64_t most = page_->limit_bytes / 2;
  if (page_->used_bytes.load() <= most) return {};
  if (!std::exchange(tried_, true)) PASTA_TRY(can_make_holes());
  while (page_->used_bytes.load() > most) {
    Lane* oldest = nullptr;
    const SpoolLane* of = nullptr;
    for (auto& [name, lane] : lanes_) {
      // What may still be in the window takes no room of its own.
      if (lane.whole.empty() || lane.whole.front().last_ns >= before_ns ||
          lane.read < lane.whole.front().end + kWindowCells) {
        continue;
      }
      const auto known = folder.lanes().find(name);
      if (known == folder.lanes().end()) continue;
      if (oldest != nullptr && oldest->whole.front().last_ns <= lane.whole.front().last_ns)
        continue;
      oldest = &lane;
      of = &known->second;
    }
    if (oldest == nullptr) break;
    PASTA_TRY(release(*of, *oldest));
  }
  return {};
}

Status SpoolRelease::release(const SpoolLane& of, Lane& lane) {
  const Stretch stretch = lane.whole.front();
  lane.whole.pop_front();
  const File file(of.path, O_RDWR);
  if (file.get() < 0) return refused(of.path);
  const std::string path = before_path(of.path);
  const File before(path, O_WRONLY | O_CREAT | O_APPEND);
  while (!lane.definitions.empty() && lane.definitions.front().cell < stretch.end) {
    const Definition& definition = lane.definitions.front();
    const BeforeHead head = {definition.cell, definition.cells.size()};
    const std::size_t bytes = definition.cells.size() * kCellBytes;
    if (before.get() < 0 || !write_all(before.get(), &head, sizeof head) ||
        !write_all(before.get(), definition.cells.data(), bytes)) {
      return refused(path);
    }
    page_->used_bytes.fetch_add(sizeof head + bytes);
    lane.definitions.pop_front();
  }
  // In this order: nobody may find it missing and not told.
  page_.keeps_from(stretch.last_ns + 1);
  page_->let_go.fetch_add(stretch.events);
  if (pwrite(file.get(), &stretch.end, sizeof stretch.end, offsetof(LanePage, gone)) !=
      sizeof stretch.end) {
    return refused(of.path);
  }
  const std::uint64_t end = stretch.end * kCellBytes / kPageBytes * kPageBytes;
  constexpr std::uint64_t kCells = kLanePageBytes + kWindowBytes;
  static_assert(kCells % kPageBytes == 0);
  if (!make_hole(file.get(), kCells + lane.released, end - lane.released)) return refused(of.path);
  page_->used_bytes.fetch_sub(end - lane.released);
  lane.released = end;
  return {};
}

}  // namespace pasta::trace
