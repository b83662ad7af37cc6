// The longest of many ranges, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace pasta::tools {

// Keeps the `kept` longest of the ranges added, the earlier of equally long ones, in the order in
// which they came; now and then up to twice as many. Range has start_ns <= end_ns.
template <class Range>
class Longest {
 public:
  explicit Longest(std::size_t kept) : kept_(kept) {}

  void add(const Range& range) {
    if (length(range) < shortest_) return;
    ranges_.push_back(range);
    if (ranges_.size() == 2 * kept_) drop_shorter();
  }

  // In order of arrival. The newest may be changed or taken away.
  std::vector<Range>& ranges() { return ranges_; }
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

 private:
  static std::uint64_t length(const Range& range) {
    return static_cast<std::uint64_t>(range.end_ns) - static_cast<std::uint64_t>(range.start_ns);
  }

  void drop_shorter() {
    std::vector<std::uint64_t> lengths;
    lengths.reserve(ranges_.size());
    for (const Range& range : ranges_) lengths.push_back(length(range));
    const auto last_kept = lengths.begin() + static_cast<std::ptrdiff_t>(kept_ - 1);
    std::nth_element(lengths.begin(), last_kept, lengths.end(), std::greater<>());
    const std::uint64_t least = *last_kept;
    auto equal = static_cast<std::size_t>(std::count(lengths.begin(), last_kept + 1, least));
    std::erase_if(ranges_, [&](const Range& range) {
      if (length(range) != least) return length(range) < least;
      if (equal == 0) return true;
      --equal;
      return false;
    });
    shortest_ = least + 1;
  }

  std::size_t kept_;
  std::uint64_t shortest_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace pasta::tools
