#include "session/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::session {
void Dispatcher::add(const ToolEntry& entry, std::unique_ptr<Tool> tool) {
  const KindSet kinds = entry.needs | entry.also;
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& g) { return g.kinds == kinds; });
  if (group == groups_.end()) {
    groups_.push_back({kinds, {}, {}});
    group = std::prev(groups_.end());
  }
  group->tools.push_back(entries_.size());
  entries_.push_back({entry.name, std::move(tool)});
}

// The kinds of a real trace are mixed: a list made without a branch and then copied from is several
// times faster than asking each event.
std::span<const Event> Dispatcher::select(std::span<const Event> batch, Group& group) {
  if (group.kinds == KindSet::all()) return batch;
  if (wanted_.size() < batch.size()) wanted_.resize(batch.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    wanted_[count] = static_cast<std::uint32_t>(i);
    count += group.kinds.has(batch[i].kind) ? 1 : 0;
  }
  if (count == batch.size()) return batch;
  if (group.copy.size() < count) group.copy.resize(batch.size());
  for (std::size_t i = 0; i < count; ++i) group.copy[i] = batch[wanted_[i]];
  return {group.copy.data(), count};
}

void Dispatcher::give(std::span<const Event> batch, const Context& context) {
  for (Group& group : groups_) {
    const auto events = select(batch, group);
    if (events.empty()) continue;
    for (const std::size_t index : group.tools) {
      Entry& entry = entries_[index];
      if (entry.failed) continue;
      Status status = entry.tool->consume(events, context);
      if (!status) note(entry, std::move(status).error());
    }
  }
}

Result<std::vector<Report>> Dispatcher::finish(const Context& context) {
  std::vector<Report> reports;
  for (Entry& entry : entries_) {
    if (entry.failed) continue;
    auto report = entry.tool->finish(context);
    if (report) {
      reports.push_back(std::move(*report));
    } else {
      note(entry, std::move(report).error());
    }
  }
  if (!status_) return tl::unexpected<Error>(status_.error());
  return reports;
}

void Dispatcher::note(Entry& entry, Error error) {
  entry.failed = true;
  if (!status_) return;
  status_ = fail(error.code, fmt::format("tool {}: {}", entry.name, error.message));
}

}  // namespace pasta::session
