// Where one adapter puts what it saw.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "pasta/adapter.h"
#include "session/blobs.h"
#include "session/merger.h"
#include "session/quality.h"

namespace pasta::session {

// Sees to it that what goes on is in order of end: an event that ends before one that came before
// it, or before what advance() promised, is counted as late and dropped.
//
// Direct: events are handed on as they lie, in spans of at most `batch`, on the pushing thread; for
// one stored source, which then costs no copy and no lock. Otherwise they wait here, under a lock,
// until the merge takes them. `quality` sees what goes on. `more` makes the sink of one more source
// of the same adapter.
class SourceSink final : public EventSink, public MergeInput {
 public:
  using Receive = std::function<void(std::span<const Event>)>;
  using More = std::function<SourceSink&()>;
  // Direct when `receive` is set.
  SourceSink(Dictionary& dictionary, Blobs& blobs, Quality& quality, std::size_t batch,
             Receive receive, More more);

  Dictionary& dictionary() override { return *dictionary_; }
  void describe(const SourceInfo& info) override;
  EventSink& add_source(const SourceInfo& info) override;
  void push(std::span<const Event> events) override;
  void push(Event event, std::span<const std::byte> blob) override;
  void advance(std::int64_t end_ns) override;
  void report(const Problem& problem) override;

  State take(std::vector<Event>& events) override;

  // From now on no longer direct. Before the first push.
  void wait() { receive_ = nullptr; }
  // No more will come: what is pushed from now on is late.
  void end();
  [[nodiscard]] bool described() const;
  [[nodiscard]] bool ended() const;
  // Grows while the adapter pushes or advances.
  [[nodiscard]] std::uint64_t progress() const;
  [[nodiscard]] SourceInfo info() const;
  [[nodiscard]] Problems problems() const;

 private:
  // Locks only what several threads can reach.
  [[nodiscard]] std::unique_lock<std::mutex> lock() const {
    return receive_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
  }
  std::span<const Event> in_order(std::span<const Event> events);

  Dictionary* dictionary_;
  Blobs* blobs_;
  Quality* quality_;  // touched by the thread that receives or takes
  std::size_t batch_;
  Receive receive_;
  More more_;
  mutable std::mutex mutex_;
  SourceInfo info_;
  bool described_ = false;
  bool ended_ = false;
  std::uint64_t progress_ = 0;
  std::int64_t passed_ns_ = std::numeric_limits<std::int64_t>::min();
  std::vector<Event> waiting_;
  std::vector<Event> kept_;  // of a span with late events
  Problems problems_;
};

}  // namespace pasta::session
