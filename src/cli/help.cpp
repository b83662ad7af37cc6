// pastaprof help: the same as --help, and the manual page.
#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "cli/command_line.h"
#include "cli/console.h"
#include "report/text_layout.h"

namespace pasta::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 26;
constexpr std::string_view kManual = "man";

// `left`, and `right` beside it or below.
void append_entry(std::string& text, std::string_view left, std::string_view right) {
  std::string line = fmt::format("  {}", left);
  const std::string indent(kIndent, ' ');
  if (line.size() + 2 > kIndent) {
    text += line + '\n';
    line = indent;
  } else {
    line.resize(kIndent, ' ');
  }
  for (const std::string& part : report::wrap(right, kWidth - kIndent)) {
    text += line + part + '\n';
    line = indent;
  }
}

void append_paragraph(std::string& text, std::string_view paragraph) {
  for (const std::string& line : report::wrap(paragraph, kWidth)) text += line + '\n';
}

std::vector<std::string_view> topics() {
  std::vector<std::string_view> names;
  for (const Verb* verb : verbs()) {
    if (!verb->hidden) names.push_back(verb->name);
  }
  names.push_back(kManual);
  return names;
}

Result<int> run(const Settings& settings) {
  std::string text;
  if (settings.operands.empty()) {
    text = help_of_program();
  } else if (settings.operands[0] == kManual) {
    text = manual();
  } else if (const Verb* verb = find_verb(settings.operands[0])) {
    text = help_of(*verb);
  } else {
    return fail(ErrorCode::kUsage, fmt::format("there is no help on \"{}\"; there is on {}",
                                               settings.operands[0], fmt::join(topics(), ", ")));
  }
  PASTA_TRY(print(text));
  return kComplete;
}

}  // namespace

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kCodes = {
      ExitCode{kComplete, "a complete answer"},
      ExitCode{kNoAnswer, "no answer: a file that cannot be read, or is no trace"},
      ExitCode{kWrongUsage, "wrong usage; the message says what would be right"},
      ExitCode{kIncomplete, "an answer from which an event or a value was dropped or altered"},
  };
  return kCodes;
}

std::string operands_of(const Verb& verb) {
  if (verb.operand == nullptr) return "";
  const std::string all = fmt::format("{}{}", verb.operand, verb.operand_repeats ? "..." : "");
  return verb.operand_optional ? fmt::format("[{}]", all) : all;
}

std::string usage_of(const OptionRow& row) {
  std::string usage = fmt::format("{}", fmt::join(names_of(row), ", "));
  return row.value == nullptr ? usage : fmt::format("{} {}", usage, row.value);
}

std::string meaning_of(const OptionRow& row) {
  static const Settings kDefaults;
  const auto* text = std::get_if<std::string Settings::*>(&row.target);
  if (text == nullptr || (kDefaults.**text).empty()) return row.help;
  return fmt::format("{} (default: {})", row.help, kDefaults.**text);
}

std::string help_of_program() {
  std::string text =
      "pastaprof answers questions about what accelerators did, from recorded traces.\n\n"
      "Usage: pastaprof VERB [OPTIONS]\n\n";
  for (const Verb* verb : verbs()) {
    if (verb->hidden) continue;
    append_entry(text, fmt::format("{} {}", verb->name, operands_of(*verb)), verb->help);
  }
  text += '\n';
  append_entry(text, "VERB --help", "Options of a verb");
  append_entry(text, "--version", "Version and commit");
  text += '\n';
  append_paragraph(text,
                   "An option --some-thing that is not given takes its value from the environment "
                   "variable PASTA_SOME_THING, else from pasta.toml in the working folder, else "
                   "from ~/.config/pastaprof/pasta.toml.");
  text += "\nExit codes:\n";
  for (const ExitCode& code : exit_codes())
    text += fmt::format("  {}  {}\n", code.code, code.meaning);
  return text;
}

std::string help_of(const Verb& verb) {
  const std::string operands = operands_of(verb);
  std::string text =
      fmt::format("{}\n\nUsage: pastaprof {}{}{}{}\n\n", verb.help, verb.name,
                  verb.options.empty() ? "" : " [OPTIONS]", operands.empty() ? "" : " ", operands);
  if (!operands.empty()) append_entry(text, verb.operand, verb.operand_help);
  for (const OptionRow* row : verb.options) append_entry(text, usage_of(*row), meaning_of(*row));
  append_entry(text, "-h, --help", "This help");
  append_entry(text, "--version", "Version and commit");
  return text;
}

const Verb kHelp = {"help",  "Help on a verb, or the manual page (man)",
                    "TOPIC", "A verb, or man",
                    true,    false,
                    {},      run,
                    topics,  true};

}  // namespace pasta::cli
