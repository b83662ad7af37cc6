// From a verb's words, the environment and pasta.toml to Settings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/verb.h"
#include "pasta/result.h"

namespace pasta::cli {

// "-o", "--output": as they are typed.
std::vector<std::string_view> names_of(const OptionRow& row);
// The first long name, without its dashes: how messages and pasta.toml call the option.
std::string_view name_of(const OptionRow& row);

struct CommandLine {
  enum class Wish : unsigned char { kRunVerb, kShowHelp, kShowVersion } wish = Wish::kRunVerb;
  Settings settings;
  // "--top" and "pasta.toml:3": what did not come from the command line.
  std::vector<std::pair<std::string, std::string>> origins;
};

// kUsage, saying what would be right. `words` come after the verb.
Result<CommandLine> parse(const Verb& verb, std::vector<std::string> words);

}  // namespace pasta::cli
