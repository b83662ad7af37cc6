#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/config_file.h"
#include "cli/console.h"

namespace pasta::cli {
namespace {

CLI::Option* add_option(CLI::App& app, const OptionRow& row, Settings& settings) {
  CLI::Option* option = std::visit(
      [&](auto target) {
        if constexpr (std::is_same_v<decltype(target), bool Settings::*>) {
          return app.add_flag(row.names, settings.*target);
        } else {
          return app.add_option(row.names, settings.*target);
        }
      },
      row.target);
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
  return option;
}

std::string unexpected(const Verb& verb, const std::string& word) {
  if (!word.starts_with('-')) return fmt::format("\"{}\" is one argument too many", word);
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string_view> candidates = {"--help", "--version"};
  for (const OptionRow* row : verb.options) {
    for (const std::string_view known : names_of(*row)) {
      if (known.starts_with("--")) candidates.push_back(known);
    }
  }
  const std::string_view slip = nearest(name, candidates);
  return slip.empty() ? fmt::format("there is no option {}", name)
                      : fmt::format("there is no option {}; did you mean {}?", name, slip);
}

// A value from elsewhere than the command line.
struct Given {
  std::vector<std::string> values;
  std::string origin;
};

Status give(CLI::Option& option, const Given& given) {
  try {
    for (const std::string& value : given.values) option.add_result(value);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kUsage, fmt::format("{}: {}", given.origin, error.what()));
  }
  return {};
}

Result<std::optional<Given>> from_file(const std::vector<ConfigFile>& files, const Verb& verb,
                                       const OptionRow& row) {
  for (const ConfigFile& file : files) {
    const ConfigEntry* entry = find_entry(file, verb, row);
    if (entry == nullptr) continue;
    const std::string origin = fmt::format("{}:{}", file.path, entry->line);
    const bool flag = std::holds_alternative<bool Settings::*>(row.target);
    const bool list = std::holds_alternative<std::vector<std::string> Settings::*>(row.target);
    if (entry->is_list && !list) {
      return fail(ErrorCode::kUsage,
                  fmt::format("{}: {} takes one value, not a list", origin, entry->key));
    }
    if (flag != entry->is_bool) {
      return fail(ErrorCode::kUsage, fmt::format("{}: {} {}", origin, entry->key,
                                                 flag ? "is true or false" : "takes a value"));
    }
    return Given{entry->values, origin};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> names_of(const OptionRow& row) {
  std::vector<std::string_view> names;
  for (std::string_view rest = row.names; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

std::string_view name_of(const OptionRow& row) {
  for (const std::string_view name : names_of(row)) {
    if (name.starts_with("--")) return name.substr(2);
  }
  return row.names;
}

// Where the program begins in the words of a verb that runs one: behind --, or at the first word
// that is neither an option nor the value of one.
static std::size_t program_in(const Verb& verb, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") return i + 1;
    if (!words[i].starts_with('-') || words[i] == "-") return i;
    for (const OptionRow* row : verb.options) {
      const auto names = names_of(*row);
      if (row->value != nullptr && std::ranges::find(names, words[i]) != names.end()) ++i;
    }
  }
  return words.size();
}

Result<CommandLine> parse(const Verb& verb, std::vector<std::string> words) {
  CommandLine line;
  std::vector<std::string> program;
  if (verb.runs_program) {
    const auto begin = words.begin() +
                       static_cast<std::ptrdiff_t>(std::min(program_in(verb, words), words.size()));
    program.assign(begin, words.end());
    words.erase(begin, words.end());
    if (!words.empty() && words.back() == "--") words.pop_back();
  }
  CLI::App app;
  app.set_version_flag("--version", "");
  app.allow_extras();
  std::string single;
  if (verb.operand != nullptr && !verb.runs_program) {
    CLI::Option* operand = verb.operand_repeats
                               ? app.add_option(verb.operand, line.settings.operands)
                               : app.add_option(verb.operand, single);
    operand->required(!verb.operand_optional);
  }
  std::vector<CLI::Option*> options;
  for (const OptionRow* row : verb.options) {
    options.push_back(add_option(app, *row, line.settings));
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    line.wish = CommandLine::Wish::kShowHelp;
    return line;
  } catch (const CLI::CallForVersion&) {
    line.wish = CommandLine::Wish::kShowVersion;
    return line;
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kUsage, error.what());
  }
  std::vector<std::string> superfluous = app.remaining();
  std::erase(superfluous, "--");  // which CLI11 leaves there after it has obeyed it
  if (!superfluous.empty()) return fail(ErrorCode::kUsage, unexpected(verb, superfluous[0]));
  if (!single.empty()) line.settings.operands.push_back(single);
  if (verb.runs_program) line.settings.operands = std::move(program);

  if (verb.options.empty()) return line;
  const auto files = read_config();
  if (!files) return tl::unexpected(files.error());
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionRow& row = *verb.options[i];
    if (options[i]->count() > 0) continue;
    std::optional<Given> given;
    const char* value = std::getenv(row.environment);
    if (value != nullptr && *value != '\0') {
      given = Given{{value}, row.environment};
    } else {
      auto found = from_file(*files, verb, row);
      if (!found) return tl::unexpected(std::move(found).error());
      given = std::move(*found);
    }
    if (!given || given->values.empty()) continue;
    PASTA_TRY(give(*options[i], *given));
    line.origins.emplace_back(fmt::format("--{}", name_of(row)), given->origin);
  }
  return line;
}

}  // namespace pasta::cli
