// What happened to one memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pasta/event.h"
#include "pasta/ids.h"
#include "tools/memory/curve.h"

namespace pasta::tools::memory {

// A sum of sizes. Unknown as soon as one of them is, or when it does not fit.
struct Sum {
  std::int64_t bytes = 0;
  bool known = true;

  void add(std::uint64_t more) {
    known = known && more <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) &&
            !__builtin_add_overflow(bytes, static_cast<std::int64_t>(more), &bytes);
  }
};

// What one operator (or path) has allocated and not freed: now, and when most was allocated.
struct Owner {
  std::int64_t bytes = 0, allocations = 0;
  std::int64_t peak_bytes = 0, peak_allocations = 0;
  bool changed = false;  // is in the list of those that have changed since the peak
};

struct Address {
  std::uint64_t value;
  ProcessId process;  // two processes have two address spaces, even on one device
  bool operator==(const Address&) const = default;
};
struct AddressHash {
  std::size_t operator()(const Address& address) const {
    // Allocators align, so the low bits say nothing.
    return (address.value ^ std::uint64_t{address.process.value} << 48) * 0x9e3779b97f4a7c15u >> 8;
  }
};
struct Allocation {
  std::int64_t bytes;
  std::int64_t start_ns;
  std::size_t owner;
};

// One of the allocator's own counters.
struct Counter {
  std::optional<std::int64_t> last, highest;
  Curve curve;

  // True: it was never as high.
  bool add(const Event& event, std::int64_t value);
};

// A memory: of a device, or of the host as one process sees it. In order of the events' ends.
class Place {
 public:
  Place(DeviceId of_device, ProcessId of_process) : device(of_device), process(of_process) {}

  // An event of kind kAlloc or kFree; `owner()` gives the index of who allocates.
  template <class GetOwner>
  void change(const Event& event, ProcessId by, GetOwner&& owner) {
    if (!count(event)) return;
    const Address address{event.memory.address, by};
    if (addressless == 0 && address.value != 0) {
      if (event.kind == Kind::kAlloc) {
        allocate(address, {static_cast<std::int64_t>(event.memory.bytes), event.end_ns, owner()});
      } else {
        free(address);
      }
    }
    if (running_ > peak) take_peak(event.end_ns);
  }
  void count_total(const Event& event, std::int64_t value);
  void count_reserved(const Event& event, std::int64_t value);

  [[nodiscard]] bool sizes_known() const { return allocated.known && freed.known; }
  [[nodiscard]] bool peak_known() const { return sizes_known() && untimed == 0; }
  [[nodiscard]] bool live_known() const { return peak_known() && addressless == 0; }
  [[nodiscard]] std::int64_t events() const { return allocs + frees; }
  // Reserved by the allocator and not given out when it had given out most. Sources that do not
  // count what is reserved for the host write 0 there.
  [[nodiscard]] std::optional<std::int64_t> reserved_unused() const;

  DeviceId device;    // none: the host
  ProcessId process;  // of the host's

  std::int64_t allocs = 0, frees = 0;
  Sum allocated, freed;
  std::int64_t untimed = 0;
  std::int64_t addressless = 0;  // allocations and frees of something, of which nobody knows where
  std::int64_t reused = 0, unmatched = 0;

  // Of the running sum of what the trace shows, which begins with 0.
  Curve curve;
  std::int64_t peak = 0;
  std::optional<std::int64_t> peak_ns;
  std::optional<std::int64_t> total_at_peak;  // what the allocator counted then

  Counter total, reserved;
  std::optional<std::int64_t> reserved_at_total;  // at the first moment of total.highest

  std::vector<Owner> owners;
  std::unordered_map<Address, Allocation, AddressHash> live;

 private:
  // False: when what was allocated cannot be known.
  bool count(const Event& event);
  void allocate(const Address& address, const Allocation& allocation);
  void free(const Address& address);
  void add(std::size_t owner, std::int64_t bytes, std::int64_t allocations);
  void take_peak(std::int64_t time_ns);

  std::int64_t running_ = 0;
  // What of the owners was live at the peak is found in one pass and without a copy at each new
  // peak: their `peak_` members are those of the last peak, and those that have changed since are
  // listed here. A new peak brings the listed ones up to date. An event lists at most one, so this
  // is constant time for each event.
  std::vector<std::size_t> changed_;

  // What the allocator counts after a change is told after the change, at the same time. Later
  // values are of later changes.
  bool awaits_total_ = false;     // that of the peak
  bool awaits_reserved_ = false;  // that of total.highest
  std::int64_t awaited_ns_ = 0;
};

}  // namespace pasta::tools::memory
