#include "adapters/nvtx/text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pasta::adapters::nvtx {
namespace {

constexpr char32_t kNoCharacter = 0xfffd;
constexpr int kMostDigits = 17;

std::size_t encode(char32_t c, char* to) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) {
    to[0] = byte(c);
    return 1;
  }
  if (c < 0x800) {
    to[0] = byte(0xc0 | c >> 6);
    to[1] = byte(0x80 | (c & 0x3f));
    return 2;
  }
  if (c < 0x10000) {
    to[0] = byte(0xe0 | c >> 12);
    to[1] = byte(0x80 | (c >> 6 & 0x3f));
    to[2] = byte(0x80 | (c & 0x3f));
    return 3;
  }
  to[0] = byte(0xf0 | c >> 18);
  to[1] = byte(0x80 | (c >> 12 & 0x3f));
  to[2] = byte(0x80 | (c >> 6 & 0x3f));
  to[3] = byte(0x80 | (c & 0x3f));
  return 4;
}

std::string_view digits(std::uint64_t value, char (&to)[20]) {
  std::size_t at = sizeof to;
  do to[--at] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  return {to + at, sizeof to - at};
}

// `same(text)`: whether this text is the number again.
template <class Same>
std::string_view shortest(double value, int fewest, char (&to)[64], Same same) {
  for (int precision = fewest; precision <= kMostDigits; ++precision) {
    std::snprintf(to, sizeof to, "%.*g", precision, value);
    if (same(to)) break;
  }
  // The program's locale may have another decimal point, of several bytes.
  std::size_t size = 0;
  bool in_point = false;
  for (const char* from = to; *from != '\0'; ++from) {
    const bool known = (*from >= '0' && *from <= '9') || *from == '-' || *from == '+' ||
                       *from == 'e' || *from == '.';
    if (known || !in_point) to[size++] = known ? *from : '.';
    in_point = !known;
  }
  return {to, size};
}

}  // namespace

std::size_t to_utf8(const wchar_t* text, char* to, std::size_t room) noexcept {
  std::size_t size = 0;
  for (; *text != L'\0'; ++text) {
    auto c = static_cast<char32_t>(*text);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = kNoCharacter;
    char bytes[4];
    const std::size_t count = encode(c, bytes);
    if (count > room - size) break;
    std::memcpy(to + size, bytes, count);
    size += count;
  }
  return size;
}

bool JsonMembers::put(char c) noexcept {
  // The last byte is for the brace.
  if (size_ + 1 >= room_) return false;
  memory_[size_++] = c;
  return true;
}

bool JsonMembers::put(std::string_view text) noexcept {
  if (text.size() >= room_ - size_) return false;
  if (!text.empty()) std::memcpy(memory_ + size_, text.data(), text.size());
  size_ += text.size();
  return true;
}

bool JsonMembers::begin(std::string_view key) noexcept {
  return (size_ == 1 || put(',')) && put('"') && put(key) && put("\":");
}

void JsonMembers::settle(std::size_t from, bool whole) noexcept {
  if (!whole) size_ = from;
}

void JsonMembers::add(std::string_view key, std::string_view value) noexcept {
  const std::size_t from = size_;
  bool whole = begin(key);
  for (std::size_t i = 0; i < value.size() && whole; ++i) {
    if (value[i] != ' ') whole = put(value[i]);
  }
  settle(from, whole);
}

void JsonMembers::add_text(std::string_view key, std::string_view text) noexcept {
  constexpr char kHex[] = "0123456789abcdef";
  const std::size_t from = size_;
  bool whole = begin(key) && put('"');
  for (std::size_t i = 0; i < text.size() && whole; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      whole = put('\\') && put(text[i]);
    } else if (c < 0x20) {
      whole = put("\\u00") && put(kHex[c >> 4]) && put(kHex[c & 0xf]);
    } else {
      whole = put(text[i]);
    }
  }
  settle(from, whole && put('"'));
}

void JsonMembers::add_number(std::string_view key, std::uint64_t value) noexcept {
  char text[20];
  const std::size_t from = size_;
  settle(from, begin(key) && put(digits(value, text)));
}

void JsonMembers::add_number(std::string_view key, std::int64_t value) noexcept {
  char text[20];
  const std::size_t from = size_;
  const std::uint64_t magnitude =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  settle(from, begin(key) && (value >= 0 || put('-')) && put(digits(magnitude, text)));
}

void JsonMembers::add_number(std::string_view key, double value) noexcept {
  if (!std::isfinite(value)) {
    add_text(key, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  char text[64];
  add(key,
      shortest(value, 15, text, [&](const char* t) { return std::strtod(t, nullptr) == value; }));
}

void JsonMembers::add_number(std::string_view key, float value) noexcept {
  if (!std::isfinite(value)) {
    add_number(key, static_cast<double>(value));
    return;
  }
  char text[64];
  add(key, shortest(static_cast<double>(value), 6, text,
                    [&](const char* t) { return std::strtof(t, nullptr) == value; }));
}

std::string_view JsonMembers::object() noexcept {
  if (size_ == 1) return {};
  memory_[0] = '{';
  memory_[size_] = '}';
  return {memory_, size_ + 1};
}

}  // namespace pasta::adapters::nvtx
