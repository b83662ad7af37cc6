#include "report/number.h"

#include <charconv>
#include <iterator>
#include <string_view>

namespace pasta::report {
namespace {

template <class Number>
std::string_view write(char (&buffer)[32], Number value) {
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
  return {buffer, static_cast<std::size_t>(end - buffer)};
}

}  // namespace

void append_integer(std::string& out, std::int64_t value) {
  char buffer[32];
  out += write(buffer, value);
}

void append_double(std::string& out, double value) {
  char buffer[32];
  const std::string_view text = write(buffer, value);
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace pasta::report
