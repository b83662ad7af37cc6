// From a GPU's own time to the host's, by readings of both that are taken again and again. Between
// two readings the clocks are taken to run evenly; before the first and after the last they go on
// as around it. Pure: no driver, no heap, no libstdc++.
#pragma once

#include <cstdint>

namespace pasta::adapters::cupti {

// The GPU's time and the host's; the longer it took to read them, the less they may be of one
// moment.
struct ClockReading {
  std::int64_t gpu_ns = 0;
  std::int64_t host_ns = 0;
  std::int64_t took_ns = 0;
};

// One thread.
class GpuClock {
 public:
  // What took an eighth longer than the best until now is left out for a second: whoever was
  // interrupted while it read, or had to wait for another who reads from the GPU, knows little. But
  // not before it is known how the clocks part: without that a second is worse.
  void learn(const ClockReading& reading) {
    const Pair pair{reading.gpu_ns, reading.host_ns - reading.gpu_ns, reading.took_ns};
    if (count_ > 0) {
      Pair& last = pairs_[count_ - 1];
      const std::int64_t since_ns = pair.gpu_ns - last.gpu_ns;
      const std::int64_t moved_ns = pair.offset_ns - last.offset_ns;
      const std::int64_t most_ns = kOtherClockNs + (since_ns >> kMostPartedShift);
      if (since_ns <= 0 || moved_ns > most_ns || -moved_ns > most_ns) {
        count_ = 0;  // it was set: nothing of before holds
      } else if (since_ns < kLongestNs && span(0, count_ - 1) >= kBaseNs && is_long(pair)) {
        return;
      } else if (since_ns < kLongestNs && pair.took_ns < shortest_ns_) {
        shortest_ns_ = pair.took_ns;
        if (is_long(last)) --count_;  // was only the best until now
      }
    }
    if (count_ == 0 || pair.took_ns < shortest_ns_) shortest_ns_ = pair.took_ns;
    if (count_ == kMost) thin();
    pairs_[count_++] = pair;
  }

  // The host's time when the GPU's was `gpu_ns`. Not before the first reading.
  [[nodiscard]] std::int64_t host_ns(std::int64_t gpu_ns) const {
    std::uint32_t next = count_;  // the first that is later
    for (std::uint32_t from = 0; from < next;) {
      const std::uint32_t middle = from + (next - from) / 2;
      if (pairs_[middle].gpu_ns > gpu_ns) {
        next = middle;
      } else {
        from = middle + 1;
      }
    }
    // Outside of all, by two that are far enough apart that it does not matter how well each is
    // known.
    std::uint32_t before = next == 0 ? 0 : next - 1;
    if (next == 0) {
      while (next + 1 < count_ && span(0, next) < kBaseNs) ++next;
    } else if (next == count_) {
      next = count_ - 1;
      while (before > 0 && span(before, next) < kBaseNs) --before;
    }
    const Pair& near = gpu_ns < pairs_[before].gpu_ns ? pairs_[before] : pairs_[next];
    const std::int64_t apart_ns = span(before, next);
    // Nearer to each other than that, what differs is how well they were read.
    const bool is_between = gpu_ns >= pairs_[before].gpu_ns && gpu_ns <= pairs_[next].gpu_ns;
    if (apart_ns == 0 || (!is_between && apart_ns < kNearNs)) return gpu_ns + near.offset_ns;
    const std::int64_t parted_ns = pairs_[next].offset_ns - pairs_[before].offset_ns;
    // Small beside the times themselves, and so exact enough.
    const double more_ns = static_cast<double>(gpu_ns - near.gpu_ns) *
                           static_cast<double>(parted_ns) / static_cast<double>(apart_ns);
    return gpu_ns + near.offset_ns +
           static_cast<std::int64_t>(more_ns < 0 ? more_ns - 0.5 : more_ns + 0.5);
  }

 private:
  struct Pair {
    std::int64_t gpu_ns, offset_ns, took_ns;
  };

  [[nodiscard]] bool is_long(const Pair& pair) const {
    return pair.took_ns > shortest_ns_ + shortest_ns_ / 8;
  }
  // Of the older half every second one goes: of what is long past fewer are needed.
  void thin() {
    std::uint32_t to = 1;
    for (std::uint32_t from = 2; from < count_; from += from < kMost / 2 ? 2 : 1) {
      pairs_[to++] = pairs_[from];
    }
    count_ = to;
  }
  [[nodiscard]] std::int64_t span(std::uint32_t from, std::uint32_t to) const {
    return pairs_[to].gpu_ns - pairs_[from].gpu_ns;
  }

  static constexpr std::uint32_t kMost = 256;
  static constexpr std::int64_t kLongestNs = 1'000'000'000;
  static constexpr std::int64_t kBaseNs = 500'000'000;
  static constexpr std::int64_t kNearNs = 20'000'000;
  // Clocks that part by more than this and a thousandth of the time between are not the same
  // clocks.
  static constexpr std::int64_t kOtherClockNs = 1'000'000;
  static constexpr int kMostPartedShift = 10;

  Pair pairs_[kMost] = {};
  std::uint32_t count_ = 0;
  std::int64_t shortest_ns_ = 0;
};

}  // namespace pasta::adapters::cupti
