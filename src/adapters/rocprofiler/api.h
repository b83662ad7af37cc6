// The functions of rocprofiler-sdk that PASTA calls, found at run time in the library that is
// asking. No libstdc++, no heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/rocprofiler/records.h"

namespace pasta::adapters::rocprofiler {

// rocprofiler_status_t, 0 = success.
using Status = std::int32_t;

struct Api {
  using Buffered = void (*)(std::uint64_t context, std::uint64_t buffer, RecordHeader** records,
                            std::size_t count, void* data, std::uint64_t dropped);
  // The callback of a tracing service takes BasicCallback by value, in the layout of its version.
  using AnyFunction = void (*)();
  using NameOperation = int (*)(std::int32_t kind, std::int32_t operation, void* data);
  using TakeAgents = Status (*)(std::int32_t version, const void** agents, std::size_t count,
                                void* data);
  using RequestId = int (*)(std::uint64_t thread, std::uint64_t context, std::int32_t kind,
                            std::int32_t operation, std::uint64_t internal, std::uint64_t* external,
                            void* data);
  using TakeCounters = Status (*)(std::uint64_t agent, std::uint64_t* counters, std::size_t count,
                                  void* data);
  using ChooseCounters = void (*)(CountedDispatch dispatch, std::uint64_t* config,
                                  std::uint64_t* user_data, void* data);
  using TakePcConfigurations = Status (*)(const PcConfiguration* offered, std::size_t count,
                                          void* data);
  using Counted = void (*)(CountedDispatch dispatch, const void* records, std::size_t count,
                           std::uint64_t user_data, void* data);

  const char* (*get_status_string)(Status);
  Status (*get_timestamp)(std::uint64_t*);
  Status (*is_finalized)(int*);
  Status (*create_context)(std::uint64_t*);
  Status (*start_context)(std::uint64_t);
  Status (*stop_context)(std::uint64_t);
  Status (*create_buffer)(std::uint64_t context, std::size_t size, std::size_t watermark,
                          std::int32_t policy, Buffered, void* data, std::uint64_t* buffer);
  Status (*flush_buffer)(std::uint64_t);
  Status (*trace_to_buffer)(std::uint64_t context, std::int32_t kind,
                            const std::int32_t* operations, std::size_t count,
                            std::uint64_t buffer);
  Status (*trace_by_callback)(std::uint64_t context, std::int32_t kind,
                              const std::int32_t* operations, std::size_t count, AnyFunction,
                              void* data);
  Status (*get_buffered_kind_name)(std::int32_t kind, const char** name, std::uint64_t* size);
  Status (*get_buffered_name)(std::int32_t kind, std::int32_t operation, const char** name,
                              std::uint64_t* size);
  Status (*get_callback_kind_name)(std::int32_t kind, const char** name, std::uint64_t* size);
  Status (*list_operations)(std::int32_t kind, NameOperation, void* data);
  Status (*list_agents)(std::int32_t version, TakeAgents, std::size_t agent_size, void* data);
  // None in some versions: what needs them is left out, and that is said.
  Status (*request_ids)(std::uint64_t context, const std::int32_t* kinds, std::size_t count,
                        RequestId, void* data);
  Status (*list_counters)(std::uint64_t agent, TakeCounters, void* data);
  Status (*get_counter_info)(std::uint64_t counter, std::int32_t version, void* info);
  Status (*create_counter_config)(std::uint64_t agent, std::uint64_t* counters, std::size_t count,
                                  std::uint64_t* config);
  Status (*count_dispatches)(std::uint64_t context, ChooseCounters, void* choose_data, Counted,
                             void* counted_data);
  Status (*get_counter_of_record)(std::uint64_t record, std::uint64_t* counter);
  Status (*list_pc_sampling)(std::uint64_t agent, TakePcConfigurations, void* data);
  Status (*sample_pcs)(std::uint64_t context, std::uint64_t agent, std::int32_t method,
                       std::int32_t unit, std::uint64_t interval, std::uint64_t buffer, int flags);
  [[nodiscard]] bool can_sample() const {
    return list_pc_sampling != nullptr && sample_pcs != nullptr;
  }
  [[nodiscard]] bool can_count() const {
    return list_counters != nullptr && get_counter_info != nullptr &&
           create_counter_config != nullptr && count_dispatches != nullptr &&
           get_counter_of_record != nullptr;
  }
};

// The rocprofiler-sdk that this process has, or that its ROCm would load: none without.
// `beside` is a function of the library that asks for it.
void* open_library(const void* beside) noexcept;

// Fills `api` from the library that is loaded. The name of a function that must be there and is
// not; none when all is well.
const char* load_api(Api& api, void* library) noexcept;

}  // namespace pasta::adapters::rocprofiler
