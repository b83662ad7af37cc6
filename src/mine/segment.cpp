#include "mine/segment.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace pasta::mine {
namespace {

constexpr std::uint64_t kEdit = 16;  // costs are in sixteenths, to have fractions of an edit
constexpr std::uint64_t kLeave = 2 * kEdit;  // so that a stray symbol is an edit, not a way out
constexpr std::uint64_t kUnreachable = ~std::uint64_t{0};
constexpr std::uint32_t kNone = 0xffff'ffff;
// A string may begin anywhere in the pattern; so many symbols decide where.
constexpr std::uint32_t kUndecided = 64;

// A finished copy on some path, or (where begin == end) only the end of what was outside.
struct Node {
  Copy copy;
  std::uint32_t previous = kNone;
  std::uint32_t row = 0;  // symbols of the string read until here
};

// The best path that has read the symbols up to the current row and `phase` symbols of the pattern.
struct Cell {
  std::uint64_t cost = 0;
  std::uint32_t phase = 0;
  std::uint32_t first = 0;  // phase at which the copy began
  std::uint32_t begin = 0;  // row at which the copy began
  std::uint32_t node = kNone;
  std::uint32_t substitutions = 0;
  std::uint32_t insertions = 0;
  std::uint32_t deletions = 0;
};

// The best path whose last symbol is in no copy.
struct Outside {
  std::uint64_t cost = 0;
  std::uint32_t node = kNone;
  Cell left_from;         // the unfinished copy before it, if `broke_off`
  std::uint32_t row = 0;  // where that ended
  bool broke_off = false;
};

class Segmenter {
 public:
  Segmenter(Symbols string, Symbols pattern, const SegmentOptions& options)
      : string_(string),
        pattern_(pattern),
        size_(static_cast<std::uint32_t>(pattern.size())),
        outside_cost_(static_cast<std::uint64_t>(
            std::llround(std::clamp(options.max_error, 0.0, 1.0) * double{kEdit}))),
        beam_(std::uint64_t{options.beam} * kEdit),
        most_cells_(std::size_t{8} * options.beam + 8) {
    for (std::uint32_t phase = 0; phase < size_; ++phase)
      places_.push_back({pattern[phase], phase});
    std::ranges::stable_sort(places_, {}, &Place::symbol);
  }

  Segmentation run() {
    for (std::uint32_t phase = 0; phase < size_; ++phase) {
      // A whole copy is preferred where both would do.
      cells_.push_back({.cost = phase == 0 ? 0U : 1U, .phase = phase, .first = phase});
    }
    for (row_ = 1; row_ <= string_.size(); ++row_) {
      advance(string_[row_ - 1]);
      leave_and_enter();
      prune();
      if (nodes_.size() > collect_at_) collect();
    }
    --row_;
    return trace_back();
  }

 private:
  struct Place {
    std::uint32_t symbol;
    std::uint32_t phase;
  };

  [[nodiscard]] Copy copy_of(const Cell& cell, std::uint32_t end) const {
    Copy copy{cell.begin, end, cell.first, cell.phase, {}};
    copy.edits = {cell.phase - cell.first - cell.substitutions - cell.deletions, cell.substitutions,
                  cell.insertions, cell.deletions};
    return copy;
  }

  std::uint32_t add_node(const Copy& copy, std::uint32_t previous) {
    nodes_.push_back({copy, previous, row_});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  // `cell` has read the whole pattern: the next copy begins.
  Cell wrapped(const Cell& cell) {
    return {.cost = cell.cost, .begin = row_, .node = add_node(copy_of(cell, row_), cell.node)};
  }

  // Every state reads one more symbol of the string: against the pattern's next, as an insertion,
  // or after skipping to where the pattern has it. Where the next is that symbol, the others are
  // never better: what is inserted or skipped then can be later. Nor is skipping before a
  // substitution.
  void advance(std::uint32_t symbol) {
    next_.clear();
    Cell last;  // that has read the whole pattern
    last.cost = kUnreachable;
    const Cell* lead = nullptr;
    for (const Cell& cell : cells_) {
      Cell moves = cell;
      ++moves.phase;
      if (pattern_[cell.phase] != symbol) {
        next_.push_back(cell);
        next_.back().cost += kEdit;
        ++next_.back().insertions;
        moves.cost += kEdit;
        ++moves.substitutions;
      }
      if (lead == nullptr || cell.cost < lead->cost) lead = &cell;
      if (moves.phase < size_) {
        next_.push_back(moves);
      } else if (moves.cost < last.cost) {
        last = moves;
      }
    }
    if (lead != nullptr) skip_to(symbol, *lead, last);
    std::swap(cells_, next_);
    // Nearly in order already.
    for (std::size_t i = 1; i < cells_.size(); ++i) {
      for (std::size_t at = i; at > 0 && before(cells_[at], cells_[at - 1]); --at) {
        std::swap(cells_[at], cells_[at - 1]);
      }
    }
    const auto same = [](const Cell& a, const Cell& b) { return a.phase == b.phase; };
    cells_.erase(std::unique(cells_.begin(), cells_.end(), same), cells_.end());
    if (last.cost < cost_at_start()) to_start(wrapped(last));
  }

  static bool before(const Cell& a, const Cell& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.cost < b.cost;
  }

  // Offers the cheapest way to each place where the pattern has the symbol, over its end into the
  // next copy too.
  void skip_to(std::uint32_t symbol, const Cell& lead, Cell& last) {
    const std::uint64_t limit = lead.cost + beam_;
    const bool matches = pattern_[lead.phase] == symbol;
    const std::uint64_t lead_cost = lead.cost + (matches ? 0 : kEdit);
    const Cell* over = &lead;  // from which the end is nearest
    for (const Cell& cell : cells_) {
      if (cell.cost + kEdit * (size_ - cell.phase) < over->cost + kEdit * (size_ - over->phase)) {
        over = &cell;
      }
    }
    const std::uint64_t over_cost = over->cost + kEdit * (size_ - over->phase);
    const Cell* from = nullptr;
    std::size_t next = 0;
    const auto by_symbol = [](const Place& a, const Place& b) { return a.symbol < b.symbol; };
    const auto found =
        std::equal_range(places_.begin(), places_.end(), Place{symbol, 0}, by_symbol);
    for (const Place& place : std::span(found.first, found.second)) {
      const auto cost_to = [&](const Cell& cell) {
        return cell.cost + kEdit * (place.phase - cell.phase);
      };
      for (; next < cells_.size() && cells_[next].phase < place.phase; ++next) {
        if (from == nullptr || cost_to(cells_[next]) < cost_to(*from)) from = &cells_[next];
      }
      const std::uint64_t direct = from == nullptr ? kUnreachable : cost_to(*from);
      const std::uint64_t around = over_cost + kEdit * place.phase;
      const std::uint64_t cost = std::min(direct, around);
      if (cost > limit) continue;
      // As far as the best one gets by as many edits.
      const std::uint32_t phase = place.phase + 1;
      const std::uint32_t reached = lead.phase + 1;
      const std::uint32_t apart = phase > reached ? phase - reached : reached - phase;
      if (cost >= lead_cost + kEdit * std::min(apart, size_ - apart)) continue;
      Cell cell;
      if (direct <= around) {
        cell = *from;
        cell.deletions += place.phase - from->phase;
      } else {
        Cell whole = *over;
        whole.deletions += size_ - over->phase;
        whole.phase = size_;
        cell.begin = row_ - 1;
        cell.node = add_node(copy_of(whole, row_ - 1), over->node);
        cell.deletions = place.phase;
      }
      cell.cost = cost;
      cell.phase = phase;
      if (phase < size_) {
        next_.push_back(cell);
      } else if (cell.cost < last.cost) {
        last = cell;
      }
    }
  }

  [[nodiscard]] std::uint64_t cost_at_start() const {
    return cells_.empty() || cells_.front().phase != 0 ? kUnreachable : cells_.front().cost;
  }
  void to_start(const Cell& cell) {
    if (cost_at_start() == kUnreachable) cells_.insert(cells_.begin(), Cell{});
    cells_.front() = cell;
  }

  void leave_and_enter() {
    Outside leaves;
    leaves.cost = kUnreachable;
    for (const Cell& cell : cells_) {
      const bool between_copies = cell.phase == 0;
      if (between_copies && cell.begin != row_) continue;  // better left before its insertions
      const std::uint64_t cost =
          cell.cost + kLeave + (between_copies ? 0 : outside_cost_ * (size_ - cell.phase));
      if (cost < leaves.cost) leaves = {cost, cell.node, cell, row_, !between_copies};
    }
    outside_.cost += outside_cost_;
    if (leaves.cost < outside_.cost) outside_ = leaves;
    if (outside_.cost >= cost_at_start() || outside_.cost > best() + beam_) return;
    std::uint32_t before = outside_.node;
    if (outside_.broke_off) before = add_node(copy_of(outside_.left_from, outside_.row), before);
    to_start(
        {.cost = outside_.cost, .begin = row_, .node = add_node({row_, row_, 0, 0, {}}, before)});
  }

  [[nodiscard]] std::uint64_t best() const {
    std::uint64_t least = outside_.cost;
    for (const Cell& cell : cells_) least = std::min(least, cell.cost);
    return least;
  }

  void prune() {
    std::uint64_t limit = best() + beam_;
    // A state that another one reaches by as many edits, or is reached from so, is never better:
    // what lies ahead is skipped to when a symbol asks for it, and what lies behind has to read
    // what the other can insert.
    std::uint64_t bound = kUnreachable;
    std::uint32_t phase = 0;
    const auto dominated = [&](const Cell& cell) {
      const std::uint32_t apart = cell.phase > phase ? cell.phase - phase : phase - cell.phase;
      const std::uint64_t reached = bound == kUnreachable ? bound : bound + kEdit * apart;
      if (cell.cost >= reached) return true;
      bound = cell.cost;
      phase = cell.phase;
      return cell.cost > limit;
    };
    std::erase_if(cells_, dominated);
    bound = kUnreachable;
    std::size_t kept = cells_.size();
    for (std::size_t i = cells_.size(); i-- > 0;) {
      if (!dominated(cells_[i])) cells_[--kept] = cells_[i];
    }
    cells_.erase(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(kept));
    if (cells_.size() <= most_cells_ || row_ < kUndecided) return;
    costs_.clear();
    for (const Cell& cell : cells_) costs_.push_back(cell.cost);
    const auto middle = costs_.begin() + static_cast<std::ptrdiff_t>(most_cells_);
    std::nth_element(costs_.begin(), middle, costs_.end());
    limit = *middle;
    std::size_t room = most_cells_;
    std::erase_if(cells_, [&](const Cell& cell) {
      if (cell.cost > limit || room == 0) return true;
      --room;
      return false;
    });
  }

  // Drops the nodes that no living path goes through.
  void collect() {
    std::vector<std::uint32_t> moved(nodes_.size(), kNone);
    const auto mark = [&](std::uint32_t node) {
      for (; node != kNone && moved[node] == kNone; node = nodes_[node].previous) moved[node] = 0;
    };
    for (const Cell& cell : cells_) mark(cell.node);
    mark(outside_.node);
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (moved[i] == kNone) continue;
      moved[i] = kept;
      nodes_[kept] = nodes_[i];
      // A node is younger than the one before it, which has therefore its new place.
      std::uint32_t& previous = nodes_[kept].previous;
      if (previous != kNone) previous = moved[previous];
      ++kept;
    }
    nodes_.resize(kept);
    for (Cell& cell : cells_) {
      if (cell.node != kNone) cell.node = moved[cell.node];
    }
    if (outside_.node != kNone) outside_.node = moved[outside_.node];
    collect_at_ = 2 * nodes_.size() + kCollectAt;
  }

  Segmentation trace_back() {
    Segmentation result;
    const Cell* end = nullptr;
    for (const Cell& cell : cells_) {
      if (end == nullptr || cell.cost < end->cost) end = &cell;
    }
    std::uint32_t node = outside_.node;
    const auto keep = [&result](const Copy& copy) {
      if (copy.begin < copy.end) result.copies.push_back(copy);
    };
    if (end != nullptr && end->cost <= outside_.cost) {
      if (end->phase > end->first) keep(copy_of(*end, row_));
      node = end->node;
    } else if (outside_.broke_off) {
      keep(copy_of(outside_.left_from, outside_.row));
    }
    for (; node != kNone; node = nodes_[node].previous) keep(nodes_[node].copy);
    std::reverse(result.copies.begin(), result.copies.end());
    result.outside = row_;
    for (const Copy& copy : result.copies) result.outside -= copy.end - copy.begin;
    return result;
  }

  static constexpr std::size_t kCollectAt = 1U << 16U;

  Symbols string_;
  Symbols pattern_;
  std::uint32_t size_;
  std::uint64_t outside_cost_;
  std::uint64_t beam_;
  std::size_t most_cells_;
  std::uint32_t row_ = 0;
  std::vector<Place> places_;  // of the pattern's symbols, by symbol, then ascending
  std::vector<Cell> cells_;    // by phase
  std::vector<Cell> next_;
  Outside outside_;
  std::vector<Node> nodes_;
  std::size_t collect_at_ = kCollectAt;
  std::vector<std::uint64_t> costs_;
};

}  // namespace

Segmentation segment(Symbols string, Symbols pattern, const SegmentOptions& options) {
  if (string.empty() || pattern.empty()) {
    return {{}, static_cast<std::uint32_t>(string.size())};
  }
  return Segmenter(string, pattern, options).run();
}

}  // namespace pasta::mine
