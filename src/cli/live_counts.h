// What a session has seen so far, as `run --live` shows it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/tool.h"

namespace pasta::cli {

class LiveCounts {
 public:
  void see(std::span<const Event> events, const Context& context);
  // At most `lines` of at most `width` columns. `elapsed` is since the program's start.
  [[nodiscard]] std::vector<std::string> text(std::chrono::nanoseconds elapsed, std::size_t lines,
                                              std::size_t width);

 private:
  struct Calls {
    std::int64_t count = 0;
    std::int64_t time_ns = 0;
  };
  struct DeviceState {
    // Work that ended in the second before the latest end, in order of its end.
    std::deque<std::pair<std::int64_t, std::int64_t>> recent;
    std::int64_t allocated = 0, peak = 0;
    bool has_work = false, has_memory = false;
  };
  using ByName = std::unordered_map<std::uint32_t, Calls>;
  [[nodiscard]] std::string header(std::chrono::nanoseconds elapsed);
  [[nodiscard]] std::string device_line(DeviceId id, const DeviceState& device,
                                        std::int64_t now_ns) const;
  void add_table(const ByName& of, const char* what, std::size_t lines, std::size_t width,
                 std::vector<std::string>& to) const;

  const Context* context_ = nullptr;
  std::int64_t events_ = 0;
  std::int64_t latest_work_ns_ = 0;          // of all devices
  ByName work_, ranges_;                     // by StringId
  std::map<DeviceId, DeviceState> devices_;  // none: the host
  std::unordered_set<std::uint32_t> ended_;  // processes
  // Of the last text, for the rate.
  std::int64_t events_then_ = 0;
  std::chrono::nanoseconds then_{};
};

// Of a tool that only feeds counts; its report is empty.
extern const ToolEntry kLiveEntry;
std::unique_ptr<Tool> make_live_tool(LiveCounts& counts);

}  // namespace pasta::cli
