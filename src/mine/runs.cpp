#include "mine/runs.h"

#include <algorithm>
#include <tuple>

namespace pasta::mine {
namespace {

constexpr std::uint32_t kAhead = 32;

// A stretch in which every symbol equals the one a period later; as wide as it gets.
struct Stretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class Finder {
 public:
  explicit Finder(const SuffixArray& index)
      : text_(index.text().ranks()),
        order_(text_.size()),
        smaller_(text_.size()),
        greater_(text_.size()),
        seen_(text_.size()) {
    const auto positions = index.positions();
    for (std::uint32_t row = 0; row < size(); ++row) {
      if (row + kAhead < size()) __builtin_prefetch(&order_[positions[row + kAhead]], 1);
      order_[positions[row]] = row;
    }
  }

  std::vector<Run> find() {
    for (std::uint32_t at = size(); at-- > 0;) {
      std::uint32_t next = at + 1;
      while (next < size() && order_[next] > order_[at]) next = smaller_[next];
      smaller_[at] = next;
      if (next < size()) consider(at, next);
      next = at + 1;
      while (next < size() && order_[next] < order_[at]) next = greater_[next];
      greater_[at] = next;
      if (next < size()) consider(at, next);
    }
    const auto by_place = [](const Run& a, const Run& b) {
      return std::tie(a.begin, a.period) < std::tie(b.begin, b.period);
    };
    std::sort(runs_.begin(), runs_.end(), by_place);
    runs_.erase(std::unique(runs_.begin(), runs_.end()), runs_.end());
    return std::move(runs_);
  }

 private:
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }

  void consider(std::uint32_t at, std::uint32_t next) {
    // The period must hold at the block's first symbol, or just before it.
    if (text_[at] != text_[next] && (at == 0 || text_[at - 1] != text_[next - 1])) return;
    const std::uint32_t period = next - at;
    Stretch& seen = seen_[period];
    if (seen.begin <= at && next <= seen.end) return;
    std::uint32_t begin = at;
    while (begin > 0 && text_[begin - 1] == text_[begin - 1 + period]) --begin;
    std::uint32_t end = next;
    while (end < size() && text_[end] == text_[end - period]) ++end;
    seen = {begin, end};
    if (end - begin >= 2 * period) runs_.push_back({begin, end, period});
  }

  Symbols text_;
  std::vector<std::uint32_t> order_;  // row of each suffix
  std::vector<std::uint32_t> smaller_;
  std::vector<std::uint32_t> greater_;
  std::vector<Stretch> seen_;  // by period, the last one that was measured
  std::vector<Run> runs_;
};

}  // namespace

std::vector<Run> find_runs(const SuffixArray& index) { return Finder(index).find(); }

}  // namespace pasta::mine
