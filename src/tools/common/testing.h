// What unit tests of tools share: a trace made by hand. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/report.h"
#include "pasta/tool.h"

namespace pasta::tools::testing {

// A dictionary and events in the order in which they are added, and the Context over them. Devices
// are called by their ordinal.
class Trace : public Context {
 public:
  [[nodiscard]] const Dictionary& dictionary() const override { return dictionary_; }
  [[nodiscard]] std::span<const std::byte> blob(BlobId) const override { return {}; }
  [[nodiscard]] std::string device_label(DeviceId id) const override {
    return id ? std::to_string(dictionary_.device(id).ordinal) : std::string();
  }
  [[nodiscard]] std::int64_t origin_ns() const override {
    std::int64_t origin = kNoTime;
    for (const Event& event : events_) {
      if (event.untimed()) continue;
      origin = origin == kNoTime ? event.start_ns : std::min(origin, event.start_ns);
    }
    return origin;
  }

  Dictionary& tables() { return dictionary_; }
  [[nodiscard]] std::span<const Event> events() const { return events_; }

  LaneId queue(std::uint32_t ordinal, std::uint64_t stream = 7) {
    Device device;
    device.process = dictionary_.process(Process{.native_id = 1});
    device.ordinal = ordinal;
    return dictionary_.lane(Lane{.type = LaneType::kQueue,
                                 .process = device.process,
                                 .device = dictionary_.device(device),
                                 .native_id = stream});
  }
  FrameId frame(FrameId parent, std::string_view name, ScopeDomain domain) {
    return dictionary_.frame(
        {.parent = parent, .name = dictionary_.string(name), .domain = domain});
  }

  // The event just added, for tests that change it. Valid until the next is added.
  Event& add(Kind kind, LaneId lane, std::string_view name, std::int64_t start, std::int64_t end) {
    Event event{};
    event.kind = kind;
    event.lane = lane;
    event.name = dictionary_.string(name);
    event.start_ns = start;
    event.end_ns = end;
    return events_.emplace_back(event);
  }
  Event& kernel(LaneId lane, std::string_view name, std::int64_t start, std::int64_t end) {
    return add(Kind::kKernel, lane, name, start, end);
  }
  Event& untimed_kernel(LaneId lane, std::string_view name) {
    Event& event = kernel(lane, name, kNoTime, kNoTime);
    event.flags = kUntimed;
    return event;
  }
  Event& copy(LaneId lane, std::int64_t start, std::int64_t end, std::uint64_t bytes) {
    Event& event = add(Kind::kCopy, lane, "Memcpy", start, end);
    event.copy.bytes = bytes;
    return event;
  }
  // Puts the events into the order in which a session gives them.
  void sort() {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.end_ns < b.end_ns; });
  }

  // The report of `entry` over all events it asked for, `batch` at a time.
  Result<Report> report(const ToolEntry& entry,
                        std::span<const std::pair<std::string, std::string>> given = {},
                        std::size_t batch = 1024) const {
    const auto options = Options::parse(entry.name, entry.options, given);
    if (!options) return tl::unexpected<Error>(options.error());
    auto tool = entry.make(*options);
    if (!tool) return tl::unexpected<Error>(std::move(tool).error());
    std::vector<Event> asked;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(asked),
                 [&](const Event& event) { return (entry.needs | entry.also).has(event.kind); });
    for (std::span<const Event> rest = asked; !rest.empty();) {
      const std::size_t count = std::min(batch, rest.size());
      PASTA_TRY((*tool)->consume(rest.first(count), *this));
      rest = rest.subspan(count);
    }
    return (*tool)->finish(*this);
  }

 private:
  Dictionary dictionary_;
  std::vector<Event> events_;
};

// The table of a report; an empty one when there is none.
inline Table table(const Report& report, std::string_view id) {
  for (const Part& part : report.parts) {
    if (const auto* found = std::get_if<Table>(&part); found != nullptr && found->id == id) {
      return *found;
    }
  }
  return {};
}

// The finding of a report; an empty one when there is none.
inline Finding finding(const Report& report, std::string_view id) {
  for (const Part& part : report.parts) {
    if (const auto* found = std::get_if<Finding>(&part); found != nullptr && found->id == id) {
      return *found;
    }
  }
  return {};
}

// The cell in the named column.
inline Cell cell(const Table& table, std::size_t row, std::string_view column) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == column) return table.rows.at(row).at(i);
  }
  return "no such column";
}

// A column of integers; unknown cells count as -1, which no table has.
inline std::vector<std::int64_t> integers(const Table& table, std::string_view column) {
  std::vector<std::int64_t> values;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Cell value = cell(table, row, column);
    const auto* number = std::get_if<std::int64_t>(&value);
    values.push_back(number != nullptr ? *number : -1);
  }
  return values;
}

}  // namespace pasta::tools::testing
