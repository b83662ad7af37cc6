// Gives each tool the kinds it asked for.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "pasta/event.h"
#include "pasta/report.h"
#include "pasta/tool.h"

namespace pasta::session {

// Tools that want the same kinds share one span: the batch itself when they want all of it, else
// one copy of what they want.
class Dispatcher {
 public:
  void add(const ToolEntry& entry, std::unique_ptr<Tool> tool);
  // Once a tool has failed it sees no more events.
  void give(std::span<const Event> batch, const Context& context);
  // Of the first tool that failed, naming it.
  [[nodiscard]] const Status& status() const { return status_; }
  // The reports in the order in which the tools were added; fails when one of them failed.
  Result<std::vector<Report>> finish(const Context& context);

 private:
  struct Entry {
    std::string_view name;
    std::unique_ptr<Tool> tool;
    bool failed = false;
  };
  struct Group {
    KindSet kinds;
    std::vector<std::size_t> tools;  // indices of entries_
    std::vector<Event> copy;
  };
  std::span<const Event> select(std::span<const Event> batch, Group& group);
  void note(Entry& entry, Error error);

  std::vector<Entry> entries_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> wanted_;  // of the batch at hand
  Status status_;
};

}  // namespace pasta::session
