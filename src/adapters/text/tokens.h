// One line of the text form, cut into words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/text_words.h"

namespace pasta::adapters::text {

struct Token {
  std::size_t column = 0;  // from 1, in bytes
  std::string key;         // of KEY=VALUE
  std::string value;       // with escapes resolved
  bool quoted = false;
};

// The words of a line, handed out one by one. The first thing that is not as expected is kept as
// the line's error; everything asked for after that is empty, so that the caller need check only
// once.
class Tokens {
 public:
  explicit Tokens(std::string_view line);

  [[nodiscard]] bool ok() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::size_t error_column() const { return error_column_; }
  // Keeps `error` if it is the first.
  void fail(std::size_t column, std::string error);

  // The next word without a key. `what` is what the error says was expected.
  Token word(std::string_view what);
  // The next word without a key or quotes, not taking it; "" when there is none.
  [[nodiscard]] std::string_view peek() const;
  std::string quoted(std::string_view what);
  // The value of a key; nullptr when the line does not have it.
  const Token* find(std::string_view key);

  // Each sets `to` only when the key is there.
  void text(std::string_view key, std::string& to);
  void number(std::string_view key, std::uint64_t& to);
  void number(std::string_view key, std::uint32_t& to);
  void number(std::string_view key, std::int32_t& to);
  void number(std::string_view key, std::int64_t& to);
  void number(std::string_view key, double& to);
  // Numbers with `separator` between them, exactly as many as `to` has.
  void numbers(std::string_view key, char separator, std::span<std::uint64_t> to);
  void triple(std::string_view key, std::uint32_t (&to)[3]);
  // The index of a word of `words`, or a number below `limit`.
  std::uint32_t word_or_number(const Token& token, trace::Words words, std::uint32_t limit);

  // Complains about the first word that nobody asked for.
  void finish();

 private:
  bool scan_value(std::string_view line, std::size_t& at, Token& token);
  bool scan_quoted(std::string_view line, std::size_t& at, std::string& to);
  std::vector<Token> positional_, keyed_;
  std::vector<bool> used_;  // of keyed_
  std::size_t next_ = 0;
  std::size_t end_column_ = 0;
  std::string error_;
  std::size_t error_column_ = 0;
};

}  // namespace pasta::adapters::text
