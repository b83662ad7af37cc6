#include "session/source_sink.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::session {

SourceSink::SourceSink(Dictionary& dictionary, Blobs& blobs, Quality& quality, std::size_t batch,
                       Receive receive, More more)
    : dictionary_(&dictionary),
      blobs_(&blobs),
      quality_(&quality),
      batch_(batch),
      receive_(std::move(receive)),
      more_(std::move(more)) {}

void SourceSink::describe(const SourceInfo& info) {
  const auto held = lock();
  info_ = info;
  described_ = true;
}

EventSink& SourceSink::add_source(const SourceInfo& info) {
  SourceSink& made = more_();
  made.describe(info);
  return made;
}

void SourceSink::push(std::span<const Event> events) {
  const auto held = lock();
  ++progress_;
  // Portion by portion, so that what is checked is still in the cache when it is used.
  while (!events.empty()) {
    const auto portion = in_order(events.first(std::min(batch_, events.size())));
    events = events.subspan(std::min(batch_, events.size()));
    if (portion.empty()) continue;
    passed_ns_ = portion.back().end_ns;
    if (receive_) {
      quality_->observe(portion);
      receive_(portion);
    } else {
      waiting_.insert(waiting_.end(), portion.begin(), portion.end());
    }
  }
}

void SourceSink::push(Event event, std::span<const std::byte> blob) {
  event.device.blob = blobs_->add(blob);
  push(std::span(&event, 1));
  if (receive_) blobs_->remove(event.device.blob);
}

void SourceSink::advance(std::int64_t end_ns) {
  const auto held = lock();
  ++progress_;
  passed_ns_ = std::max(passed_ns_, end_ns);
}

void SourceSink::report(const Problem& problem) {
  const auto held = lock();
  problems_.add(problem.reason, problem.count, problem.first);
}

std::span<const Event> SourceSink::in_order(std::span<const Event> events) {
  std::int64_t passed = ended_ ? std::numeric_limits<std::int64_t>::max() : passed_ns_;
  const auto late = [&](const Event& event) {
    if (event.end_ns < passed) return true;
    passed = event.end_ns;
    return false;
  };
  const auto first = std::find_if(events.begin(), events.end(), late);
  if (first == events.end()) return events;
  kept_.assign(events.begin(), first);
  for (const Event& event : std::span(first, events.end())) {
    if (!late(event)) {
      kept_.push_back(event);
      continue;
    }
    problems_.add(Reason::kLate, [&] {
      return fmt::format("{} \"{}\" that ends at {} ns", kind_name(event.kind),
                         dictionary_->text(event.name), event.end_ns);
    });
  }
  return kept_;
}

SourceSink::State SourceSink::take(std::vector<Event>& events) {
  State state{};
  {
    const auto held = lock();
    events.clear();
    std::swap(events, waiting_);
    state = {passed_ns_, ended_};
  }
  quality_->observe(events);
  return state;
}

void SourceSink::end() {
  const auto held = lock();
  ended_ = true;
}
bool SourceSink::described() const {
  const auto held = lock();
  return described_;
}
bool SourceSink::ended() const {
  const auto held = lock();
  return ended_;
}
std::uint64_t SourceSink::progress() const {
  const auto held = lock();
  return progress_;
}
SourceInfo SourceSink::info() const {
  const auto held = lock();
  return info_;
}
Problems SourceSink::problems() const {
  const auto held = lock();
  return problems_;
}

}  // namespace pasta::session
