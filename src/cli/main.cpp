// pastaprof: finds the verb, reads its options, runs it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pasta_version.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <filesystem>

#include "cli/console.h"
#include "cli/verb.h"

namespace pasta::cli {
namespace {

constexpr std::array kVerbs = {&kReport, &kTools, &kDump, &kCheck, &kExport, &kJoin};
constexpr std::string_view kVersion = "pastaprof " PASTA_VERSION " (" PASTA_COMMIT ")";

// "TRACE..." or "[NAME]".
std::string operands_of(const Verb& verb) {
  const std::string all = fmt::format("{}{}", verb.operand, verb.operand_repeats ? "..." : "");
  return verb.operand_optional ? fmt::format("[{}]", all) : all;
}

std::string help() {
  std::string text =
      "pastaprof answers questions about what accelerators did, from recorded traces.\n\n"
      "Usage: pastaprof VERB [OPTIONS]\n\n";
  for (const Verb* verb : kVerbs) {
    text += fmt::format("  {:<24} {}\n", fmt::format("{} {}", verb->name, operands_of(*verb)),
                        verb->help);
  }
  return text +
         "\n  VERB --help              Options of a verb\n"
         "  --version                Version and commit\n\n"
         "An option --some-thing that is not given takes its value from the environment variable\n"
         "PASTA_SOME_THING.\n\n"
         "Exit codes: 0 a complete answer; 3 an answer from which an event or a value was dropped\n"
         "or altered; 1 no answer; 2 wrong usage.\n";
}

// Adds one row to `app`, to be stored in `settings`.
void add_option(CLI::App& app, const OptionRow& row, Settings& settings) {
  CLI::Option* option = std::visit(
      [&](auto target) {
        if constexpr (std::is_same_v<decltype(target), bool Settings::*>) {
          return app.add_flag(row.names, settings.*target, row.help);
        } else {
          return app.add_option(row.names, settings.*target, row.help);
        }
      },
      row.target);
  option->envname(row.environment);
  if (row.value == nullptr) return;
  std::string shown = row.value;
  if (const auto* text = std::get_if<std::string Settings::*>(&row.target)) {
    if (const std::string& fallback = settings.**text; !fallback.empty()) {
      shown += fmt::format(" (default {})", fallback);
    }
  }
  option->option_text(shown);
  if (std::holds_alternative<std::vector<std::string> Settings::*>(row.target)) {
    option->allow_extra_args(false);  // "--tool a trace.json": the trace is no tool
    if (row.comma_separated) option->delimiter(',');
  }
  if (!row.choices.empty()) {
    option->check(CLI::Validator(
        [&row](std::string& value) {
          if (std::ranges::find(row.choices, value) != row.choices.end()) return std::string();
          return fmt::format("cannot be \"{}\"; it is one of {}", value,
                             fmt::join(row.choices, ", "));
        },
        ""));
  }
}

int wrong_usage(const Verb& verb, std::string_view message) {
  say(fmt::format("{}: {} (see pastaprof {} --help)", verb.name, message, verb.name));
  return kWrongUsage;
}

std::string unexpected(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-')) return fmt::format("\"{}\" is one argument too many", word);
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view slip = nearest(name, candidates);
  return slip.empty() ? fmt::format("there is no option {}", name)
                      : fmt::format("there is no option {}; did you mean {}?", name, slip);
}

int run_verb(const Verb& verb, std::vector<std::string> words) {
  Settings settings;
  CLI::App app{std::string(verb.help), fmt::format("pastaprof {}", verb.name)};
  app.set_version_flag("--version", std::string(kVersion));
  app.allow_extras();
  std::string single;
  CLI::Option* operand = verb.operand_repeats
                             ? app.add_option(verb.operand, settings.operands, verb.operand_help)
                             : app.add_option(verb.operand, single, verb.operand_help);
  operand->required(!verb.operand_optional)->option_text(" ");
  for (const OptionRow* row : verb.options) add_option(app, *row, settings);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return print(app.help()) ? kComplete : kNoAnswer;
  } catch (const CLI::CallForVersion&) {
    return print(fmt::format("{}\n", kVersion)) ? kComplete : kNoAnswer;
  } catch (const CLI::ParseError& error) {
    return wrong_usage(verb, error.what());
  }
  std::vector<std::string> superfluous = app.remaining();
  std::erase(superfluous, "--");  // which CLI11 leaves there after it has obeyed it
  if (!superfluous.empty()) return wrong_usage(verb, unexpected(app, superfluous[0]));
  if (!single.empty()) settings.operands.push_back(single);
  const auto code = verb.run(settings);
  if (code) return *code;
  say(code.error().message);
  return exit_code(code.error());
}

int unknown_verb(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) {
    say(fmt::format("\"{}\" is a file; did you mean: pastaprof report {}", word, word));
    return kWrongUsage;
  }
  std::vector<std::string_view> names;
  for (const Verb* verb : kVerbs) names.push_back(verb->name);
  const std::string_view slip = nearest(word, names);
  say(slip.empty()
          ? fmt::format("there is no verb \"{}\"; the verbs are {}", word, fmt::join(names, ", "))
          : fmt::format("there is no verb \"{}\"; did you mean {}?", word, slip));
  return kWrongUsage;
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    fmt::print(stderr, "{}", help());
    return kWrongUsage;
  }
  const std::string first = words.front();
  words.erase(words.begin());
  if (first == "--version") return print(fmt::format("{}\n", kVersion)) ? kComplete : kNoAnswer;
  if (first == "--help" || first == "-h" || first == "help") {
    return print(help()) ? kComplete : kNoAnswer;
  }
  for (const Verb* verb : kVerbs) {
    if (verb->name == first) return run_verb(*verb, std::move(words));
  }
  return unknown_verb(first);
}

}  // namespace
}  // namespace pasta::cli

int main(int argc, char** argv) {
  // In "pastaprof dump t | head" the pipe closes early: end there and say nothing, also where the
  // parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  return pasta::cli::run({argv + 1, argv + argc});
}
