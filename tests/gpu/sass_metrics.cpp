// CUPTI's SASS metrics as another source of what accesses cost: a library for `accesses PART
// LIBRARY` and for Python. around(1) begins to count in the current context, around(0) writes what
// was counted as a line of JSON for each function: to SASS_METRICS_OUTPUT, the metrics named in
// SASS_METRICS, separated by commas; without them it lists all that the GPU has. A process can have
// one choice of metrics: another one ends in "out of memory".
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

void told(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

struct {
  bool chosen = false;
  std::map<std::uint64_t, std::string> names;  // of the metrics, by their numbers
  std::vector<CUpti_SassMetrics_Config> configs;
} g;

bool good(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "";
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "sass_metrics: %s: %s (%d)\n", what, text, result);
  return false;
}

std::FILE* output() {
  const char* path = std::getenv("SASS_METRICS_OUTPUT");
  return path == nullptr ? stdout : std::fopen(path, "a");
}
void done(std::FILE* file) {
  if (file != stdout) std::fclose(file);
}

bool list(const char* chip) {
  CUpti_SassMetrics_GetNumOfMetrics_Params count{};
  count.structSize = CUpti_SassMetrics_GetNumOfMetrics_Params_STRUCT_SIZE;
  count.pChipName = chip;
  if (!good(cuptiSassMetricsGetNumOfMetrics(&count), "how many metrics")) return false;
  std::vector<CUpti_SassMetrics_MetricDetails> all(count.numOfMetrics);
  CUpti_SassMetrics_GetMetrics_Params get{};
  get.structSize = CUpti_SassMetrics_GetMetrics_Params_STRUCT_SIZE;
  get.pChipName = chip;
  get.numOfMetrics = all.size();
  get.pMetricsList = all.data();
  if (!good(cuptiSassMetricsGetMetrics(&get), "the metrics")) return false;
  std::FILE* file = output();
  for (const auto& metric : all) {
    std::fprintf(file, "%s: %s\n", metric.pMetricName, metric.pMetricDescription);
  }
  done(file);
  return true;
}

bool choose() {
  // Without being told of modules, CUPTI 13.0 counts in the first kernel alone.
  CUpti_SubscriberHandle subscriber{};
  if (!good(cuptiSubscribe(&subscriber, told, nullptr), "to be told") ||
      !good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE), "to be told of modules")) {
    return false;
  }
  CUpti_Profiler_Initialize_Params initialize{};
  initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  if (!good(cuptiProfilerInitialize(&initialize), "the profiler")) return false;
  CUpti_Device_GetChipName_Params chip{};
  chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  if (!good(cuptiDeviceGetChipName(&chip), "the chip")) return false;
  const char* wanted = std::getenv("SASS_METRICS");
  const std::string names = wanted == nullptr ? "" : wanted;
  if (names.empty()) return list(chip.pChipName);
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t end = std::min(names.find(',', from), names.size());
    const std::string name = names.substr(from, end - from);
    from = end + 1;
    CUpti_SassMetrics_GetProperties_Params get{};
    get.structSize = CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE;
    get.pChipName = chip.pChipName;
    get.pMetricName = name.c_str();
    if (!good(cuptiSassMetricsGetProperties(&get), name.c_str())) continue;
    g.names[get.metric.metricId] = name;
    g.configs.push_back({get.metric.metricId, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU});
  }
  CUpti_SassMetricsSetConfig_Params set{};
  set.structSize = CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE;
  set.numOfMetricConfig = g.configs.size();
  set.pConfigs = g.configs.data();
  g.chosen = good(cuptiSassMetricsSetConfig(&set), "the choice of metrics");
  return g.chosen;
}

bool begin() {
  if (!g.chosen && !choose()) return false;
  if (g.configs.empty()) return true;  // they were only listed
  CUpti_SassMetricsEnable_Params enable{};
  enable.structSize = CUpti_SassMetricsEnable_Params_STRUCT_SIZE;
  enable.enableLazyPatching = 1;
  return good(cuptiSassMetricsEnable(&enable), "counting");
}

bool write() {
  CUpti_SassMetricsGetDataProperties_Params sizes{};
  sizes.structSize = CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE;
  if (!good(cuptiSassMetricsGetDataProperties(&sizes), "how much was counted")) return false;
  const std::size_t instances = sizes.numOfInstances;
  std::vector<CUpti_SassMetrics_Data> data(sizes.numOfPatchedInstructionRecords);
  std::vector<CUpti_SassMetrics_InstanceValue> values(data.size() * instances);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i].structSize = sizeof data[i];
    data[i].pInstanceValues = values.data() + i * instances;
  }
  if (!data.empty()) {
    CUpti_SassMetricsFlushData_Params flush{};
    flush.structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;
    flush.numOfPatchedInstructionRecords = data.size();
    flush.numOfInstances = instances;
    flush.pMetricsData = data.data();
    if (!good(cuptiSassMetricsFlushData(&flush), "what was counted")) return false;
  }
  std::fprintf(stderr, "sass_metrics: %zu records of %zu values\n", data.size(), instances);
  std::map<std::string, std::map<std::string, std::uint64_t>> functions;
  for (const auto& at : data) {
    auto& of_function = functions[at.functionName == nullptr ? "" : at.functionName];
    for (std::size_t i = 0; i < instances; ++i) {
      of_function[g.names[at.pInstanceValues[i].metricId]] += at.pInstanceValues[i].value;
    }
  }
  std::FILE* file = output();
  for (const auto& [function, metrics] : functions) {
    std::fprintf(file, "{\"function\": \"%s\"", function.c_str());
    for (const auto& [name, value] : metrics) {
      std::fprintf(file, ", \"%s\": %llu", name.c_str(), static_cast<unsigned long long>(value));
    }
    std::fprintf(file, "}\n");
  }
  done(file);
  return true;
}

bool end() {
  if (g.configs.empty()) return true;  // they were only listed
  const bool written = write();
  CUpti_SassMetricsDisable_Params disable{};
  disable.structSize = CUpti_SassMetricsDisable_Params_STRUCT_SIZE;
  const bool disabled = good(cuptiSassMetricsDisable(&disable), "to count no more");
  if (disable.numOfDroppedRecords > 0) {
    std::fprintf(stderr, "sass_metrics: %zu records dropped\n", disable.numOfDroppedRecords);
  }
  return written && disabled;
}

}  // namespace

// 0 when it did what it was asked for.
extern "C" __attribute__((visibility("default"))) int around(int begins) {
  return (begins != 0 ? begin() : end()) ? 0 : 1;
}
