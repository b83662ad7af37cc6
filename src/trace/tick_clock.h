// The host's clock, read by the processor's counter of ticks: that takes half as long. The counter
// is compared with the clock about every millisecond and follows it, so times are those of the
// clock to within some 100 ns, and they never go back.
//
// Where the counter is not what the system itself keeps time by, there is only the clock.
//
// Needs no libstdc++: it is loaded into programs that do not have it.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace pasta::trace {

// CLOCK_MONOTONIC.
inline std::int64_t host_now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::uint64_t processor_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

// What a time by ticks may be off that is compared with what others measure.
inline constexpr std::int64_t kTicksOffNs = 200;

// The clock and the counter, read together: the clock's time lies between the two of the counter.
struct ClockPair {
  std::uint64_t before = 0;
  std::int64_t ns = 0;
  std::uint64_t after = 0;
};

// Any number of threads, without locks. A thread may be interrupted anywhere, for ever.
class TickClock {
 public:
  // When it was at `ticks`; false when that is too long after the last pair.
  bool at(std::uint64_t ticks, std::int64_t& ns) const noexcept {
    const std::uint32_t changes = changes_.load(std::memory_order_acquire);
    const std::uint64_t from = ticks_.load(std::memory_order_acquire);
    const std::int64_t from_ns = ns_.load(std::memory_order_acquire);
    const std::uint64_t rate = rate_.load(std::memory_order_acquire);
    const std::uint64_t span = span_.load(std::memory_order_acquire);
    if ((changes & 1) != 0 || ticks - from >= span ||
        changes_.load(std::memory_order_relaxed) != changes) {
      return false;
    }
    ns = after(from_ns, ticks - from, rate);
    return true;
  }

  // Learns from a pair, and gives the time then.
  std::int64_t learn(const ClockPair& pair) noexcept {
    std::uint32_t changes = changes_.load(std::memory_order_relaxed);
    if ((changes & 1) != 0 ||
        !changes_.compare_exchange_strong(changes, changes + 1, std::memory_order_acquire)) {
      // Somebody else does, and is through soon; unless he was interrupted.
      std::int64_t ns = 0;
      for (int tries = 0; tries < 100; ++tries) {
        if (at(pair.after, ns)) return ns;
      }
      return pair.ns;
    }
    const std::int64_t now_ns = learn_alone(pair);
    changes_.store(changes + 2, std::memory_order_release);
    return now_ns;
  }

  // In a forked child, where whoever was at it is not there.
  void forget() noexcept {
    base_ticks_ = rate_alone_ = 0;
    span_.store(0, std::memory_order_relaxed);
    changes_.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::int64_t kBetweenPairsNs = 1'000'000;
  // What takes longer than this was interrupted and says nothing.
  static constexpr std::uint64_t kTightTicks = 1024;
  // How far apart two pairs are that tell the rate.
  static constexpr std::int64_t kFirstBaseNs = 200'000, kBaseNs = 16'000'000,
                                kLongestBaseNs = 1'000'000'000;
  // The clock was set, or the rate has become another: it is found out anew.
  static constexpr std::int64_t kMostOffNs = 2000;

  static std::int64_t after(std::int64_t ns, std::uint64_t ticks, std::uint64_t rate) noexcept {
    return ns + static_cast<std::int64_t>(ticks * rate >> 32);
  }

  void begin_base(std::uint64_t ticks, std::int64_t ns, std::int64_t known_ns) noexcept {
    base_ticks_ = ticks;
    base_ns_ = ns;
    known_ns_ = known_ns;
  }

  void learn_rate(std::uint64_t ticks, std::int64_t ns) noexcept {
    const std::int64_t since = ns - base_ns_;
    if (base_ticks_ == 0 || since <= 0 || since > 2 * kLongestBaseNs || ticks <= base_ticks_) {
      return begin_base(ticks, ns, rate_alone_ == 0 ? kFirstBaseNs : kBaseNs);
    }
    if (since < known_ns_) return;
    const std::uint64_t rate = (static_cast<std::uint64_t>(since) << 32) / (ticks - base_ticks_);
    const std::uint64_t off = rate > rate_alone_ ? rate - rate_alone_ : rate_alone_ - rate;
    const bool another = rate_alone_ != 0 && known_ns_ >= kBaseNs && off > rate_alone_ / 512;
    // A counter below 62 MHz is none to measure by.
    if (another || rate >> 36 != 0 || rate == 0) {
      rate_alone_ = 0;  // as after a machine has been moved
      return begin_base(ticks, ns, kFirstBaseNs);
    }
    rate_alone_ = rate;
    known_ns_ = since;
    if (since >= kLongestBaseNs) begin_base(ticks, ns, kBaseNs);
  }

  std::int64_t learn_alone(const ClockPair& pair) noexcept {
    const std::uint64_t from = ticks_.load(std::memory_order_relaxed);
    const std::uint64_t span = span_.load(std::memory_order_relaxed);
    const std::uint64_t ticks = pair.before + (pair.after - pair.before) / 2;
    // A little after the end of a span it goes on without a break: what the clock is off by then is
    // made up for until the next pair. Else it begins anew, but not before what at() has given.
    const bool goes_on = span > 0 && ticks - from < span + span / 8;
    if (span > 0) {
      given_ns_ = after(ns_.load(std::memory_order_relaxed), goes_on ? ticks - from : span,
                        rate_.load(std::memory_order_relaxed));
    }
    const std::int64_t now_ns = given_ns_ > pair.ns ? given_ns_ : pair.ns;
    if (pair.after - pair.before > kTightTicks) return now_ns;
    const std::int64_t off_ns = goes_on ? pair.ns - given_ns_ : 0;
    if (off_ns > kMostOffNs || off_ns < -kMostOffNs) {
      rate_alone_ = 0;
      begin_base(ticks, pair.ns, kFirstBaseNs);
    } else {
      learn_rate(ticks, pair.ns);
    }
    if (rate_alone_ == 0) {
      span_.store(0, std::memory_order_release);
      return now_ns;
    }
    const auto next = (static_cast<std::uint64_t>(kBetweenPairsNs) << 32) / rate_alone_;
    const std::int64_t make_up = off_ns * (std::int64_t{1} << 32) / static_cast<std::int64_t>(next);
    const std::int64_t start_ns = goes_on ? given_ns_ : now_ns;
    ticks_.store(ticks, std::memory_order_release);
    ns_.store(start_ns, std::memory_order_release);
    rate_.store(rate_alone_ + static_cast<std::uint64_t>(make_up), std::memory_order_release);
    span_.store(next, std::memory_order_release);
    return start_ns;
  }

  // at(): `ns_` at `ticks_`, and `rate_` / 2^32 for each tick, for `span_` ticks. Consistent while
  // `changes_` is even and the same before and after.
  alignas(64) std::atomic<std::uint32_t> changes_ = 0;
  std::atomic<std::uint64_t> ticks_ = 0;
  std::atomic<std::int64_t> ns_ = 0;
  std::atomic<std::uint64_t> rate_ = 0;
  std::atomic<std::uint64_t> span_ = 0;
  // Of whoever has made `changes_` odd: the rate of the clock itself, and the pair it is told from,
  // which is to be so long ago before it tells the rate again.
  alignas(64) std::uint64_t rate_alone_ = 0;
  std::uint64_t base_ticks_ = 0;
  std::int64_t base_ns_ = 0;
  std::int64_t known_ns_ = 0;
  std::int64_t given_ns_ = 0;  // the latest that at() can have given
};

}  // namespace pasta::trace
