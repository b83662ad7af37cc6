// Ways to ask CUPTI for SASS metrics: sass_ways WAY METRIC... launches three kernels whose accesses
// are known, twice each, and prints what was counted of each.
//   once      a choice, then one range around all of them
//   warm      the same, of kernels that ran before
//   eager     the same as warm, with all patched when the range begins
//   waits     as once, each kernel waited for
//   flushes   as waits, what was counted taken after each kernel
//   ranges    one choice, and a range for each kernel
//   choices   a choice and a range for each kernel
//   profilers as choices, the profiler begun and ended with each
// and with a letter before it what CUPTI is asked to tell of as well: s- nothing, r- modules, d-
// calls of the driver, t- both.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

// 32 warps; each reads 4 sectors and writes 4.
__global__ void copy(const float* in, float* out) {
  out[blockIdx.x * 32 + threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];
}
// Each reads 32 and writes 4.
__global__ void gather(const float* in, float* out) {
  out[blockIdx.x * 32 + threadIdx.x] = in[(blockIdx.x * 32 + threadIdx.x) * 8];
}
// Each writes 4 and reads none.
__global__ void set(float* out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }

namespace {

using Clock = std::chrono::steady_clock;
std::map<std::uint64_t, std::string> names;
std::vector<CUpti_SassMetrics_Config> configs;
CUcontext context;

bool good(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "";
  cuptiGetResultString(result, &text);
  std::printf("  %s: %s (%d)\n", what, text, result);
  return false;
}

void begin_profiler(int count, char** metrics) {
  CUpti_Profiler_Initialize_Params initialize{};
  initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  good(cuptiProfilerInitialize(&initialize), "the profiler");
  CUpti_Device_GetChipName_Params chip{};
  chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  good(cuptiDeviceGetChipName(&chip), "the chip");
  configs.clear();
  for (int i = 0; i < count; ++i) {
    CUpti_SassMetrics_GetProperties_Params get{};
    get.structSize = CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE;
    get.pChipName = chip.pChipName;
    get.pMetricName = metrics[i];
    if (!good(cuptiSassMetricsGetProperties(&get), metrics[i])) continue;
    names[get.metric.metricId] = metrics[i];
    configs.push_back({get.metric.metricId, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU});
  }
}
void end_profiler() {
  CUpti_Profiler_DeInitialize_Params end{};
  end.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE;
  good(cuptiProfilerDeInitialize(&end), "the end of the profiler");
}
void choose() {
  CUpti_SassMetricsSetConfig_Params set{};
  set.structSize = CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE;
  set.numOfMetricConfig = configs.size();
  set.pConfigs = configs.data();
  good(cuptiSassMetricsSetConfig(&set), "the choice");
}
void choose_none() {
  CUpti_SassMetricsUnsetConfig_Params unset{};
  unset.structSize = CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE;
  good(cuptiSassMetricsUnsetConfig(&unset), "no choice");
}
void begin(bool lazy) {
  CUpti_SassMetricsEnable_Params enable{};
  enable.structSize = CUpti_SassMetricsEnable_Params_STRUCT_SIZE;
  enable.ctx = context;
  enable.enableLazyPatching = lazy ? 1 : 0;
  good(cuptiSassMetricsEnable(&enable), "the range");
}
void take() {
  CUpti_SassMetricsGetDataProperties_Params sizes{};
  sizes.structSize = CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE;
  sizes.ctx = context;
  good(cuptiSassMetricsGetDataProperties(&sizes), "how much");
  std::vector<CUpti_SassMetrics_Data> data(sizes.numOfPatchedInstructionRecords);
  std::vector<CUpti_SassMetrics_InstanceValue> values(data.size() * sizes.numOfInstances);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i].structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;  // as the header says
    data[i].pInstanceValues = values.data() + i * sizes.numOfInstances;
  }
  if (!data.empty()) {
    CUpti_SassMetricsFlushData_Params flush{};
    flush.structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;
    flush.ctx = context;
    flush.numOfPatchedInstructionRecords = data.size();
    flush.numOfInstances = sizes.numOfInstances;
    flush.pMetricsData = data.data();
    good(cuptiSassMetricsFlushData(&flush), "what was counted");
  }
  std::map<std::string, std::map<std::string, std::uint64_t>> functions;
  for (const auto& at : data) {
    for (std::size_t i = 0; i < sizes.numOfInstances; ++i) {
      functions[at.functionName == nullptr ? "?" : at.functionName]
               [names[at.pInstanceValues[i].metricId]] += at.pInstanceValues[i].value;
    }
  }
  std::printf("  %zu records:", data.size());
  for (const auto& [function, metrics] : functions) {
    std::printf(" %s", function.c_str());
    for (const auto& [name, value] : metrics) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(value));
    }
  }
  std::printf("\n");
}
void end() {
  CUpti_SassMetricsDisable_Params disable{};
  disable.structSize = CUpti_SassMetricsDisable_Params_STRUCT_SIZE;
  disable.ctx = context;
  good(cuptiSassMetricsDisable(&disable), "the end of the range");
  if (disable.numOfDroppedRecords > 0)
    std::printf("  %zu records dropped\n", disable.numOfDroppedRecords);
}

void told(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

int main(int argc, char** argv) {
  std::string way = argc > 1 ? argv[1] : "once";
  float* in = nullptr;
  float* out = nullptr;
  cudaMalloc(&in, 32 * 32 * 8 * sizeof *in);
  cudaMalloc(&out, 32 * 32 * sizeof *out);
  void* current = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &current, 12000, cudaEnableDefault, &found);
  if (current == nullptr) return 1;
  reinterpret_cast<CUresult (*)(CUcontext*)>(current)(&context);
  const auto launch = [&](int which) {
    for (int i = 0; i < 2; ++i) {
      if (which == 0) copy<<<32, 32>>>(in, out);
      if (which == 1) gather<<<32, 32>>>(in, out);
      if (which == 2) set<<<32, 32>>>(out);
    }
  };
  std::printf("%s\n", way.c_str());
  CUpti_SubscriberHandle subscriber{};
  if (way.size() > 2 && way[1] == '-') {
    const char told_of = way[0];
    way.erase(0, 2);
    good(cuptiSubscribe(&subscriber, told, nullptr), "to be told");
    if (told_of == 'd' || told_of == 't') {
      good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), "to be told of calls");
    }
    if (told_of == 'r' || told_of == 't') {
      good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE), "to be told of modules");
    }
  }
  if (way == "warm" || way == "eager") {
    for (int i = 0; i < 3; ++i) launch(i);
    cudaDeviceSynchronize();
  }
  const bool each_profiler = way == "profilers", each_choice = each_profiler || way == "choices",
             each_range = each_choice || way == "ranges", flushes = each_range || way == "flushes",
             waits = flushes || way == "waits";
  const auto start = Clock::now();
  if (!each_profiler) begin_profiler(argc - 2, argv + 2);
  if (!each_choice) choose();
  if (!each_range) begin(way != "eager");
  for (int i = 0; i < 3; ++i) {
    if (each_profiler) begin_profiler(argc - 2, argv + 2);
    if (each_choice) choose();
    if (each_range) begin(true);
    launch(i);
    if (waits) cudaDeviceSynchronize();
    if (flushes) take();
    if (each_range) end();
    if (each_choice) choose_none();
    if (each_profiler) end_profiler();
  }
  cudaDeviceSynchronize();
  if (!flushes) take();
  if (!each_range) end();
  if (!each_choice) choose_none();
  if (!each_profiler) end_profiler();
  std::printf("  %s, %.1f ms in all\n", cudaGetErrorString(cudaGetLastError()),
              std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  return 0;
}
