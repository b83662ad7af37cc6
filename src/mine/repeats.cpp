#include "mine/repeats.h"

namespace pasta::mine {

std::uint32_t count_apart(const SuffixArray& index, const Repeat& repeat,
                          std::vector<std::uint32_t>& scratch) {
  if (!repeat.occurs_apart()) return 1;
  const auto all = occurrences(index, repeat);
  scratch.assign(all.begin(), all.end());
  std::sort(scratch.begin(), scratch.end());
  std::uint32_t count = 0;
  std::uint32_t free_from = 0;
  for (const std::uint32_t position : scratch) {
    if (position < free_from) continue;
    ++count;
    free_from = position + repeat.length;
  }
  return count;
}

std::vector<std::uint32_t> occurrences_apart(const SuffixArray& index, const Repeat& repeat) {
  const auto all = occurrences(index, repeat);
  std::vector<std::uint32_t> chosen(all.begin(), all.end());
  std::sort(chosen.begin(), chosen.end());
  std::uint32_t free_from = 0;
  std::erase_if(chosen, [&](std::uint32_t position) {
    if (position < free_from) return true;
    free_from = position + repeat.length;
    return false;
  });
  return chosen;
}

}  // namespace pasta::mine
