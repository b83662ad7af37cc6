// pastaprof completion: what makes a shell complete the words of the program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/help.h"

namespace pasta::cli {
namespace {

using Words = std::vector<std::string_view>;

bool is_flag(const OptionRow& row) { return std::holds_alternative<bool Settings::*>(row.target); }

// What a value can be; empty: a file or any text.
Words values_of(const OptionRow& row) {
  if (row.suggest != nullptr) return row.suggest();
  return {row.choices.begin(), row.choices.end()};
}

Words visible_verbs() {
  Words names;
  for (const Verb* verb : verbs()) {
    if (!verb->hidden) names.push_back(verb->name);
  }
  return names;
}

std::string bash() {
  std::string cases;
  for (const Verb* verb : verbs()) {
    Words options = {"--help", "--version"};
    for (const OptionRow* row : verb->options) {
      const Words names = names_of(*row);
      options.insert(options.end(), names.begin(), names.end());
      if (is_flag(*row)) continue;
      Words patterns;
      std::vector<std::string> labels;
      for (const std::string_view name : names) {
        labels.push_back(fmt::format("'{} {}'", verb->name, name));
      }
      // Of what can be any text, bash offers files.
      cases += fmt::format("    {}) words='{}' ;;\n", fmt::join(labels, "|"),
                           fmt::join(values_of(*row), " "));
    }
    const Words operands = verb->suggest == nullptr ? Words() : verb->suggest();
    cases += fmt::format(
        "    '{} '*)\n      if [[ $current == -* ]]; then words='{}'; else words='{}'; fi ;;\n",
        verb->name, fmt::join(options, " "), fmt::join(operands, " "));
  }
  return fmt::format(R"(# Completion of pastaprof for bash.
_pastaprof() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} front= words=
  if [[ $current == = ]]; then  # bash takes --option=value for three words
    current=
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "${{COMP_WORDS[1]}} $before" in
    *' pastaprof') words='{} --help --version' ;;
{}  esac
  if [[ $current == *,* ]]; then
    front=${{current%,*}},
    current=${{current##*,}}
  fi
  COMPREPLY=()
  if [[ $words ]]; then
    mapfile -t COMPREPLY < <(compgen -P "$front" -W "$words" -- "$current")
  fi
}}
complete -o bashdefault -o default -F _pastaprof pastaprof
)",
                     fmt::join(visible_verbs(), " "), cases);
}

std::string replaced(std::string_view text, std::string_view special, std::string_view before) {
  std::string out;
  for (const char letter : text) {
    if (special.find(letter) != std::string_view::npos) out += before;
    out += letter;
  }
  return out;
}

// Within single quotes.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char letter : text) {
    out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return out + "'";
}

std::string zsh_argument(const OptionRow& row) {
  const Words names = names_of(row);
  std::string description = fmt::format("[{}]", replaced(meaning_of(row), "[]:\\", "\\"));
  if (!is_flag(row)) {
    const Words values = values_of(row);
    description += fmt::format(":{}:", replaced(row.value, "[]:\\", "\\"));
    if (values.empty()) {
      description += "_files";
    } else if (row.comma_separated) {
      description += fmt::format("_values -s , value {}", fmt::join(values, " "));
    } else {
      description += fmt::format("({})", fmt::join(values, " "));
    }
  }
  const std::string_view repeated =
      std::holds_alternative<std::vector<std::string> Settings::*>(row.target) ? "*" : "";
  std::string arguments;
  for (const std::string_view name : names) {
    const std::string_view equals = is_flag(row) ? "" : name.starts_with("--") ? "=" : "+";
    const std::string others =
        repeated.empty() ? fmt::format("({})", fmt::join(names, " ")) : std::string();
    arguments +=
        fmt::format(" \\\n        {}",
                    quoted(fmt::format("{}{}{}{}{}", others, repeated, name, equals, description)));
  }
  return arguments;
}

std::string zsh() {
  std::string described, cases;
  for (const Verb* verb : verbs()) {
    if (!verb->hidden) {
      described +=
          fmt::format("      {}\n",
                      quoted(fmt::format("{}:{}", verb->name, replaced(verb->help, ":\\", "\\"))));
    }
    cases += fmt::format(
        "    {})\n      _arguments -S '--help[This help]' '--version[Version and "
        "commit]'",
        verb->name);
    for (const OptionRow* row : verb->options) cases += zsh_argument(*row);
    if (verb->operand != nullptr) {
      const Words operands = verb->suggest == nullptr ? Words() : verb->suggest();
      cases += fmt::format(
          " \\\n        {}",
          quoted(fmt::format(
              "{}:{}:{}", verb->operand_repeats ? "*" : "1", verb->operand,
              operands.empty() ? "_files" : fmt::format("({})", fmt::join(operands, " ")))));
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef pastaprof
# Completion of pastaprof for zsh.
_pastaprof() {{
  if ((CURRENT == 2)); then
    local -a verbs=(
{}    )
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{}  esac
}}
_pastaprof "$@"
)",
                     described, cases);
}

std::string fish() {
  std::string script =
      "# Completion of pastaprof for fish.\n"
      "complete -c pastaprof -n __fish_use_subcommand -f\n"
      "complete -c pastaprof -l help -d 'This help'\n"
      "complete -c pastaprof -l version -d 'Version and commit'\n";
  for (const Verb* verb : verbs()) {
    if (!verb->hidden) {
      script += fmt::format("complete -c pastaprof -n __fish_use_subcommand -a {} -d {}\n",
                            verb->name, quoted(verb->help));
    }
    const std::string start =
        fmt::format("complete -c pastaprof -n '__fish_seen_subcommand_from {}'", verb->name);
    if (verb->suggest != nullptr) {
      script += fmt::format("{} -f -a '{}'\n", start, fmt::join(verb->suggest(), " "));
    }
    for (const OptionRow* row : verb->options) {
      script += start;
      for (const std::string_view name : names_of(*row)) {
        script += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                         : fmt::format(" -s {}", name.substr(1));
      }
      if (!is_flag(*row)) {
        const Words values = values_of(*row);
        script += values.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(values, " "));
      }
      script += fmt::format(" -d {}\n", quoted(meaning_of(*row)));
    }
  }
  return script;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array kShells = {Shell{"bash", bash}, Shell{"zsh", zsh}, Shell{"fish", fish}};

Words shell_names() {
  Words names;
  for (const Shell& shell : kShells) names.push_back(shell.name);
  return names;
}

Result<int> run(const Settings& settings) {
  for (const Shell& shell : kShells) {
    if (shell.name != settings.operands[0]) continue;
    PASTA_TRY(print(shell.script()));
    return kComplete;
  }
  return fail(ErrorCode::kUsage, fmt::format("there is no completion for \"{}\"; there is for {}",
                                             settings.operands[0], fmt::join(shell_names(), ", ")));
}

}  // namespace

const Verb kCompletion = {
    "completion", "A script that makes a shell complete the words of the program",
    "SHELL",      "bash, zsh or fish",
    false,        false,
    {},           run,
    shell_names,  true};

}  // namespace pasta::cli
