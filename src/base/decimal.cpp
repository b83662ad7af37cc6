#include "base/decimal.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

namespace pasta::base {
namespace {

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The parts of a decimal number: 0.digits... is never formed, the point is only a place.
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::int64_t exponent = 0;
};

bool split(std::string_view text, Parts& parts) {
  text = trimmed(text);
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(from, at - from);
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) parts.negative = text[at++] == '-';
  parts.whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    parts.fraction = digits();
  }
  if (parts.whole.empty() && parts.fraction.empty()) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    bool down = false;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) down = text[at++] == '-';
    const std::string_view power = digits();
    if (power.empty()) return false;
    // Beyond a million every answer is "zero" or "out of range", whatever the digits are: a text
    // is never that long.
    constexpr std::int64_t kCap = std::int64_t{1} << 40;
    for (const char c : power) {
      parts.exponent = parts.exponent * 10 + (c - '0');
      if (parts.exponent > kCap) parts.exponent = kCap;
    }
    if (down) parts.exponent = -parts.exponent;
  }
  return at == text.size();
}

bool any_nonzero(std::string_view digits) {
  return digits.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

DecimalStatus parse_decimal(std::string_view text, int shift, std::int64_t& value) {
  // What traces are full of: up to 18 digits, no sign, no exponent, no fraction below the unit.
  if (!text.empty() && text.size() <= 19) {
    std::uint64_t sum = 0;
    int places = shift;
    std::size_t at = 0;
    std::size_t point = text.size();
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (is_digit(c)) {
        sum = sum * 10 + static_cast<std::uint64_t>(c - '0');
      } else if (c == '.' && point == text.size()) {
        point = at;
      } else {
        break;
      }
    }
    const std::size_t digits = text.size() - (point < text.size() ? 1 : 0);
    if (at == text.size() && digits > 0) {
      if (point < text.size()) places -= static_cast<int>(text.size() - point - 1);
      constexpr std::uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
      if (places >= 0 && places <= 6) {
        std::uint64_t product = 0;
        if (!__builtin_mul_overflow(sum, kPowers[places], &product) &&
            product <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          value = static_cast<std::int64_t>(product);
          return DecimalStatus::kExact;
        }
      }
    }
  }

  Parts parts;
  if (!split(text, parts)) return DecimalStatus::kInvalid;
  // Digit i (0 is the highest) weighs 10^(whole - 1 - i + exponent + shift): `kept` digits from
  // the front, padded with zeros, are the integer.
  const std::int64_t kept = static_cast<std::int64_t>(parts.whole.size()) + parts.exponent + shift;
  const auto count = static_cast<std::int64_t>(parts.whole.size() + parts.fraction.size());
  const auto digit = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return at < parts.whole.size() ? parts.whole[at] : parts.fraction[at - parts.whole.size()];
  };
  std::uint64_t sum = 0;
  bool overflow = false;
  for (std::int64_t i = 0; i < kept && !overflow; ++i) {
    if (i >= count && sum == 0) break;  // zero, however many zeros follow
    const auto next = static_cast<std::uint64_t>(i < count ? digit(i) - '0' : 0);
    overflow = __builtin_mul_overflow(sum, std::uint64_t{10}, &sum) ||
               __builtin_add_overflow(sum, next, &sum);
  }
  const std::uint64_t limit =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + parts.negative;
  if (overflow || sum > limit) return DecimalStatus::kOutOfRange;
  value = static_cast<std::int64_t>(parts.negative ? 0 - sum : sum);
  if (kept >= count) return DecimalStatus::kExact;
  const auto cut_from = static_cast<std::size_t>(kept < 0 ? 0 : kept);
  const bool cut = cut_from < parts.whole.size()
                       ? any_nonzero(parts.whole.substr(cut_from)) || any_nonzero(parts.fraction)
                       : any_nonzero(parts.fraction.substr(cut_from - parts.whole.size()));
  return cut ? DecimalStatus::kCut : DecimalStatus::kExact;
}

bool parse_unsigned(std::string_view text, std::uint64_t& value) {
  // What tables are full of.
  if (!text.empty() && text.size() <= 19) {
    std::uint64_t sum = 0;
    std::size_t at = 0;
    while (at < text.size() && is_digit(text[at])) {
      sum = sum * 10 + static_cast<std::uint64_t>(text[at++] - '0');
    }
    if (at == text.size()) {
      value = sum;
      return true;
    }
  }
  text = trimmed(text);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed, base);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

bool parse_double(std::string_view text, double& value) {
  Parts parts;
  if (!split(text, parts)) return false;
  text = trimmed(text);
  if (text.front() == '+') text.remove_prefix(1);
  double parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error == std::errc::result_out_of_range) {
    // from_chars says the same of too large and too small; the latter is a fine zero. The place
    // of the first digit that counts tells them apart.
    const auto zeros = [](std::string_view digits) {
      return static_cast<std::int64_t>(std::min(digits.find_first_not_of('0'), digits.size()));
    };
    const std::int64_t place =
        any_nonzero(parts.whole)
            ? static_cast<std::int64_t>(parts.whole.size()) - zeros(parts.whole)
            : -zeros(parts.fraction);
    if (place + parts.exponent > 0) return false;
    value = parts.negative ? -0.0 : 0.0;
    return true;
  }
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

}  // namespace pasta::base
