#include "session/rank_names.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace pasta::session {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_separator(char c) { return c == '_' || c == '-' || c == '.' || c == '='; }

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

// Takes a number off the front of `text`. A rank has at most nine digits.
std::optional<std::int32_t> take_number(std::string_view& text) {
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || digits > 9) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

void skip_separator(std::string_view& text) {
  if (!text.empty() && is_separator(text[0])) text.remove_prefix(1);
}

// M of "of M", nothing else following M directly.
std::int32_t take_of(std::string_view text) {
  skip_separator(text);
  if (!text.starts_with("of")) return 0;
  text.remove_prefix(2);
  skip_separator(text);
  const auto world = take_number(text);
  const bool ends = text.empty() || !(is_letter(text[0]) || is_digit(text[0]));
  return world && ends ? *world : 0;
}

struct Found {
  std::int32_t number = 0;
  std::int32_t of = 0;
  bool operator==(const Found&) const = default;
};

// What stands after one of the words; of several that differ, none is believed.
class Reading {
 public:
  void add(Found found) {
    if (found_ && *found_ != found) doubtful_ = true;
    found_ = found;
  }
  [[nodiscard]] bool any() const { return found_.has_value(); }
  [[nodiscard]] std::optional<Found> get() const { return doubtful_ ? std::nullopt : found_; }

 private:
  std::optional<Found> found_;
  bool doubtful_ = false;
};

std::optional<Found> number_after_word(std::string_view rest, bool may_be_apart) {
  if (may_be_apart) skip_separator(rest);
  const auto number = take_number(rest);
  if (!number) return std::nullopt;
  const std::int32_t of = take_of(rest);
  if (of == 0 && !rest.empty() && is_letter(rest[0])) return std::nullopt;
  return Found{*number, of};
}

std::optional<Found> rank_in(const std::string& name) {
  const std::string text = lower(name);
  Reading rank, worker, letter, of;
  for (std::size_t begin = 0; begin < text.size();) {
    const bool letters = is_letter(text[begin]);
    std::size_t end = begin + 1;
    while (end < text.size() && is_letter(text[end]) == letters &&
           (letters || is_digit(text[end]) == is_digit(text[begin]))) {
      ++end;
    }
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const std::string_view before = std::string_view(text).substr(0, begin);
    const std::string_view rest = std::string_view(text).substr(end);
    if (word == "rank") {
      const bool in_node = before.ends_with("local_") || before.ends_with("local-");
      const auto found = number_after_word(rest, true);
      if (found && !in_node) rank.add(*found);
    } else if (word == "worker") {
      if (const auto found = number_after_word(rest, true)) worker.add(*found);
    } else if (word == "r" && (before.empty() || !is_digit(before.back()))) {
      if (const auto found = number_after_word(rest, false)) letter.add(*found);
    } else if (is_digit(word[0]) && (before.empty() || !is_letter(before.back()))) {
      std::string_view number_text = word;
      const auto number = take_number(number_text);
      const std::int32_t world = take_of(rest);
      if (number && world > 0 && *number <= world) of.add({*number, world});
    }
    begin = end;
  }
  for (const Reading* reading : {&rank, &worker, &letter, &of}) {
    if (reading->any()) return reading->get();
  }
  return std::nullopt;
}

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::vector<NamedRank> ranks_in_names(std::span<const std::string> paths) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& path : paths) parts.push_back(components(path));
  std::size_t common = 0;
  const auto shared = [&] {
    return std::all_of(parts.begin(), parts.end(), [&](const auto& one) {
      return common + 1 < one.size() && one[common] == parts[0][common];
    });
  };
  while (!parts.empty() && shared()) ++common;

  std::vector<std::optional<Found>> found;
  bool from_one = false;
  for (const auto& one : parts) {
    auto& mine = found.emplace_back();
    for (std::size_t i = one.size(); i > common && !mine; --i) mine = rank_in(one[i - 1]);
    from_one = from_one || (mine && mine->of > 0 && mine->number == mine->of);
  }
  std::vector<NamedRank> ranks;
  for (const auto& mine : found) {
    NamedRank& rank = ranks.emplace_back();
    if (!mine) continue;
    const bool shifted = from_one && mine->of > 0;
    if (shifted && mine->number == 0) continue;  // some from 0, some from 1
    rank = {mine->number - (shifted ? 1 : 0), mine->of};
  }
  return ranks;
}

std::optional<std::int32_t> rank_in_label(std::string_view label) {
  constexpr std::string_view kWord = "rank ";
  if (!label.starts_with(kWord)) return std::nullopt;
  label.remove_prefix(kWord.size());
  const auto rank = take_number(label);
  return label.empty() ? rank : std::nullopt;
}

}  // namespace pasta::session
