#include "tools/common/demangle.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace pasta::tools {
namespace {

// The C++ runtime's demangler puts its work on the stack, in proportion to the name. Real kernel
// names stay below 4 KiB; a longer text is shown as it is.
constexpr std::size_t kLongestMangled = 8192;

// Index behind the bracket that closes the one at `open`; npos when there is none. Inside round
// brackets '<' and '>' may be operators, hence only like closes like.
std::size_t behind_brackets(std::string_view text, std::size_t open) {
  std::string closers;
  for (std::size_t i = open; i < text.size(); ++i) {
    switch (text[i]) {
      case '(':
        closers += ')';
        break;
      case '[':
        closers += ']';
        break;
      case '{':
        closers += '}';
        break;
      case '<':
        closers += '>';
        break;
      case ')':
      case ']':
      case '}':
        while (!closers.empty() && closers.back() == '>') closers.pop_back();
        if (closers.empty() || closers.back() != text[i]) return std::string_view::npos;
        closers.pop_back();
        break;
      case '>':
        if (closers.back() == '>') closers.pop_back();
        break;
      default:
        break;
    }
    if (closers.empty()) return i + 1;
  }
  return std::string_view::npos;
}

std::string_view without_trailing_spaces(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string demangle(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kLongestMangled) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return text != nullptr ? text.get() : std::string(name);
}

std::string qualified_name(std::string_view demangled) {
  std::string name;
  bool is_function = false;
  for (std::size_t i = 0; i < demangled.size();) {
    const char c = demangled[i];
    if (c != '<' && c != '(' && c != '[' && c != '{') {
      is_function = false;  // what stands behind template arguments decides
      name += c;
      ++i;
      continue;
    }
    const bool names_operator = without_trailing_spaces(name).ends_with("operator");
    if (names_operator && c == '<') return std::string(demangled);  // operator< is no kernel
    const std::size_t behind = behind_brackets(demangled, i);
    if (behind == std::string_view::npos) return std::string(demangled);
    if (c == '(' && names_operator) {
      name += "()";
    } else if (c == '(' && !name.ends_with("decltype") &&
               !demangled.substr(behind).starts_with("::")) {
      if (name.empty() || name.back() == ' ') return std::string(demangled);
      is_function = true;
      break;
    }
    is_function = c == '<';
    i = behind;
    // An unnamed part of the path leaves one separator or none.
    const bool starts_part = name.empty() || name.ends_with(' ') || name.ends_with("::");
    if (starts_part && demangled.substr(i).starts_with("::")) i += 2;
  }
  if (!is_function) return std::string(demangled);
  const std::size_t operator_at = name.find("operator");
  const std::size_t space = name.find_last_of(' ', operator_at);
  if (space != std::string::npos) name.erase(0, space + 1);
  return name.empty() ? std::string(demangled) : name;
}

std::string short_name(std::string_view demangled) {
  std::string name = qualified_name(demangled);
  const std::size_t colons = name.rfind("::");
  // Only what qualified_name() understood may be cut.
  const bool whole = name == demangled && name.find_first_of("<([{ ") != std::string::npos;
  if (whole || colons == std::string::npos || colons + 2 == name.size()) return name;
  return name.substr(colons + 2);
}

}  // namespace pasta::tools
