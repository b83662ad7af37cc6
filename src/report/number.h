// Numbers as JSON and CSV write them.
#pragma once

#include <cstdint>
#include <string>

namespace pasta::report {

void append_integer(std::string& out, std::int64_t value);
// The shortest text that reads back as the same double, always with a point or an exponent, so
// that it reads back as a double at all. `value` must be finite.
void append_double(std::string& out, double value);

}  // namespace pasta::report
