// The words of the help and the manual page, made of the verbs and their rows of options.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/verb.h"

namespace pasta::cli {

struct ExitCode {
  int code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

// "TRACE..." or "[NAME]", or "".
std::string operands_of(const Verb& verb);
// "-o, --output FILE".
std::string usage_of(const OptionRow& row);
// What it does, and its default.
std::string meaning_of(const OptionRow& row);

// Lines of at most 80 columns.
std::string help_of_program();
std::string help_of(const Verb& verb);
// The manual page, as troff.
std::string manual();

}  // namespace pasta::cli
