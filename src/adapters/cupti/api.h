// The functions of CUPTI that PASTA calls, found at run time in the libcupti that the program has,
// or else in the places where one is installed. No libstdc++, no heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/cupti/gpu_timers.h"
#include "adapters/cupti/records.h"

namespace pasta::adapters::cupti {

struct Api {
  using Result = std::int32_t;  // CUptiResult, 0 = success
  using Request = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
  using Complete = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                            std::size_t size, std::size_t valid);

  void* library;  // that they are of
  Result (*get_version)(std::uint32_t*);
  Result (*get_result_string)(Result, const char**);
  Result (*get_timestamp)(std::uint64_t*);
  Result (*get_callback_name)(std::int32_t domain, std::uint32_t callback, const char**);
  Result (*register_callbacks)(Request, Complete);
  Result (*enable)(RecordKind);
  Result (*disable)(RecordKind);
  Result (*flush_all)(std::uint32_t forced);
  Result (*next_record)(std::uint8_t* buffer, std::size_t valid, Record**);
  Result (*dropped_records)(void* context, std::uint32_t stream, std::size_t* dropped);
  Result (*set_attribute)(std::int32_t attribute, std::size_t* size, void* value);
  Result (*set_thread_id_type)(std::int32_t);
  using Subscriber = void*;
  using Callback = void (*)(void* user, std::int32_t domain, std::uint32_t callback,
                            const void* data);
  Result (*subscribe)(Subscriber*, Callback, void* user);
  Result (*unsubscribe)(Subscriber);
  Result (*enable_callback)(std::uint32_t enable, Subscriber, std::int32_t domain,
                            std::uint32_t callback);
  Result (*graph_node_id)(void* node, std::uint64_t*);
  Result (*stream_id)(void* context, const void* stream, std::uint8_t per_thread, std::uint32_t*);
  // None before CUDA 12.3 or so.
  Result (*enable_runtime_api)(std::uint32_t callback, std::uint8_t enable);
  Result (*enable_driver_api)(std::uint32_t callback, std::uint8_t enable);
  Result (*device_id)(void* context, std::uint32_t*);
  // Not in its headers: times that were read on a device stay as they are there.
  Result (*enable_raw_times)(std::uint8_t enable);
};

// Fills `api` and writes the library's path, or why there is none, to `where`.
bool load_api(Api& api, char* where, std::size_t size) noexcept;

// Any function of the libcupti that load_api() would take; none when there is none.
void* find_function(const char* name) noexcept;
// The system's dlsym(), in front of which the collector stands.
using Dlsym = void*(void* library, const char* name);
Dlsym* system_dlsym() noexcept;

// Facts of a device from the driver; 0 and "" where it does not say.
struct DeviceFacts {
  char name[128] = {};
  char uuid[48] = {};  // GPU-01234567-89ab-...
  std::uint32_t multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};
DeviceFacts device_facts(std::uint32_t ordinal) noexcept;
// False when it does not say.
bool device_place(std::uint32_t ordinal, PciPlace& place) noexcept;

}  // namespace pasta::adapters::cupti
