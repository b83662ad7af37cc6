// Exact numbers out of decimal text. No value ever passes through binary floating point.
#pragma once

#include <cstdint>
#include <string_view>

namespace pasta::base {

enum class DecimalStatus : std::uint8_t {
  kExact,
  kCut,         // digits below the unit were cut (toward zero)
  kOutOfRange,  // does not fit into 64 bits
  kInvalid,     // not a decimal number
};

// text * 10^shift as an integer: parse_decimal("12.5", 3, v) gives 12500. Accepts JSON numbers
// with sign, fraction and exponent, surrounding blanks, and a leading '+'. `value` is set for
// kExact and kCut only.
DecimalStatus parse_decimal(std::string_view text, int shift, std::int64_t& value);
// A non-negative integer of 64 bits, also as 0x hexadecimal. False when it is none.
bool parse_unsigned(std::string_view text, std::uint64_t& value);
// A number for showing and for counters; false when it is none or not finite.
bool parse_double(std::string_view text, double& value);

}  // namespace pasta::base
