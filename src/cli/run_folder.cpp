#include "cli/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <tuple>

#include "trace/spool.h"
#include "trace/spool_reader.h"

namespace pasta::cli {
namespace {

using namespace trace::spool;

constexpr std::size_t kPageBytes = 4096;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Of the clock of the trace. Between two readings of that one may be interrupted: of several the
// nearest count.
std::int64_t realtime_ahead_ns() {
  std::int64_t best_ns = 0, ahead_ns = 0;
  for (int i = 0; i < 16; ++i) {
    const std::int64_t before = clock_ns(CLOCK_MONOTONIC);
    const std::int64_t realtime = clock_ns(CLOCK_REALTIME);
    const std::int64_t took_ns = clock_ns(CLOCK_MONOTONIC) - before;
    if (i > 0 && took_ns >= best_ns) continue;
    best_ns = took_ns;
    ahead_ns = realtime - before - took_ns / 2;
  }
  return ahead_ns;
}

// Of a program that goes on, the file is there as long as that has its end mapped: gives back what
// it has written, and will not touch again.
void free_space(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  std::uint64_t flushed = 0;
  if (pread(file, &flushed, sizeof flushed, offsetof(LanePage, flushed)) == sizeof flushed) {
    const auto bytes = static_cast<off_t>(flushed * kCellBytes / kPageBytes * kPageBytes);
    // Where the file system cannot do it, it is given back when the program ends.
    if (bytes > 0) {
      static_cast<void>(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  kLanePageBytes + kWindowBytes, bytes));
    }
  }
  close(file);
}

RunPage* page_of(void* page) { return static_cast<RunPage*>(page); }

}  // namespace

Result<RunFolder> RunFolder::create(const std::string& output, const Options& options) {
  const auto refused = [&](const std::string& what) {
    return fail(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
  };
  for (const auto& [name, text, room] :
       {std::tuple("capture-range", &options.capture, sizeof RunPage::capture),
        std::tuple("include", &options.include, sizeof RunPage::include),
        std::tuple("exclude", &options.exclude, sizeof RunPage::exclude),
        std::tuple("keep-last", &options.keep, sizeof RunPage::keep)}) {
    if (text->size() < room && text->find('\0') == std::string::npos) continue;
    return fail(ErrorCode::kUsage,
                fmt::format("--{} has {} bytes; {} are the most", name, text->size(), room - 1));
  }
  std::error_code error;
  const std::string base = std::filesystem::absolute(output, error).string() + ".run";
  RunFolder folder;
  for (int number = 1;; ++number) {
    folder.path_ = number == 1 ? base : fmt::format("{}-{}", base, number);
    if (mkdir(folder.path_.c_str(), 0700) == 0) break;
    if (errno != EEXIST) return refused(folder.path_);
  }
  const std::string path = folder.path_ + '/' + kRunFile;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int full = file < 0 ? errno : posix_fallocate(file, 0, kPageBytes);
  void* page = MAP_FAILED;
  if (full == 0) {
    page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  } else {
    errno = full;
  }
  const int reason = errno;
  if (file >= 0) close(file);
  if (page == MAP_FAILED) {
    std::filesystem::remove_all(folder.path_, error);
    errno = reason;
    return refused(path);
  }
  folder.page_ = page;
  auto* run = new (page) RunPage{};
  run->version = kVersion;
  trace::allow_what_is_quick(*run);
  run->start_ns = clock_ns(CLOCK_MONOTONIC);
  run->epoch_ns = realtime_ahead_ns();
  run->limit_bytes = options.limit_bytes;
  run->rank = options.rank;
  run->world_size = options.world_size;
  run->paused.store(options.paused ? 1 : 0);
  options.capture.copy(run->capture, sizeof run->capture - 1);
  options.include.copy(run->include, sizeof run->include - 1);
  options.exclude.copy(run->exclude, sizeof run->exclude - 1);
  options.keep.copy(run->keep, sizeof run->keep - 1);
  run->segment_bytes = options.segment_bytes;
  run->capture_by = options.capture_by;
  run->first_iteration = options.first_iteration;
  run->last_iteration = options.last_iteration;
  run->cuda = options.cuda;
  run->torch = options.torch ? 1 : 0;
  run->call_places = options.call_places ? 1 : 0;
  run->python = options.python;
  run->hides = options.hides ? 1 : 0;
  gethostname(run->host, sizeof run->host - 1);
  run->magic.store(kRunMagic, std::memory_order_release);
  return folder;
}

void RunFolder::begins(std::int32_t program) { page_of(page_)->program = program; }

void RunFolder::pause(bool paused) { page_of(page_)->paused.store(paused ? 1 : 0); }

void RunFolder::keep_last(std::chrono::nanoseconds time) {
  auto& from_ns = page_of(page_)->kept_from_ns;
  from_ns.store(std::max(from_ns.load(), clock_ns(CLOCK_MONOTONIC) - time.count()));
}

bool RunFolder::has_given() const { return page_of(page_)->let_go.load() > 0; }

void RunFolder::ends(std::int32_t wait_status) {
  RunPage& run = *page_of(page_);
  run.end_ns = clock_ns(CLOCK_MONOTONIC);
  run.wait_status = wait_status;
  run.over.store(1, std::memory_order_release);
}

void RunFolder::remove() {
  std::error_code error;
  // First, so that who is reading the rest can tell that it went meanwhile.
  std::filesystem::remove(path_ + '/' + kRunFile, error);
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.path().extension() == kLaneEnding) free_space(entry.path());
  }
  std::filesystem::remove_all(path_, error);
}

}  // namespace pasta::cli
