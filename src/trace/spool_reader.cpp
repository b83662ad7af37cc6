#include "trace/spool_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "trace/barrier.h"
#include "trace/tick_clock.h"

namespace pasta::trace {
namespace {

using namespace spool;

constexpr std::size_t kCellsAtOnce = 4096;

// Bytes of the front of a file; fewer where it ends. Nothing when it cannot be opened.
std::optional<std::size_t> read_at(const std::string& path, std::uint64_t offset, void* to,
                                   std::size_t size) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(file, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  close(file);
  return done;
}

// A page of the folder, copied: what is shared cannot change while it is looked at.
template <class Page>
std::unique_ptr<Page> read_page(const std::string& path, std::uint64_t magic) {
  auto page = std::make_unique<Page>();
  const auto size = read_at(path, 0, page.get(), sizeof(Page));
  if (!size || *size < sizeof(Page) || page->magic.load() != magic || page->version != kVersion) {
    return nullptr;
  }
  return page;
}

// What ids of processes mean to us, as ProcessPage::namespace_id says it.
std::uint64_t own_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// A process id can come again; with the time it started at it is unique since the system's start.
bool is_alive(std::int32_t process, std::uint64_t started_ticks) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return false;
  std::size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size()) return false;
  const char state = text[at + 2];
  std::uint64_t threads = 0, ticks = 0;
  for (int field = 2; field < 22; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return false;
    const char* from = text.data() + at + 1;
    if (field + 1 == 20) std::from_chars(from, text.data() + text.size(), threads);
    if (field + 1 == 22) std::from_chars(from, text.data() + text.size(), ticks);
  }
  if (state == 'X' || ticks != started_ticks) return false;
  // The first thread may have ended and others live on.
  return state != 'Z' || threads > 1;
}

std::string as_command(std::string_view arguments) {
  std::string command;
  while (!arguments.empty()) {
    const std::size_t end = std::min(arguments.find('\0'), arguments.size());
    const std::string_view word = arguments.substr(0, end);
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_of(" \t\n\"'\\$`*?&|;<>()#") == std::string_view::npos) {
      command += word;
    } else {
      command += '\'';
      for (const char letter : word)
        command += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
      command += '\'';
    }
    arguments.remove_prefix(std::min(end + 1, arguments.size()));
  }
  return command;
}

std::string text_of(const char* text, std::size_t size) { return {text, strnlen(text, size)}; }

// Gives its size.
std::uint64_t remove_file(const std::string& path) {
  struct stat status {};
  const bool known = stat(path.c_str(), &status) == 0;
  return unlink(path.c_str()) == 0 && known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// A folder may hold anything. Times within these bounds can be added to an epoch within them.
constexpr std::int64_t kLatestNs = std::numeric_limits<std::int64_t>::max() / 2;
std::int64_t sound(std::int64_t ns) { return std::clamp(ns, std::int64_t{0}, kLatestNs); }
std::int64_t sound_hold(std::int64_t ns) { return ns == kNoHold ? ns : sound(ns); }

}  // namespace

std::string before_path(const std::string& lane_path) {
  const std::string_view stem(lane_path.data(), lane_path.size() - std::strlen(kLaneEnding));
  return fmt::format("{}{}", stem, kBeforeEnding);
}

void allow_what_is_quick(RunPage& run) {
  // Ticks that the system keeps time by are the same on all cores, and always as fast.
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  run.ticks = file >> source && source == "tsc" ? 1 : 0;
  run.barriers = make_all_pass_a_barrier() ? 1 : 0;
}

bool SpoolFolder::recognise(const std::string& path) {
  return read_page<RunPage>(path + '/' + kRunFile, kRunMagic) != nullptr;
}

Result<SpoolFolder> SpoolFolder::open(std::string path) {
  SpoolFolder folder(std::move(path));
  PASTA_TRY(folder.read_run());
  return folder;
}

Status SpoolFolder::read_run() {
  const std::string path = path_ + '/' + kRunFile;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return fail(
        errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
        fmt::format("{}: {}; the folder of a run has such a file", path, std::strerror(errno)));
  }
  const auto page = read_page<RunPage>(path, kRunMagic);
  if (page == nullptr) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: not of a run that this version can read", path));
  }
  if (page->epoch_ns < -kLatestNs || page->epoch_ns > kLatestNs) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: the clock of the run is not sound", path));
  }
  run_.start_ns = sound(page->start_ns);
  run_.epoch_ns = page->epoch_ns;
  run_.dropped = page->dropped.load();
  run_.program = page->program;
  run_.rank = page->rank;
  run_.world_size = page->world_size;
  run_.host = text_of(page->host, sizeof page->host);
  run_.keep = text_of(page->keep, sizeof page->keep);
  run_.kept_from_ns = sound(page->kept_from_ns.load());
  run_.let_go = page->let_go.load();
  run_.capture = text_of(page->capture, sizeof page->capture);
  run_.capture_by = page->capture_by;
  run_.captured = page->captured.load();
  run_.iterations = page->iterations.load();
  run_.over = page->over.load() != 0;
  if (run_.over) {
    run_.end_ns = sound(page->end_ns);
    run_.wait_status = page->wait_status;
  }
  return {};
}

Status SpoolFolder::refresh_let_go() {
  const std::string path = path_ + '/' + kRunFile;
  const auto page = read_page<RunPage>(path, kRunMagic);
  if (page == nullptr) return fail(ErrorCode::kNotFound, fmt::format("{}: is gone", path));
  run_.kept_from_ns = sound(page->kept_from_ns.load());
  run_.let_go = page->let_go.load();
  return {};
}

template <class Page>
std::unique_ptr<Page> SpoolFolder::read_once_made(const std::string& path,
                                                  std::uint64_t page_magic) {
  auto page = read_page<Page>(path, page_magic);
  if (page != nullptr) return page;
  std::uint64_t magic = 0;
  if (read_at(path, 0, &magic, sizeof magic) && magic == 0) return nullptr;
  // It may have been made between the two looks.
  page = read_page<Page>(path, page_magic);
  if (page == nullptr) unreadable_.push_back(path);
  return page;
}

void SpoolFolder::add_process(const std::string& name, std::uint32_t number) {
  const std::string path = path_ + '/' + name;
  const auto page = read_once_made<ProcessPage>(path, kProcessMagic);
  if (page == nullptr) return;
  SpoolProcess& process = processes_[number];
  process.number = number;
  process.process = page->process;
  process.parent = page->parent;
  process.rank = page->rank;
  process.world_size = page->world_size;
  process.forked = page->forked != 0;
  process.started_ticks = page->started_ticks;
  process.start_ns = sound(page->start_ns);
  process.name = text_of(page->name, sizeof page->name);
  const std::size_t command = std::min<std::size_t>(page->command_bytes, sizeof page->command);
  process.command = as_command({page->command, command});
  process.command_cut = command == sizeof page->command;
  process.alive = true;
  process.alive_known =
      page->namespace_id != 0 && page->namespace_id == own_namespace() && page->started_ticks != 0;
  // Others may be images of the same process, seen in any order.
  for (auto& [other, image] : processes_) {
    if (other == number || image.process != process.process ||
        image.started_ticks != process.started_ticks) {
      continue;
    }
    SpoolProcess& older = other < number ? image : process;
    const SpoolProcess& newer = other < number ? process : image;
    refresh_process(older);
    older.alive = false;
    older.alive_known = true;
    if (older.replaced_ns == 0 || newer.start_ns < older.replaced_ns) {
      older.replaced_ns = newer.start_ns;
    }
  }
}

void SpoolFolder::refresh_process(SpoolProcess& process) {
  if (!process.alive) return;
  // Before its page: what it has said by its end is in there.
  process.alive = !process.alive_known || is_alive(process.process, process.started_ticks);
  const auto page = read_page<ProcessPage>(
      fmt::format("{}/{}{}", path_, process.number, kProcessEnding), kProcessMagic);
  if (page == nullptr) return;
  process.dropped = page->dropped.load();
  process.unmatched = page->unmatched.load();
  // Before the lanes are looked at: what is no longer under way is in them.
  process.hold_ns = sound_hold(page->hold_ns.load());
  process.under_way = page->under_way.load();
  if (page->ending.load() != Ending::kExit) return;
  process.exited = true;
  process.end_ns = sound(page->end_ns.load());
  process.status = page->status.load();
}

bool SpoolFolder::refresh_holds(const std::string& name) {
  const std::string path = path_ + '/' + name;
  const auto known = lanes_.find(name);
  auto page = known != lanes_.end() ? read_page<LanePage>(path, kLaneMagic)
                                    : read_once_made<LanePage>(path, kLaneMagic);
  const bool retired = page != nullptr && page->retired.load() != 0;
  // What it shows was so before it retired, but may not have been when it was copied.
  if (retired) page = read_page<LanePage>(path, kLaneMagic);
  if (page == nullptr) {
    if (known != lanes_.end() || retired) unreadable_.push_back(path);
    return false;
  }
  SpoolLane& lane = known != lanes_.end() ? known->second : lanes_[name];
  lane.path = path;
  lane.process = page->process;
  lane.pending = page->pending.load() != 0;
  lane.hold_ns = sound_hold(page->hold_ns.load());
  lane.lane = page->lane;
  lane.follows = page->follows;
  if (const std::size_t dash = name.find('-'); dash != std::string::npos) {
    std::from_chars(name.data() + dash + 1, name.data() + name.size(), lane.number);
  }
  const std::uint32_t open = page->open_count.load();
  lane.open.clear();
  for (std::uint32_t i = 0; i < std::min(open, kMaxOpen); ++i) {
    if (page->open[i].silent == 0) lane.open.push_back(page->open[i]);
  }
  lane.started.clear();
  for (const StartedRange& range : page->started) {
    if (range.open.load() == 0) continue;
    lane.started.push_back(
        {range.start_ns, range.sequence, range.name, range.lane, range.arguments, range.domain});
  }
  const auto process = processes_.find(lane.process);
  lane.final = retired || (process != processes_.end() && !process->second.alive);
  return true;
}

void SpoolFolder::refresh_counts(SpoolLane& lane) const {
  // Up to the ranges, which are not looked at again.
  constexpr std::size_t kCounts = offsetof(LanePage, open);
  LanePage page;
  if (read_at(lane.path, 0, &page, kCounts).value_or(0) < kCounts) return;
  lane.committed = std::max(lane.committed, page.committed.load());
  const std::uint64_t told = page.told.load();
  const std::uint64_t dropped = page.dropped.load();
  lane.dropped = dropped - std::min(dropped, told);
  lane.texts_cut = page.texts_cut.load();
}

Result<std::int64_t> SpoolFolder::refresh(bool of_dead, const std::function<void()>& between) {
  const std::int64_t now = host_now_ns() - kClockNs;
  // A thread that has taken a time before now is seen to be pending from here on.
  std::atomic<int> fence = 0;
  fence.exchange(1, std::memory_order_seq_cst);
  make_all_pass_a_barrier();
  PASTA_TRY(read_run());
  unreadable_.clear();
  for (auto& [number, process] : processes_) refresh_process(process);
  DIR* folder = opendir(path_.c_str());
  if (folder == nullptr) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot list this folder: {}", path_, std::strerror(errno)));
  }
  std::vector<std::string> lanes;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.ends_with(kLaneEnding)) {
      lanes.push_back(name);
    } else if (name.ends_with(kProcessEnding)) {
      std::uint32_t number = 0;
      std::from_chars(name.data(), name.data() + name.size(), number);
      if (processes_.contains(number)) continue;
      add_process(name, number);
      if (const auto added = processes_.find(number); added != processes_.end()) {
        refresh_process(added->second);
      }
    }
  }
  closedir(folder);
  // In this order over all lanes: what a lane that is not pending, or that holds nothing back, has
  // ended before now, it has committed before its count is read, or before that of another lane.
  std::vector<SpoolLane*> changed;
  for (const std::string& name : lanes) {
    const auto known = lanes_.find(name);
    // Ranges of the process that a file shows may end after all of it has been written.
    if (known != lanes_.end() && known->second.final && known->second.started.empty() && !of_dead) {
      continue;
    }
    if (refresh_holds(name)) changed.push_back(&lanes_.at(name));
  }
  if (between) between();
  for (SpoolLane* lane : changed) refresh_counts(*lane);
  return now;
}

std::uint64_t SpoolFolder::remove(std::map<std::string, SpoolLane>::iterator lane,
                                  const std::function<void()>& tell) {
  const std::string path = std::exchange(lane->second.path, {});
  lanes_.erase(lane);
  const std::string gone = path + kGoneEnding;
  if (rename(path.c_str(), gone.c_str()) != 0) return 0;
  tell();
  return remove_file(gone);
}

std::uint64_t SpoolFolder::remove(std::map<std::uint32_t, SpoolProcess>::const_iterator process) {
  const std::string page = fmt::format("{}{}", process->first, kProcessEnding);
  const std::string others = fmt::format("{}-", process->first);
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    if (name == page || name.starts_with(others)) bytes += remove_file(entry.path().string());
  }
  processes_.erase(process);
  return bytes;
}

// Those from the next one on, which then is the first that the lane still has. Of a definition that
// had been read in part, its rest.
std::vector<Event> SpoolFolder::read_before(SpoolLane& lane, std::uint64_t gone) {
  std::vector<Event> cells;
  std::ifstream file(before_path(lane.path), std::ios::binary);
  BeforeHead head{};
  while (file.read(reinterpret_cast<char*>(&head), sizeof head) && head.cell < gone &&
         head.cells - 1 <= kMaxTextBytes / kCellBytes) {
    const std::size_t known = cells.size();
    cells.resize(known + head.cells);
    const auto bytes = static_cast<std::streamsize>(head.cells * kCellBytes);
    if (!file.read(reinterpret_cast<char*>(cells.data() + known), bytes)) {
      cells.resize(known);
    } else if (head.cell < lane.read) {
      const std::uint64_t had = std::min(lane.read - head.cell, head.cells);
      const auto from = cells.begin() + static_cast<std::ptrdiff_t>(known);
      cells.erase(from, from + static_cast<std::ptrdiff_t>(had));
    }
  }
  lane.read = gone;
  ++lane.jumps;
  lane.committed = std::max(lane.committed, gone);
  return cells;
}

std::vector<Event> SpoolFolder::read(SpoolLane& lane) const {
  struct {
    std::uint64_t flushed = 0, gone = 0;
  } place;
  const auto refresh_place = [&] {
    return read_at(lane.path, offsetof(LanePage, flushed), &place, sizeof place).value_or(0) ==
           sizeof place;
  };
  for (;;) {
    std::vector<Event> cells(std::min<std::uint64_t>(kCellsAtOnce, lane.committed - lane.read));
    if (cells.empty()) return cells;
    std::optional<std::size_t> size;
    bool known = refresh_place();
    while (known && lane.read >= place.gone) {
      std::uint64_t offset = kLanePageBytes + kWindowBytes + lane.read * kCellBytes;
      std::uint64_t most = cells.size();
      const std::uint64_t before = place.flushed;
      if (lane.read < before) {
        most = std::min(most, before - lane.read);
      } else if (lane.read - before < kWindowCells) {
        offset = kLanePageBytes + (lane.read - before) * kCellBytes;
        most = std::min(most, kWindowCells - (lane.read - before));
      } else {
        break;
      }
      size = read_at(lane.path, offset, cells.data(), most * kCellBytes);
      // What was there may have been taken away meanwhile; and what was in the window may have left
      // it, and be others' place.
      known = refresh_place();
      if (lane.read < before || place.flushed == before) break;
    }
    if (known && lane.read < place.gone) {
      cells = read_before(lane, place.gone);
      if (!cells.empty()) return cells;
      continue;
    }
    cells.resize(known ? size.value_or(0) / kCellBytes : 0);
    lane.read += cells.size();
    if (cells.empty()) lane.committed = lane.read;
    return cells;
  }
}

}  // namespace pasta::trace
