// The units of nvprof's columns: another one in each, chosen by the size of its values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/decimal.h"

namespace pasta::adapters::nvprof_csv {

// Decimal places of one ns in a unit of time: 9 in "s". False when it is none.
bool time_places(std::string_view unit, int& places);
// Bytes of a unit of size; KB, MB and GB are powers of 1024. False when it is none.
bool unit_bytes(std::string_view unit, std::uint64_t& bytes);

// `text` units of `unit_bytes` in whole bytes: nvprof rounds to a few decimals, and the nearest
// whole number is the best guess at what it had. False when it is no such number, or too large.
bool parse_size(std::string_view text, std::uint64_t unit_bytes, std::uint64_t& bytes);

// Digits behind the point.
int decimals(std::string_view text);

}  // namespace pasta::adapters::nvprof_csv
