// The device work of one process in the order in which the host launched it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cold_bytes.h"
#include "pasta/event.h"
#include "tools/common/memo.h"

namespace pasta::tools {

struct LaunchRecord {
  std::uint64_t key = 0;  // ascends with the order of launches; equal for what one call launched
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t launch_ns = kNoTime;  // start of the call that launched it; kNoTime = not seen
  std::uint32_t symbol = 0;
  std::uint32_t queue = 0;  // the n-th of its process to have work
  FrameId scope{};          // open around its launch
  bool waited = false;      // for the device, the host has, between the launch before and this one
};

// The order on the device is that of several queues interleaved, which differs from one iteration
// to the next; the order of launches does not. Its key is the correlation, if every piece of work
// has one and it ascends on each queue, else the start on the device. Records are kept as
// differences of variable length (about 11 bytes each), since a trace may hold tens of millions,
// and lie on disk but for the newest.
class LaunchLog {
 public:
  // In order of end_ns. `symbol` is the caller's.
  void add(const Event& work, std::uint32_t symbol);
  // A host call that may have launched something; also one that ends after its work did.
  void add_call(const Event& call);
  // A host call that launches nothing and returns when device work is done.
  void add_wait(const Event& call);
  // After the last event.
  void close();

  [[nodiscard]] std::uint64_t size() const { return size_; }  // of the closed log
  [[nodiscard]] bool empty() const { return size_ == 0 && window_.empty(); }
  // Whether keys are correlations. Meaningless before `close()`.
  [[nodiscard]] bool by_correlation() const { return by_correlation_; }
  // The key that the record of this event has.
  [[nodiscard]] std::uint64_t key_of(const Event& work) const;
  [[nodiscard]] std::uint32_t queues() const { return queues_; }
  // Whether the trace holds calls that launch.
  [[nodiscard]] bool calls_seen() const { return !calls_.empty(); }
  // In memory of our own, of the records.
  [[nodiscard]] std::size_t held_bytes() const {
    return cold_->held_bytes() + newest_.capacity() + blocks_.capacity() * sizeof(Block);
  }
  // Records that came too late to be put into order; they stand where they came.
  [[nodiscard]] std::uint64_t late() const { return late_; }

  // Walks the closed log from its first record. The log must outlive it.
  class Reader {
   public:
    explicit Reader(const LaunchLog& log) : log_(&log) {}
    bool next(LaunchRecord& record);

   private:
    const LaunchLog* log_;
    std::size_t block_ = 0;
    std::size_t byte_ = 0;
    LaunchRecord last_{};
  };

 private:
  // More than can be in flight at once: launches that wait in all queues of a device.
  static constexpr std::size_t kWindow = std::size_t{1} << 15;
  static constexpr std::size_t kBlock = std::size_t{1} << 16;
  static constexpr std::size_t kLongestRecord = 70;  // seven numbers of at most ten bytes
  static constexpr std::size_t kCalls = std::size_t{1} << 17;
  struct Call {
    std::uint64_t correlation = 0;
    std::int64_t start_ns = 0;
  };
  struct Waiting {
    LaunchRecord record;
    std::uint64_t correlation;
  };
  void decide();
  void flush(std::size_t count);
  void write(const LaunchRecord& record);

  Memo<LaneId, std::uint32_t> queue_of_;
  std::uint32_t queues_ = 0;
  std::vector<Waiting> window_;
  std::vector<Call> calls_;  // the newest of each remainder of the correlation
  // Of whole records: those that are put by, and what is written now.
  struct Block {
    base::ColdBytes::Place place;
    std::size_t bytes;
  };
  std::vector<Block> blocks_;
  std::shared_ptr<base::ColdBytes> cold_ = std::make_shared<base::ColdBytes>();
  std::vector<std::uint8_t> newest_;
  std::int64_t newest_call_ns_ = kNoTime;
  // When the host began to wait; of several times without a call between, the first.
  std::vector<std::int64_t> waits_;
  bool waited_ = false;  // since the last call
  LaunchRecord last_{};
  std::int64_t last_launch_ns_ = kNoTime;
  std::uint64_t size_ = 0;
  std::uint64_t late_ = 0;
  bool decided_ = false;
  bool by_correlation_ = false;
};

}  // namespace pasta::tools
