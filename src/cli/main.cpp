// pastaprof: finds the verb, reads its options, runs it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "cli/child.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/verb.h"

namespace pasta::cli {
namespace {

constexpr std::array kVerbs = {&kRun,   &kReport, &kTools,  &kDump, &kCheck,     &kExport,
                               &kMerge, &kJoin,   &kDoctor, &kHelp, &kCompletion};

int wrong_usage(const Verb& verb, std::string_view message) {
  say(fmt::format("{}: {} (see pastaprof {} --help)", verb.name, message, verb.name));
  return verb.runs_program ? kRunWrongUsage : kWrongUsage;
}

int print_or_fail(std::string_view text) {
  const Status printed = print(text);
  if (printed) return kComplete;
  say(printed.error().message);
  return kNoAnswer;
}

// An error about an option that was not on the command line says where it comes from.
std::string with_origin(const Error& error, const CommandLine& line) {
  std::string message = error.message;
  if (error.code != ErrorCode::kUsage) return message;
  for (const auto& [option, origin] : line.origins) {
    if (error.message.find(option) == std::string::npos) continue;
    message += fmt::format(" ({} comes from {})", option, origin);
  }
  return message;
}

int run_verb(const Verb& verb, std::vector<std::string> words) {
  const auto line = parse(verb, std::move(words));
  if (!line) return wrong_usage(verb, line.error().message);
  if (line->wish == CommandLine::Wish::kShowHelp) return print_or_fail(help_of(verb));
  if (line->wish == CommandLine::Wish::kShowVersion)
    return print_or_fail(fmt::format("{}\n", kVersion));
  const auto code = verb.run(line->settings);
  if (code) return *code;
  say(with_origin(code.error(), *line));
  return verb.runs_program ? kRunWrongUsage : exit_code(code.error());
}

int unknown_verb(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) {
    say(fmt::format("\"{}\" is a file; did you mean: pastaprof report {}", word, word));
    return kWrongUsage;
  }
  std::vector<std::string_view> names;
  for (const Verb* verb : kVerbs) {
    if (!verb->hidden) names.push_back(verb->name);
  }
  const std::string_view slip = nearest(word, names);
  say(slip.empty()
          ? fmt::format("there is no verb \"{}\"; the verbs are {}", word, fmt::join(names, ", "))
          : fmt::format("there is no verb \"{}\"; did you mean {}?", word, slip));
  return kWrongUsage;
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    fmt::print(stderr, "{}", help_of_program());
    return kWrongUsage;
  }
  const std::string first = words.front();
  words.erase(words.begin());
  if (first == "--version") return print_or_fail(fmt::format("{}\n", kVersion));
  if (first == "--help" || first == "-h") return print_or_fail(help_of_program());
  const Verb* verb = find_verb(first);
  return verb == nullptr ? unknown_verb(first) : run_verb(*verb, std::move(words));
}

}  // namespace

std::span<const Verb* const> verbs() { return kVerbs; }

const Verb* find_verb(std::string_view name) {
  for (const Verb* verb : kVerbs) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

}  // namespace pasta::cli

int main(int argc, char** argv) {
  pasta::cli::remember_signals();
  // In "pastaprof dump t | head" the pipe closes early: end there and say nothing, also where the
  // parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  return pasta::cli::run({argv + 1, argv + argc});
}
