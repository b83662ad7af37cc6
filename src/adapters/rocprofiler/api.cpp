#include "adapters/rocprofiler/api.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "trace/append_text.h"

namespace pasta::adapters::rocprofiler {
namespace {

constexpr const char* kNames[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
                                  "librocprofiler-sdk.so"};

// As whoever starts a program can name it for ROCm.
const char* named_library() {
  const char* named = std::getenv("ROCPROFILER_REGISTER_LIBRARY");
  return named == nullptr || *named == '\0' ? nullptr : named;
}

void* open_in(const char* folder, std::size_t size, const char* below) {
  char path[PATH_MAX];
  for (const char* name : kNames) {
    if (size + std::strlen(below) + std::strlen(name) + 2 > sizeof path) return nullptr;
    std::memcpy(path, folder, size);
    trace::append(trace::append(trace::append(path + size, below), "/"), name);
    if (void* library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL); library != nullptr) return library;
  }
  return nullptr;
}

}  // namespace

void* open_library(const void* beside) noexcept {
  for (const char* name : kNames) {
    if (void* loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); loaded != nullptr) return loaded;
  }
  if (const char* named = named_library(); named != nullptr) {
    return dlopen(named, RTLD_LAZY | RTLD_GLOBAL);
  }
  // Beside the library of ROCm that the program has: each ROCm goes with its own.
  Dl_info info{};
  if (beside != nullptr && dladdr(beside, &info) != 0 && info.dli_fname != nullptr) {
    if (const char* slash = std::strrchr(info.dli_fname, '/'); slash != nullptr) {
      void* library = open_in(info.dli_fname, static_cast<std::size_t>(slash - info.dli_fname), "");
      if (library != nullptr) return library;
    }
  }
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_GLOBAL); library != nullptr) return library;
  }
  for (const char* variable : {"ROCM_PATH", "ROCM_HOME"}) {
    const char* home = std::getenv(variable);
    if (home == nullptr || *home == '\0') continue;
    if (void* library = open_in(home, std::strlen(home), "/lib"); library != nullptr) {
      return library;
    }
  }
  constexpr const char* kInstalled = "/opt/rocm";
  return open_in(kInstalled, std::strlen(kInstalled), "/lib");
}

const char* load_api(Api& api, void* library) noexcept {
  api = {};
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& to) {
    if (to != nullptr) return true;
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    return to != nullptr;
  };
  const auto need = [&](const char* name, auto& to) {
    if (!find(name, to) && missing == nullptr) missing = name;
  };
  need("rocprofiler_get_status_string", api.get_status_string);
  need("rocprofiler_get_timestamp", api.get_timestamp);
  need("rocprofiler_is_finalized", api.is_finalized);
  need("rocprofiler_create_context", api.create_context);
  need("rocprofiler_start_context", api.start_context);
  need("rocprofiler_stop_context", api.stop_context);
  need("rocprofiler_create_buffer", api.create_buffer);
  need("rocprofiler_flush_buffer", api.flush_buffer);
  need("rocprofiler_configure_buffer_tracing_service", api.trace_to_buffer);
  need("rocprofiler_configure_callback_tracing_service", api.trace_by_callback);
  need("rocprofiler_query_buffer_tracing_kind_name", api.get_buffered_kind_name);
  need("rocprofiler_query_buffer_tracing_kind_operation_name", api.get_buffered_name);
  need("rocprofiler_query_callback_tracing_kind_name", api.get_callback_kind_name);
  need("rocprofiler_iterate_buffer_tracing_kind_operations", api.list_operations);
  need("rocprofiler_query_available_agents", api.list_agents);
  find("rocprofiler_configure_external_correlation_id_request_service", api.request_ids);
  find("rocprofiler_iterate_agent_supported_counters", api.list_counters);
  find("rocprofiler_query_counter_info", api.get_counter_info);
  // The later name first.
  find("rocprofiler_create_counter_config", api.create_counter_config);
  find("rocprofiler_create_profile_config", api.create_counter_config);
  find("rocprofiler_configure_callback_dispatch_counting_service", api.count_dispatches);
  find("rocprofiler_configure_callback_dispatch_profile_counting_service", api.count_dispatches);
  find("rocprofiler_query_record_counter_id", api.get_counter_of_record);
  find("rocprofiler_query_pc_sampling_agent_configurations", api.list_pc_sampling);
  find("rocprofiler_configure_pc_sampling_service", api.sample_pcs);
  return missing;
}

}  // namespace pasta::adapters::rocprofiler
