#include "tools/common/api_role.h"

#include <algorithm>
#include <string>

namespace pasta::tools {
namespace {

// Parts of names, in lower case.
constexpr std::string_view kIssues[] = {
    "launch",        // cudaLaunchKernel, hipModuleLaunchKernel, cudaGraphLaunch
    "memset",        // does not wait, whether its name says so or not
    "enqueuemem",    // urEnqueueMemBufferCopy
    "enqueuendr",    // clEnqueueNDRangeKernel
    "appendmemory",  // zeCommandListAppendMemoryCopy
    "runfunction",   // MTIA
};
constexpr std::string_view kWaits[] = {
    "synchronize",  // cudaDeviceSynchronize, cuStreamSynchronize, zeFenceHostSynchronize
    "hsa_signal_wait", "queuefinish", "clfinish", "clwaitforevents", "ureventwait",
};
constexpr std::string_view kAsks[] = {"eventquery", "streamquery", "event_query", "queryevent"};
// What asks, waits or sets up is called far more often than what launches.
constexpr std::string_view kNeverLaunches[] = {
    "query",  "get",     "record",    "waitevent", "iscapturing", "occupancy",     "peek",
    "create", "destroy", "attribute", "malloc",    "free",        "configuration",
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

ApiRole api_role(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto any = [&](const auto& parts) {
    return std::any_of(std::begin(parts), std::end(parts),
                       [&](std::string_view part) { return contains(lower, part); });
  };
  ApiRole role;
  role.graph = contains(lower, "graphlaunch");
  // Calls that build or change a graph have the names of what its nodes will do.
  if (contains(lower, "graph") && !role.graph) return role;
  role.copies = contains(lower, "memcpy");
  role.issues = role.copies || any(kIssues);
  role.asks = any(kAsks);
  const bool returns_early = contains(lower, "async") || contains(lower, "enqueue");
  role.waits = any(kWaits) || (role.copies && !returns_early);
  role.may_launch = role.issues || (!role.waits && !any(kNeverLaunches));
  return role;
}

}  // namespace pasta::tools
