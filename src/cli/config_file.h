// pasta.toml: what options are when neither the command line nor the environment says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "pasta/result.h"

namespace pasta::cli {

// KEY = VALUE.
struct ConfigEntry {
  std::string section;  // a verb; empty: of every verb that has the option
  std::string key;      // long name of an option, without dashes
  std::vector<std::string> values;
  bool is_list = false;
  bool is_bool = false;
  int line = 0;
};

struct ConfigFile {
  std::string path;
  std::vector<ConfigEntry> entries;
};

// A subset of TOML: comments, sections, and bare keys with a string, a number, true or false, or a
// list of those. kUsage, naming the line, for all else.
Result<ConfigFile> parse_config(std::string path, std::string_view text);

// The files that there are: pasta.toml of the working folder, then the user's own
// ($XDG_CONFIG_HOME/pastaprof/pasta.toml, by default in ~/.config). The first counts more. Every
// key is an option that its section has; else kUsage, with the name that was probably meant.
Result<std::vector<ConfigFile>> read_config();

// What `file` says of the option for this verb: the verb's section counts more.
const ConfigEntry* find_entry(const ConfigFile& file, const Verb& verb, const OptionRow& row);

}  // namespace pasta::cli
