#include "session/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::session {
namespace {

// Copies what `kinds` has to the front of `to`, which has room for all. Copies every event and
// moves on only after a wanted one: no branch to mispredict on the mixed kinds of a real trace.
std::span<const Event> select(std::span<const Event> from, KindSet kinds, std::vector<Event>& to) {
  if (to.size() < from.size()) to.resize(from.size());
  Event* out = to.data();
  for (const Event& event : from) {
    *out = event;
    out += kinds.has(event.kind) ? 1 : 0;
  }
  return {to.data(), out};
}

}  // namespace

void Dispatcher::add(const ToolEntry& entry, std::unique_ptr<Tool> tool) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& g) { return g.kinds == entry.needs; });
  if (group == groups_.end()) {
    groups_.push_back({entry.needs, {}, {}});
    group = std::prev(groups_.end());
  }
  group->tools.push_back(entries_.size());
  entries_.push_back({entry.name, std::move(tool)});
}

void Dispatcher::give(std::span<const Event> batch, const Context& context) {
  for (Group& group : groups_) {
    const auto events =
        group.kinds == KindSet::all() ? batch : select(batch, group.kinds, group.copy);
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
