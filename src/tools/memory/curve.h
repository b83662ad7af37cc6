// A value over time in a bounded number of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pasta::tools::memory {

// Keeps for each n changes in a row the highest and the last, so that no maximum is lost and the
// level between two groups of changes is right. n is 1 as long as the points suffice, and doubles
// when they do not.
class Curve {
 public:
  static constexpr std::size_t kMaxPoints = 2000;

  // In order of time.
  void add(std::int64_t time_ns, std::int64_t value);
  [[nodiscard]] bool empty() const { return groups_.empty(); }
  // At most kMaxPoints, with times since `origin_ns`.
  [[nodiscard]] std::vector<std::pair<std::int64_t, double>> points(std::int64_t origin_ns) const;

 private:
  struct Point {
    std::int64_t time_ns, value;
    bool operator==(const Point&) const = default;
  };
  struct Group {
    Point highest, last;
  };
  static constexpr std::size_t kMaxGroups = kMaxPoints / 2;

  static void append(Group& group, const Group& later);

  std::vector<Group> groups_;
  std::size_t group_size_ = 1;  // n
  std::size_t in_last_ = 0;     // changes in the last group
};

}  // namespace pasta::tools::memory
