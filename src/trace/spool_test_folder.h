// For tests: a run's folder, and processes that write into it.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <string>

#include "trace/spool.h"
#include "trace/spool_reader.h"
#include "trace/spool_writer.h"

namespace pasta::trace {

// A run's folder, as whoever starts one makes it.
class SpoolTestFolder {
 public:
  // `quick`: times by ticks and no barrier in a push, as far as this host can.
  explicit SpoolTestFolder(std::uint64_t limit_bytes = std::uint64_t{1} << 30, bool quick = true) {
    std::string name = (std::filesystem::temp_directory_path() / "spool-XXXXXX").string();
    path_ = mkdtemp(name.data());
    const std::string file = path_ + '/' + spool::kRunFile;
    std::FILE* run = std::fopen(file.c_str(), "w+");
    EXPECT_EQ(ftruncate(fileno(run), 4096), 0);
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(run), 0);
    std::fclose(run);
    page_ = new (page) spool::RunPage{};
    page_->version = spool::kVersion;
    page_->start_ns = spool_now_ns();
    page_->limit_bytes = limit_bytes;
    if (quick) allow_what_is_quick(*page_);
    page_->magic = spool::kRunMagic;
  }
  ~SpoolTestFolder() {
    munmap(page_, 4096);
    std::filesystem::remove_all(path_);
  }
  SpoolTestFolder(const SpoolTestFolder&) = delete;
  SpoolTestFolder& operator=(const SpoolTestFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] spool::RunPage& page() { return *page_; }

  // In a child that has joined; whether it ended as it should.
  bool write(const std::function<void()>& body) {
    const pid_t child = begin(body);
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0;
  }
  pid_t begin(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      if (!join_run(path_.c_str(), {})) std::_Exit(2);
      body();
      leave_run(0);
      std::_Exit(0);
    }
    return child;
  }

 private:
  std::string path_;
  spool::RunPage* page_;
};

}  // namespace pasta::trace
