// How much launched work waits in a queue over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pasta::tools::launches {

class QueueLength {
 public:
  // A piece of work that waited in [launched_ns, started_ns); launched_ns <= started_ns. Any order.
  void add(std::int64_t launched_ns, std::int64_t started_ns) {
    launched_.push_back(launched_ns);
    started_.push_back(started_ns);
  }
  [[nodiscard]] std::size_t count() const { return launched_.size(); }

  struct Shape {
    std::int64_t max = 0;
    double mean = 0;          // over its changes, each launch and each start being one
    double mean_in_time = 0;  // from the first launch to the last start; 0 when that takes no time
    std::int64_t empty_ns = 0;  // of that time, with nothing waiting
    std::int64_t span_ns = 0;
    std::vector<std::pair<std::int64_t, double>> points;  // (time, length)
  };
  // `points` are the length after the launches, and after the starts, of each moment, when they can
  // be at most `max_points`; else the largest in each of `max_points` equal pieces of the time, of
  // those pieces in which it changed. Sorts what was added.
  Shape shape(std::size_t max_points);

 private:
  std::vector<std::int64_t> launched_;
  std::vector<std::int64_t> started_;
};

}  // namespace pasta::tools::launches
