#include "report/text_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/utf8.h"

namespace pasta::report {
namespace {

constexpr std::string_view kEllipsis = "…";

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Byte offsets of the code points of clean text, and its end.
std::vector<std::size_t> offsets_of(std::string_view text) {
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!continues(text[i])) offsets.push_back(i);
  }
  offsets.push_back(text.size());
  return offsets;
}

// Clean text that is cut by code points.
class Cuttable {
 public:
  explicit Cuttable(std::string_view text) : text_(text), offsets_(offsets_of(text)) {}
  [[nodiscard]] std::size_t width() const { return offsets_.size() - 1; }
  [[nodiscard]] std::string_view part(std::size_t from, std::size_t to) const {
    return text_.substr(offsets_[from], offsets_[to] - offsets_[from]);
  }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return part(i, i + 1); }

 private:
  std::string_view text_;
  std::vector<std::size_t> offsets_;
};

std::string cut_middle(const Cuttable& text, std::size_t width) {
  if (text.width() <= width) return std::string(text.part(0, text.width()));
  if (width == 0) return "";
  const std::size_t tail = (width - 1) * 2 / 5, head = width - 1 - tail;
  return std::string(text.part(0, head)) + std::string(kEllipsis) +
         std::string(text.part(text.width() - tail, text.width()));
}

// Cut so that the code point at `keep`, which the plain cut hides, stays: in a window of its own
// between two ellipses.
std::string cut_around(const Cuttable& text, std::size_t width, std::size_t keep) {
  constexpr std::size_t kLeast = 9;  // below it three pieces say nothing
  if (width < kLeast) return cut_middle(text, width);
  const std::size_t room = width - 2, head = room / 3, tail = room / 4;
  const std::size_t window = room - head - tail;
  const std::size_t last = text.width() - tail - window;
  const std::size_t from = std::clamp(keep - std::min(keep, window / 4), head, last);
  return std::string(text.part(0, head)) + std::string(kEllipsis) +
         std::string(text.part(from, from + window)) + std::string(kEllipsis) +
         std::string(text.part(text.width() - tail, text.width()));
}

// Cut with a number in the gap; a gap too narrow for it is cut plainly.
std::string cut_numbered(const Cuttable& text, std::size_t width, int number) {
  const std::string gap = std::string(kEllipsis) + std::to_string(number) + std::string(kEllipsis);
  if (width < width_of(gap)) return cut_middle(text, width);
  const std::size_t room = width - width_of(gap), tail = room * 2 / 5;
  return std::string(text.part(0, room - tail)) + gap +
         std::string(text.part(text.width() - tail, text.width()));
}

std::size_t common_prefix(const Cuttable& a, const Cuttable& b) {
  const std::size_t end = std::min(a.width(), b.width());
  std::size_t i = 0;
  while (i < end && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = base::utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 1 && (first < 0x20 || first == 0x7f)) {
      out += first == '\n' || first == '\t' || first == '\r' ? ' ' : '?';
    } else if (length == 0 ||
               (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0)) {
      out += '?';  // malformed, or a control character of the C1 set
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string words_of(std::string_view name) {
  std::string words = clean(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string out;
  for (; times > 0; --times) out += text;
  return out;
}

std::string pad(std::string_view text, std::size_t width, Align align) {
  const std::size_t used = width_of(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::kLeft ? std::string(text) + blanks : blanks + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) lines.push_back(std::move(line));
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && width_of(line) + 1 + width_of(word) > width) flush();
    while (width_of(word) > width) {
      const Cuttable cuttable(word);
      const std::string rest(cuttable.part(width, cuttable.width()));
      lines.emplace_back(cuttable.part(0, width));
      word = rest;
    }
    line += line.empty() ? word : ' ' + word;
  }
  flush();
  return lines;
}

std::string shorten(std::string_view text, std::size_t width) {
  return cut_middle(Cuttable(text), width);
}

void shorten_all(std::vector<std::string>& names, std::size_t width) {
  std::map<std::string, std::set<std::string>> by_short;
  for (const std::string& name : names) by_short[shorten(name, width)].insert(name);
  std::map<std::string, std::string> shown;
  for (const auto& [short_name, group] : by_short) {
    // In a sorted group the neighbours share the longest prefixes.
    for (auto name = group.begin(); name != group.end(); ++name) {
      if (group.size() == 1) {
        shown[*name] = short_name;
        break;
      }
      const Cuttable text(*name);
      std::size_t differs = 0;
      if (name != group.begin()) differs = common_prefix(text, Cuttable(*std::prev(name)));
      if (std::next(name) != group.end()) {
        differs = std::max(differs, common_prefix(text, Cuttable(*std::next(name))));
      }
      shown[*name] = cut_around(text, width, differs);
    }
  }
  // What is still equal, such as names that differ in the length of one run, gets a number.
  std::map<std::string, int> seen;
  for (auto& [name, short_name] : shown) {
    const int number = ++seen[short_name];
    if (number > 1) short_name = cut_numbered(Cuttable(name), width, number);
  }
  for (std::string& name : names) name = shown[name];
}

}  // namespace pasta::report
