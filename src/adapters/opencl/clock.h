// What to add to the times of a device to have them on the host's clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pasta::adapters::opencl {

// Learns from brackets: a host time, a device time, and a later host time, read in this order. Each
// bounds the offset from both sides; the bounds meet, and move apart again as the clocks may drift.
// The offset moves only when the bounds force it, so that work in a row does not seem to overlap.
class Clock {
 public:
  void observe(std::int64_t before_ns, std::int64_t device_ns, std::int64_t after_ns) {
    std::int64_t low = before_ns - device_ns, high = after_ns - device_ns;
    bool fresh = brackets_ == 0;
    if (!fresh) {
      const std::int64_t drift = std::max<std::int64_t>(after_ns - at_ns_, 0) / kDriftShare + 1;
      low_ -= drift;
      high_ += drift;
      if (low > high_ || high < low_) {
        ++steps_;  // the clocks differ by more than drift: what was known is worth nothing
        fresh = true;
      } else {
        low = std::max(low, low_);
        high = std::min(high, high_);
      }
    }
    low_ = low;
    high_ = high;
    at_ns_ = std::max(at_ns_, after_ns);
    offset_ = fresh ? low + (high - low) / 2 : std::clamp(offset_, low, high);
    ++brackets_;
  }

  // Whether a reading of some clock can be one of this.
  [[nodiscard]] bool agrees(std::int64_t before_ns, std::int64_t device_ns,
                            std::int64_t after_ns) const {
    return brackets_ > 0 && before_ns - device_ns <= high_ && after_ns - device_ns >= low_;
  }
  [[nodiscard]] std::int64_t to_host(std::int64_t device_ns) {
    worst_ns_ = std::max(worst_ns_, off_ns());
    return device_ns + offset_;
  }
  [[nodiscard]] std::int64_t offset_ns() const { return offset_; }
  // The most that the offset can be off now.
  [[nodiscard]] std::int64_t off_ns() const { return std::max(high_ - offset_, offset_ - low_); }
  // The most that any time can be off that was converted.
  [[nodiscard]] std::int64_t worst_ns() const { return worst_ns_; }
  [[nodiscard]] std::uint64_t brackets() const { return brackets_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::int64_t at_ns() const { return at_ns_; }

 private:
  // 500 ppm: what adjusting a clock may do to it.
  static constexpr std::int64_t kDriftShare = 2000;
  std::int64_t low_ = 0, high_ = 0, offset_ = 0, at_ns_ = 0, worst_ns_ = 0;
  std::uint64_t brackets_ = 0, steps_ = 0;
};

}  // namespace pasta::adapters::opencl
