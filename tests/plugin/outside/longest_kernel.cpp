// A plug-in in C++: the longest kernel of each device.
#include <map>

#include "pasta/plugin.hpp"

using namespace pasta::plugin;

class LongestKernel {
 public:
  void consume(std::span<const pasta_event> events, const Context& context) {
    for (const pasta_event& event : events) {
      if ((event.flags & PASTA_FLAG_UNTIMED) != 0) continue;
      pasta_event& longest =
          longest_.try_emplace(context.lane(event.lane).device, event).first->second;
      if (event.end_ns - event.start_ns > longest.end_ns - longest.start_ns) longest = event;
    }
  }
  Report finish(const Context& context) const {
    Table table("longest", "Longest kernels", {{"device"}, {"name"}, {"time", "ns"}});
    for (const auto& [device, event] : longest_) {
      table.row({context.device_label(device), context.string(event.name),
                 event.end_ns - event.start_ns});
    }
    return Report("longest_kernel", "Longest kernels").add(table);
  }

 private:
  std::map<std::uint32_t, pasta_event> longest_;
};

constexpr pasta_plugin_tool kLongestKernel = tool<LongestKernel>(
    "longest_kernel", "the longest kernel of each device", PASTA_KIND_BIT(PASTA_KIND_KERNEL));
PASTA_PLUGIN(kLongestKernel)
