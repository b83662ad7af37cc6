// What a run has told so far, as `run --live` shows it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/dictionary.h"

namespace pasta::cli {

// Takes events in any order: what is told late belongs to where it ended. Only "at most" of what is
// allocated can be too little by that.
class LiveCounts final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo& info) override { began_ns_ = info.first_ns; }
  void push(std::span<const Event> events) override;
  void push(Event event, std::span<const std::byte> blob) override;
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}

  // At most `lines` of at most `width` columns. `elapsed` is since the program's start.
  [[nodiscard]] std::vector<std::string> text(std::chrono::nanoseconds elapsed, std::size_t lines,
                                              std::size_t width);

 private:
  struct Calls {
    std::int64_t count = 0;
    std::int64_t time_ns = 0;
  };
  struct DeviceState {
    // Work that ended in the second before the latest end: end and start.
    std::multimap<std::int64_t, std::int64_t> recent;
    std::int64_t allocated = 0, peak = 0;
    bool has_work = false, has_memory = false;
  };
  using ByName = std::unordered_map<std::uint32_t, Calls>;
  [[nodiscard]] std::string header(std::chrono::nanoseconds elapsed);
  [[nodiscard]] std::string device_label(DeviceId id) const;
  [[nodiscard]] std::string device_line(DeviceId id, const DeviceState& device,
                                        std::int64_t now_ns) const;
  void add_table(const ByName& of, const char* what, std::size_t lines, std::size_t width,
                 std::vector<std::string>& to) const;

  Dictionary dictionary_;
  std::int64_t began_ns_ = 0;
  std::int64_t events_ = 0;
  std::int64_t latest_work_ns_ = 0;          // of all devices
  ByName work_, ranges_;                     // by StringId
  std::map<DeviceId, DeviceState> devices_;  // none: the host
  std::unordered_set<std::uint32_t> ended_;  // processes
  // Of the last text, for the rate.
  std::int64_t events_then_ = 0;
  std::chrono::nanoseconds then_{};
};

}  // namespace pasta::cli
