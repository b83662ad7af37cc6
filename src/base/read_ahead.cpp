#include "base/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pasta::base {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{512} << 10;
constexpr std::size_t kBlocks = 4;

}  // namespace

ReadAhead::ReadAhead(std::unique_ptr<ByteStream> stream)
    : stream_(std::move(stream)), empty_(kBlocks), thread_([this] { run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::run() {
  for (bool more = true; more;) {
    Block block;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !empty_.empty(); });
      if (stop_) return;
      block = std::move(empty_.back());
      empty_.pop_back();
    }
    block.resize(kBlockBytes);
    auto got = stream_->read(block);
    more = got.has_value() && *got == block.size();
    {
      const std::lock_guard lock(mutex_);
      if (got) {
        block.resize(*got);
        ready_.push_back(std::move(block));
      } else {
        failed_ = std::move(got).error();
      }
      ended_ = !more;
    }
    changed_.notify_all();
  }
}

// Waits for a block. False at the end, where the thread no longer touches the stream.
bool ReadAhead::next_block() {
  {
    std::unique_lock lock(mutex_);
    if (!current_.empty()) empty_.push_back(std::exchange(current_, {}));
    current_used_ = 0;
    if (!ended_) changed_.notify_all();
    changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
    if (!ready_.empty()) {
      current_ = std::move(ready_.front());
      ready_.pop_front();
      return true;
    }
  }
  damage_ = stream_->damage();
  return false;
}

Result<std::size_t> ReadAhead::read(std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    if (current_used_ == current_.size() && !next_block()) {
      if (failed_) return tl::unexpected<Error>(*failed_);
      break;
    }
    const std::size_t part = std::min(to.size() - done, current_.size() - current_used_);
    if (part == 0) continue;
    std::memcpy(to.data() + done, current_.data() + current_used_, part);
    current_used_ += part;
    done += part;
  }
  return done;
}

}  // namespace pasta::base
