// Counts the iterations of a program by whatever marks them. Needs no libstdc++: this header is for
// the collector too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pasta::base {

// From weak to strong.
enum class IterationMark : std::uint8_t {
  kNone,
  kForward,    // a module that no other calls is called
  kOptimizer,  // an optimizer's step ends
  kRange,      // a range begins that is called as iterations are
  kStep,       // pasta_step()
};

// Of all marks the strongest kind that comes counts, and of that the name that came twice first: a
// loop may hold more than one. A kind that is stronger begins to count anew. One alone is no
// iteration yet, as a stronger mark may follow; but pasta_step() can mean nothing else.
class IterationCounter {
 public:
  // `name`: a hash, or anything else that tells names apart. Whether an iteration has ended.
  constexpr bool mark(IterationMark kind, std::uint64_t name) {
    if (kind < kind_ || (kind == kind_ && name != name_)) return false;
    if (kind == kind_) {
      ++ended_;
      return true;
    }
    if (kind != IterationMark::kStep && !came_before(kind, name)) return false;
    kind_ = kind;
    name_ = name;
    ended_ = 1;
    return true;
  }
  [[nodiscard]] constexpr std::uint64_t ended() const { return ended_; }

 private:
  static constexpr std::size_t kKinds = 5, kNames = 16;

  constexpr bool came_before(IterationMark kind, std::uint64_t name) {
    const auto at = static_cast<std::size_t>(kind);
    for (std::size_t i = 0; i < counts_[at]; ++i) {
      if (names_[at][i] == name) return true;
    }
    if (counts_[at] < kNames) names_[at][counts_[at]++] = name;
    return false;
  }

  IterationMark kind_ = IterationMark::kNone;
  std::uint64_t name_ = 0, ended_ = 0;
  std::uint64_t names_[kKinds][kNames] = {};  // of kinds that do not count, those that came
  std::size_t counts_[kKinds] = {};
};

}  // namespace pasta::base
