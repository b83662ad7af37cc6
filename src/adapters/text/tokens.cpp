#include "adapters/text/tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/decimal.h"
#include "base/utf8.h"

namespace pasta::adapters::text {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool hex(std::string_view text, std::size_t at, std::size_t digits, std::uint32_t& value) {
  if (at + digits > text.size()) return false;
  const char* const begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + digits, value, 16);
  return error == std::errc{} && end == begin + digits;
}

// std::from_chars, for which a number may begin with "-" but not with "+" or "0x".
template <class Integer>
bool parse(std::string_view text, Integer& value) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
    if (text.starts_with('-')) return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Tokens::Tokens(std::string_view line) : end_column_(line.size() + 1) {
  for (std::size_t at = 0; ok();) {
    while (at < line.size() && blank(line[at])) ++at;
    if (at == line.size() || line[at] == '#') break;
    Token token;
    token.column = at + 1;
    const std::size_t begin = at;
    while (at < line.size() && !blank(line[at]) && line[at] != '"' && line[at] != '=') ++at;
    if (at < line.size() && line[at] == '=' && at > begin) {
      token.key = line.substr(begin, at - begin);
      ++at;
    } else {
      at = begin;
    }
    if (!scan_value(line, at, token)) break;
    if (at < line.size() && !blank(line[at])) {
      fail(at + 1, "expected a blank between words");
      break;
    }
    (token.key.empty() ? positional_ : keyed_).push_back(std::move(token));
  }
  used_.resize(keyed_.size());
}

bool Tokens::scan_value(std::string_view line, std::size_t& at, Token& token) {
  if (at < line.size() && line[at] == '"') {
    token.quoted = true;
    return scan_quoted(line, at, token.value);
  }
  const std::size_t begin = at;
  while (at < line.size() && !blank(line[at]) && line[at] != '"') ++at;
  token.value = line.substr(begin, at - begin);
  if (!token.value.empty()) return true;
  fail(begin + 1, fmt::format("expected a value after `{}=`", token.key));
  return false;
}

bool Tokens::scan_quoted(std::string_view line, std::size_t& at, std::string& to) {
  const std::size_t begin = at++;
  const auto bad_escape = [&] {
    fail(at + 1, R"(expected one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX \xXX)");
    return false;
  };
  while (at < line.size() && line[at] != '"') {
    if (line[at] != '\\') {
      to += line[at++];
      continue;
    }
    if (at + 1 == line.size()) return bad_escape();
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const char letter = line[at + 1];
    std::uint32_t code = 0;
    if (const std::size_t simple = kFrom.find(letter); simple != kFrom.npos) {
      to += kTo[simple];
      at += 2;
    } else if (letter == 'x' && hex(line, at + 2, 2, code)) {
      to += static_cast<char>(code);
      at += 4;
    } else if (letter == 'u' && hex(line, at + 2, 4, code)) {
      std::size_t length = 6;
      if (code >= 0xd800 && code < 0xe000) {
        std::uint32_t low = 0;
        if (code >= 0xdc00 || line.substr(at + 6, 2) != "\\u" || !hex(line, at + 8, 4, low) ||
            low < 0xdc00 || low >= 0xe000) {
          return bad_escape();
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        length = 12;
      }
      std::array<char, 4> bytes{};
      to.append(bytes.data(), base::utf8_encode(code, bytes.data()));
      at += length;
    } else {
      return bad_escape();
    }
  }
  if (at == line.size()) {
    fail(begin + 1, "expected this string to end on its line");
    return false;
  }
  ++at;
  return true;
}

void Tokens::fail(std::size_t column, std::string error) {
  if (!ok()) return;
  error_column_ = column;
  error_ = std::move(error);
}

Token Tokens::word(std::string_view what) {
  if (!ok()) return {};
  if (next_ < positional_.size()) return positional_[next_++];
  fail(keyed_.empty() ? end_column_ : keyed_[0].column, fmt::format("expected {}", what));
  return {};
}

std::string_view Tokens::peek() const {
  if (!ok() || next_ >= positional_.size() || positional_[next_].quoted) return {};
  return positional_[next_].value;
}

std::string Tokens::quoted(std::string_view what) {
  Token token = word(what);
  if (ok() && !token.quoted) {
    fail(token.column, fmt::format("expected {} between double quotes", what));
  }
  return std::move(token.value);
}

const Token* Tokens::find(std::string_view key) {
  if (!ok()) return nullptr;
  const Token* found = nullptr;
  for (std::size_t i = 0; i < keyed_.size(); ++i) {
    if (keyed_[i].key != key) continue;
    used_[i] = true;
    if (found != nullptr) {
      fail(keyed_[i].column, fmt::format("`{}` a second time", key));
      return nullptr;
    }
    found = &keyed_[i];
  }
  return found;
}

void Tokens::text(std::string_view key, std::string& to) {
  const Token* token = find(key);
  if (token == nullptr) return;
  to = token->value;
}

void Tokens::number(std::string_view key, std::uint64_t& to) {
  const Token* token = find(key);
  if (token != nullptr && (token->quoted || !parse(token->value, to))) {
    fail(token->column, fmt::format("expected `{}` to be a whole number from 0", key));
  }
}

void Tokens::number(std::string_view key, std::uint32_t& to) {
  const Token* token = find(key);
  if (token != nullptr && (token->quoted || !parse(token->value, to))) {
    fail(token->column, fmt::format("expected `{}` to be a whole number below 2^32", key));
  }
}

void Tokens::number(std::string_view key, std::int32_t& to) {
  const Token* token = find(key);
  if (token != nullptr && (token->quoted || !parse(token->value, to))) {
    fail(token->column, fmt::format("expected `{}` to be a whole number of 32 bits", key));
  }
}

void Tokens::number(std::string_view key, std::int64_t& to) {
  const Token* token = find(key);
  if (token != nullptr && (token->quoted || !parse(token->value, to))) {
    fail(token->column, fmt::format("expected `{}` to be a whole number of 64 bits", key));
  }
}

void Tokens::number(std::string_view key, double& to) {
  const Token* token = find(key);
  if (token == nullptr) return;
  if (token->value == "nan" || token->value == "-nan") {
    to = std::numeric_limits<double>::quiet_NaN();
    if (token->value[0] == '-') to = std::copysign(to, -1.);
  } else if (token->value == "inf" || token->value == "-inf") {
    to = std::copysign(std::numeric_limits<double>::infinity(), token->value[0] == '-' ? -1. : 1.);
  } else if (token->quoted || !base::parse_double(token->value, to)) {
    fail(token->column, fmt::format("expected `{}` to be a number", key));
  }
}

void Tokens::numbers(std::string_view key, char separator, std::span<std::uint64_t> to) {
  const Token* token = find(key);
  if (token == nullptr) return;
  std::string_view rest = token->value;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool last = i + 1 == to.size();
    const std::size_t end = last ? rest.size() : rest.find(separator);
    if (token->quoted || end == rest.npos || !parse(rest.substr(0, end), to[i])) {
      fail(token->column, fmt::format("expected `{}` to be {} numbers with `{}` between them", key,
                                      to.size(), separator));
      return;
    }
    rest.remove_prefix(last ? end : end + 1);
  }
}

void Tokens::triple(std::string_view key, std::uint32_t (&to)[3]) {
  std::array<std::uint64_t, 3> wide{};
  numbers(key, ',', wide);
  for (std::size_t i = 0; i < 3; ++i) {
    if (wide[i] > std::numeric_limits<std::uint32_t>::max()) {
      fail(find(key)->column, fmt::format("expected `{}` to be numbers below 2^32", key));
    }
    to[i] = static_cast<std::uint32_t>(wide[i]);
  }
}

std::uint32_t Tokens::word_or_number(const Token& token, trace::Words words, std::uint32_t limit) {
  if (!ok()) return 0;
  if (const auto index = trace::find_word(words, token.value)) return *index;
  std::uint32_t value = 0;
  if (!token.quoted && parse(token.value, value) && value < limit) return value;
  fail(token.column, words.empty() ? fmt::format("expected a number below {}", limit)
                                   : fmt::format("expected one of {}", fmt::join(words, ", ")));
  return 0;
}

void Tokens::finish() {
  if (next_ < positional_.size()) {
    const Token& token = positional_[next_];
    fail(token.column, fmt::format("unexpected `{}`", token.value));
  }
  for (std::size_t i = 0; i < keyed_.size(); ++i) {
    if (!used_[i]) {
      fail(keyed_[i].column, fmt::format("there is no field `{}` here", keyed_[i].key));
    }
  }
}

}  // namespace pasta::adapters::text
