#include "tools/common/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::tools {

bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const auto take = [&](std::string_view& text) {
        const auto* end = std::find_if_not(text.begin(), text.end(), digit);
        std::string_view number(text.begin(), static_cast<std::size_t>(end - text.begin()));
        text.remove_prefix(number.size());
        number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
        return number;
      };
      const std::string_view x = take(a), y = take(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::string queue_label(const Dictionary& dictionary, LaneId queue) {
  const Lane lane = dictionary.lane(queue);
  if (lane.name) return std::string(dictionary.text(lane.name));
  if (lane.native_text) return std::string(dictionary.text(lane.native_text));
  return fmt::format("stream {}", lane.native_id);
}

}  // namespace pasta::tools
