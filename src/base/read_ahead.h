// Reads a stream on a thread of its own, a few blocks ahead.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pasta/adapter.h"

namespace pasta::base {

class ReadAhead final : public ByteStream {
 public:
  // `stream` is used by the new thread only. That ends with the stream, or with this object, which
  // waits for the block being read.
  explicit ReadAhead(std::unique_ptr<ByteStream> stream);
  ~ReadAhead() override;
  Result<std::size_t> read(std::span<std::byte> to) override;
  [[nodiscard]] std::string_view damage() const override { return damage_; }

 private:
  using Block = std::vector<std::byte>;
  void run();
  bool next_block();

  std::unique_ptr<ByteStream> stream_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ready_;      // under mutex_
  std::vector<Block> empty_;     // under mutex_
  std::optional<Error> failed_;  // under mutex_; behind the blocks in ready_
  bool ended_ = false;           // under mutex_; no block will be added
  bool stop_ = false;            // under mutex_

  Block current_;
  std::size_t current_used_ = 0;
  std::string damage_;
  std::thread thread_;  // last: all it touches is made before it
};

}  // namespace pasta::base
