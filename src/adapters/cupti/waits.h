// Calls that wait, and what for: a callback before the call tells the latter, the call's record,
// which comes later, the times. No heap, no libstdc++.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "pasta/event.h"

namespace pasta::adapters::cupti {

struct WaitCall {
  SyncTarget target = SyncTarget::kUnknown;  // unknown: the call does not wait
  bool per_thread = false;                   // its default stream is the thread's own
};

// By the name that CUPTI has for the call: "cudaStreamSynchronize_ptsz_v7000".
constexpr WaitCall wait_call(std::string_view name) {
  constexpr struct {
    std::string_view what;
    SyncTarget target;
  } kTargets[] = {{"StreamSynchronize", SyncTarget::kStream},
                  {"EventSynchronize", SyncTarget::kEvent},
                  {"StreamWaitEvent", SyncTarget::kStreamWaitsEvent},
                  {"DeviceSynchronize", SyncTarget::kContext},
                  {"ThreadSynchronize", SyncTarget::kContext},
                  {"CtxSynchronize", SyncTarget::kContext}};
  if (!name.starts_with("cu")) return {};
  // What may throw or assert, as substr(), would bring libstdc++ with it.
  const std::size_t prefix = name.starts_with("cuda") ? 4 : 2;
  const std::string_view call(name.data() + prefix, name.size() - prefix);
  for (const auto& row : kTargets) {
    if (call.starts_with(row.what)) return {row.target, name.find("_ptsz") != name.npos};
  }
  return {};
}

constexpr const char* wait_name(SyncTarget target) {
  constexpr const char* kNames[] = {"Sync", "Context Sync", "Stream Sync", "Event Sync",
                                    "Stream Wait Event"};
  return kNames[static_cast<std::size_t>(target)];
}

// What calls under way wait for, by their correlation. Any thread puts, one takes.
class Waits {
 public:
  struct On {
    std::uint32_t context;
    std::uint32_t stream;
    std::uint64_t event;  // the program's handle
  };

  void put(std::uint32_t correlation, const On& on) {
    Slot& slot = slots_[correlation % std::size(slots_)];
    // Whoever takes sees either all of one call's or nothing. Of two threads at one slot the second
    // leaves it: of its call nothing is known.
    if (slot.correlation.exchange(kWriting, std::memory_order_acquire) == kWriting) return;
    slot.place.store(std::uint64_t{on.context} << 32 | on.stream, std::memory_order_release);
    slot.event.store(on.event, std::memory_order_release);
    slot.correlation.store(correlation, std::memory_order_release);
  }
  // False when nothing is known of this call.
  bool take(std::uint32_t correlation, On& on) {
    Slot& slot = slots_[correlation % std::size(slots_)];
    if (correlation == 0 || slot.correlation.load(std::memory_order_acquire) != correlation) {
      return false;
    }
    const std::uint64_t place = slot.place.load(std::memory_order_acquire);
    on = {static_cast<std::uint32_t>(place >> 32), static_cast<std::uint32_t>(place),
          slot.event.load(std::memory_order_acquire)};
    std::uint64_t expected = correlation;
    return slot.correlation.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  }

 private:
  static constexpr std::uint64_t kWriting = std::uint64_t{1} << 32;  // no call has this number
  struct Slot {
    std::atomic<std::uint64_t> correlation, place, event;
  };
  // Calls of a tenth of a second, and more.
  Slot slots_[8192] = {};
};

// Which threads are in a call of the runtime that waits: the driver's call that it makes is no wait
// of its own. By the system's numbers of threads, of which two that fall together are seen as one.
class ThreadsInside {
 public:
  void enter(std::uint32_t thread) { slot(thread).store(thread, std::memory_order_relaxed); }
  void leave(std::uint32_t thread) { slot(thread).store(0, std::memory_order_relaxed); }
  bool has(std::uint32_t thread) { return slot(thread).load(std::memory_order_relaxed) == thread; }
  // Before calls are told of again: who was in one when that ended has left it since.
  void clear() {
    for (auto& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t>& slot(std::uint32_t thread) { return slots_[thread % 4096]; }
  std::atomic<std::uint32_t> slots_[4096] = {};
};

}  // namespace pasta::adapters::cupti
