#include "adapters/common/foreign_json.h"

#include <algorithm>
#include <array>

namespace pasta::adapters {
namespace {

using std::string_view;

// What a document that has all of these members is (unused places are empty).
struct Kind {
  std::array<string_view, 3> members;
  string_view answer;
};

// What tells more stands in front.
constexpr Kind kKinds[] = {
    {{"pastaprof", "reports"},
     "a report of pastaprof, not a trace: give the trace that it was made of"},
    {{"nodes", "schema"},
     "an execution trace of PyTorch or Chakra (operators and tensors, no device times): give the "
     "profiler's trace of the same run, which has \"traceEvents\""},
    {{"workload_graph"},
     "an execution trace of Chakra (operators, no device times): give the profiler's trace of the "
     "same run, which has \"traceEvents\""},
    {{"segments", "device_traces"},
     "a memory snapshot of PyTorch, which has no times: record the run with torch.profiler and "
     "profile_memory=True, or look at it on https://docs.pytorch.org/memory_viz"},
    {{"["},
     "a list of rows without names, such as a memory timeline of PyTorch: give the profiler's "
     "trace "
     "of the same run, which has \"traceEvents\""},
    {{"nodes", "samples", "timeDeltas"},
     "a CPU profile of V8 (.cpuprofile), which has no device work"},
    {{"shared", "profiles"},
     "a speedscope profile, which has no device work: give the trace that it was made of"},
    {{"meta", "threads", "libs"}, "a profile of Firefox, which has no device work"},
    {{"resourceSpans"},
     "an OpenTelemetry trace: it has requests between services, and no device work"},
    {{"spans", "traceId"},
     "a trace of requests between services (Google Cloud, Zipkin), and no device work"},
    {{"spans", "traceID"}, "a Jaeger trace: it has requests between services, and no device work"},
    {{"nbformat", "cells"}, "a Jupyter notebook, not a trace"},
    {{"lockfileVersion"}, "a lock file of npm, not a trace"},
    {{"name", "version", "dependencies"}, "a package.json of npm, not a trace"},
    {{"name", "version", "scripts"}, "a package.json of npm, not a trace"},
    {{"name", "version", "devDependencies"}, "a package.json of npm, not a trace"},
    {{"compilerOptions"}, "a configuration of TypeScript, not a trace"},
    {{"architectures", "model_type"}, "the configuration of a model, not a trace"},
    {{"version", "configurePresets"}, "presets of CMake, not a trace"},
    {{"context", "benchmarks"}, "results of Google Benchmark, not a trace"},
    {{"Time (%)"},
     "a statistics table of Nsight Systems, not a timeline: export the report with "
     "`nsys export --type sqlite FILE`"},
};

bool has(std::span<const std::string> members, string_view name) {
  return name.empty() || std::find(members.begin(), members.end(), name) != members.end();
}

}  // namespace

std::optional<string_view> recognise_foreign_json(std::span<const std::string> members) {
  for (const Kind& kind : kKinds) {
    if (std::all_of(kind.members.begin(), kind.members.end(),
                    [&](string_view name) { return has(members, name); })) {
      return kind.answer;
    }
  }
  return std::nullopt;
}

}  // namespace pasta::adapters
