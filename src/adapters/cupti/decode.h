// From a record of CUPTI to what it tells. Pure: no CUPTI, no heap, no libstdc++; the collector
// makes ids of what is said here (adapter.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/cupti/records.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"

namespace pasta::adapters::cupti {

inline constexpr std::uint32_t kNoStream = ~std::uint32_t{0};

// Where an event lies, in CUPTI's numbers.
struct Place {
  enum class Type : std::uint8_t {
    kThread,  // `thread`
    kQueue,   // `stream` of `context`
    kMemory,  // allocations of `device`: their record does not name the thread
  };
  Type type = Type::kQueue;
  bool knows_device = true;  // else the context decides
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t thread = 0;
};

// What becomes of a record.
enum class Told : std::uint8_t {
  kEvent,
  kCounters,  // of a memory pool: `pool_size` and `pool_used` at event.start_ns
  kContext,   // `place` says of which device a context is
  kExternal,  // `text` names the kind of number, `external` is it, of the call event.correlation
  kNothing,   // known, and of no use
  kUnknown,   // of a kind that was not asked for
  kInvalid,   // its own fields contradict each other
};

struct Decoded {
  Event event{};  // without ids; times in CUPTI's clock; the vendor's 32 bits of correlation
  // They were read on the device: in its own clock, where CUPTI is to leave them so.
  bool of_device_clock = false;
  Place place;
  // One of them names the event: a text that outlives the call, `name`, or the number of a call.
  const char* text = nullptr;
  char name[64] = {};
  std::uint32_t callback = 0;
  LaunchAttributes attributes;   // of a kernel
  std::uint64_t graph_node = 0;  // whole, where event.kernel has not the room
  std::uint64_t external = 0;
  // Of memory:
  bool of_host = false;
  std::uint64_t pool = 0;
  const char* memory_kind = nullptr;  // where it is not plain device memory
  std::uint64_t pool_size = 0;
  std::uint64_t pool_used = 0;
};

// `record` has the fields of its kind that records.h names.
Told decode(const Record* record, Decoded& to) noexcept;

}  // namespace pasta::adapters::cupti
