// Marks of iterations among the ranges of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "tools/common/memo.h"

namespace pasta::tools {

struct IterationMark {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::int64_t number;  // -1 = none
  bool operator==(const IterationMark&) const = default;
};

struct IterationMarks {
  std::string name;  // without numbers
  // Ascending and disjoint. Where only the ends of iterations are marked, the first begins at the
  // smallest time, and each other where the one before ends.
  std::vector<IterationMark> list;
  bool ends_only = false;
};

// The marks of one process.
class MarkCollector {
 public:
  void add(const Event& scope, const Dictionary& dictionary);
  // Takes all of another's.
  void take(MarkCollector& other);
  // The best marks there are: the framework's own before numbered ranges before ends of optimizer
  // steps. Of equals, those that come first in time. Without marks, the list is empty.
  [[nodiscard]] IterationMarks best() const;

 private:
  enum class Sort : std::uint8_t { kNone, kStep, kRange, kOptimizer };
  struct Name {
    Sort sort = Sort::kNone;
    std::string stem;
    std::int64_t number = -1;
  };
  struct Key {
    Sort sort;
    std::string stem;
    std::uint32_t lane;
    auto operator<=>(const Key&) const = default;
  };
  static Name read(std::string_view text, ScopeDomain domain);
  static std::vector<IterationMark> usable(const Key& key, std::vector<IterationMark> marks);

  Memo<StringId, Name> names_[2];  // by whether the event's domain is kIteration
  std::map<Key, std::vector<IterationMark>> marks_;
};

}  // namespace pasta::tools
