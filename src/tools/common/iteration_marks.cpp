#include "tools/common/iteration_marks.h"

#include <algorithm>
#include <limits>

#include "base/iteration_name.h"

namespace pasta::tools {
namespace {

// The text without its last number, which is put into `number`.
std::string without_number(std::string_view text, std::int64_t& number) {
  const base::NumberInName found = base::number_in_name(text);
  number = found.value;
  return std::string(text.substr(0, found.begin)) + std::string(text.substr(found.end));
}

}  // namespace

MarkCollector::Name MarkCollector::read(std::string_view text, ScopeDomain domain) {
  Name name;
  if (domain == ScopeDomain::kIteration) {
    name.sort = Sort::kStep;
    name.stem = without_number(text, name.number);
  } else if (text.starts_with(base::kOptimizerStep)) {
    name.sort = Sort::kOptimizer;
    name.stem = std::string(text);
  } else if ((domain == ScopeDomain::kAnnotation || domain == ScopeDomain::kUnknown) &&
             base::names_iteration(text)) {
    name.sort = Sort::kRange;
    name.stem = without_number(text, name.number);
  }
  return name;
}

void MarkCollector::add(const Event& scope, const Dictionary& dictionary) {
  if (scope.untimed() || (scope.flags & kAnnotation) != 0) return;
  const auto domain = static_cast<ScopeDomain>(scope.detail);
  if (domain == ScopeDomain::kModule || domain == ScopeDomain::kPython) return;
  const Name& name = names_[domain == ScopeDomain::kIteration ? 1 : 0].get(
      scope.name, [&] { return read(dictionary.text(scope.name), domain); });
  if (name.sort == Sort::kNone) return;
  marks_[{name.sort, name.stem, scope.lane.value}].push_back(
      {scope.start_ns, scope.end_ns, name.number});
}

void MarkCollector::take(MarkCollector& other) {
  for (auto& [key, marks] : other.marks_) {
    auto& own = marks_[key];
    own.insert(own.end(), marks.begin(), marks.end());
  }
  other.marks_.clear();
}

std::vector<IterationMark> MarkCollector::usable(const Key& key, std::vector<IterationMark> marks) {
  std::ranges::sort(
      marks, {}, [](const IterationMark& mark) { return std::pair(mark.start_ns, mark.end_ns); });
  if (key.sort == Sort::kOptimizer) {
    std::int64_t start = std::numeric_limits<std::int64_t>::min() + 1;
    for (IterationMark& mark : marks) {
      mark.start_ns = start;
      start = mark.end_ns = std::max(start, mark.end_ns);
    }
    return marks;
  }
  for (std::size_t i = 1; i < marks.size(); ++i) {
    // Marks inside marks: these are not iterations of one loop.
    if (marks[i].start_ns < marks[i - 1].end_ns && marks[i].end_ns <= marks[i - 1].end_ns)
      return {};
    marks[i].start_ns = std::max(marks[i].start_ns, marks[i - 1].end_ns);
  }
  // One range of this name is no loop; the framework's own mark is one all the same.
  if (key.sort == Sort::kRange && marks.size() < 2) return {};
  return marks;
}

IterationMarks MarkCollector::best() const {
  IterationMarks best;
  Sort best_sort = Sort::kNone;
  for (const auto& [key, marks] : marks_) {  // in order of sort
    if (best_sort != Sort::kNone && key.sort != best_sort) break;
    std::vector<IterationMark> list = usable(key, marks);
    // Of two that both follow the loop, the one with more marks is the inner one; two optimizers
    // that step in turn have as many: the iteration ends with the last.
    const bool better =
        best.list.empty() || (list.size() != best.list.size()
                                  ? (key.sort == Sort::kOptimizer ? list.size() < best.list.size()
                                                                  : list.size() > best.list.size())
                                  : !list.empty() && list.back().end_ns > best.list.back().end_ns);
    if (list.empty() || !better) continue;
    best = {key.stem, std::move(list), key.sort == Sort::kOptimizer};
    best_sort = key.sort;
  }
  return best;
}

}  // namespace pasta::tools
