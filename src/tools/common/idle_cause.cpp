#include "tools/common/idle_cause.h"

#include <algorithm>
#include <array>
#include <string>

namespace pasta::tools {
namespace {

constexpr std::array<IdleCauseInfo, kIdleCauseCount> kCauses = {{
    {"launch_bound", "the host did not issue work fast enough",
     "give the device more work per launch: larger batches, fused or compiled operators, or a "
     "captured graph of the part that repeats; the tool launches shows what launching costs"},
    {"sync_bound", "the host sat in calls that wait for the device, and issued nothing meanwhile",
     "remove what makes the host wait (reading a value back in every step, blocking copies, "
     "explicit synchronisation), so that work is queued ahead"},
    {"input_bound", "the host waited for its next input",
     "load data in more worker processes, prefetch further ahead, or make loading cheaper"},
    {"host_busy", "the host did something that issues no work",
     "see in the table of gaps what the host was in; make it shorter, or move it off the thread "
     "that issues work"},
    {"no_host_thread", "the trace does not say why: it holds nothing of the host",
     "record the host too (the profiler's CPU activities) to see the cause"},
    {"unknown", "the trace does not say why: nothing that was recorded covers those times",
     "record more of the host (operators, call stacks, annotations) to see the cause"},
}};

// Parts of names, in lower case.
constexpr std::string_view kWaits[] = {
    "synchronize",          // cudaDeviceSynchronize, cuStreamSynchronize, zeFenceHostSynchronize
    "hsa_signal_wait",      //
    "hipmemcpywithstream",  // a copy and a synchronisation of the stream
    "queuefinish",          // urQueueFinish
    "clfinish",             //
    "clwaitforevents",      //
    "ureventwait",          //
};
constexpr std::string_view kIssues[] = {
    "launch",        // cudaLaunchKernel, hipModuleLaunchKernel, cudaGraphLaunch
    "enqueuemem",    // urEnqueueMemBufferCopy, urEnqueueMemcpy
    "enqueuendr",    // clEnqueueNDRangeKernel
    "appendmemory",  // zeCommandListAppendMemoryCopy
    "memset",        // does not wait, whether the name says so or not
    "runfunction",   // MTIA
};
constexpr std::string_view kAsks[] = {"eventquery", "streamquery", "event_query", "queryevent"};

// Ranges in which a loop takes the next batch from its loader. Not in the list: what the loader's
// own workers do, on threads and in processes of theirs.
struct InputName {
  std::string_view begin, part, end;
};
constexpr InputName kInputs[] = {
    {"enumerate(DataLoader)#", "", ""},                  // PyTorch's own annotation
    {"enumerate(DataPipe)#", "", ""},                    //
    {"", "DataLoaderIter.__next__", ""},                 //
    {"", "torch/utils/data/dataloader.py", "__next__"},  // its Python frame
    {"", "train_dataloader_next", ""},                   // Lightning
    {"IteratorGetNext", "", ""},                         // TensorFlow
    {"Iterator::Root", "", ""},                          //
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

const IdleCauseInfo& idle_cause_info(IdleCause cause) {
  return kCauses[static_cast<std::size_t>(cause)];
}

bool launches_graph(std::string_view api) { return contains(api, "GraphLaunch"); }

ApiRole api_role(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto any = [&](const auto& parts) {
    return std::any_of(std::begin(parts), std::end(parts),
                       [&](std::string_view part) { return contains(lower, part); });
  };
  // Calls that build or change a graph have the names of what its nodes will do.
  if (contains(lower, "graph") && !contains(lower, "graphlaunch")) return {};
  const bool copy = contains(lower, "memcpy");
  return {
      .issues = copy || any(kIssues),
      .copies = copy,
      .waits = any(kWaits) || (copy && !contains(lower, "async") && !contains(lower, "enqueue")),
      .asks = any(kAsks)};
}

bool awaits_input(std::string_view range) {
  return std::any_of(std::begin(kInputs), std::end(kInputs), [&](const InputName& name) {
    return range.starts_with(name.begin) && contains(range, name.part) && range.ends_with(name.end);
  });
}

}  // namespace pasta::tools
