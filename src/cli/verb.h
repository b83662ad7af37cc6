// What the program can do: one Verb a file, told apart by the first word of the command line.
#pragma once

#include <pasta_version.h>

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pasta/result.h"

namespace pasta::cli {

inline constexpr std::string_view kVersion = "pastaprof " PASTA_VERSION " (" PASTA_COMMIT ")";

// Exit codes of every verb.
inline constexpr int kComplete = 0;
inline constexpr int kNoAnswer = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kIncomplete = 3;  // an event or a value was dropped or altered
// But run has those of the program it runs, and for its own as shells have them.
inline constexpr int kRunWrongUsage = 125;
inline constexpr int kCannotRun = 126;
inline constexpr int kNoSuchProgram = 127;

// What the user said, as text. Each verb understands what it offers.
struct Settings {
  std::vector<std::string> operands;
  std::vector<std::string> tools;
  std::vector<std::string> tool_options;  // [TOOL.]NAME=VALUE
  std::vector<std::string> plugins;       // files
  std::vector<std::string> adapters;      // of run: what to watch
  std::vector<std::string> devices;
  std::vector<std::string> ranks;
  std::vector<std::string> labels;
  std::string format = "text";
  std::string output = "-";
  std::string target = "pasta";  // of export
  std::string from, to;
  std::string time_unit = "auto";
  std::string top = "30";
  std::string width;
  std::string memory = "256MiB";
  std::string sort;          // COLUMN[:asc|desc]
  std::string filter;        // a regular expression
  std::string report = "-";  // of run: where its report goes; - is standard error
  std::string spool;         // of run: what its folder may use at most
  std::string delay, duration;
  std::string capture, include, exclude, keep, counters, pc_sampling;
  std::string cuda_graphs = "nodes";
  std::string cuda_fills = "work";
  std::string cuda_clock = "device";
  bool cuda_driver_calls = false;
  std::string python = "lines";
  bool no_values = false;
  std::string launches = "first:10";  // of run: which a patch analyses
  std::string passes = "auto";        // of run: how often
  std::vector<std::string> patched;   // of merge: traces of the same program with patches
  bool strict = false;
  bool force = false;
  bool quiet = false;
  bool live = false;
  bool no_pager = false;
};

// One option, shared by all verbs that offer it: parsed, and told in the help, the manual page and
// the completion of shells. The environment variable counts when the command line does not name the
// option, and pasta.toml when neither does.
struct OptionRow {
  const char* names;  // "-o,--output"; the long name comes after the short one
  const char* environment;
  const char* value;  // what stands for the value in the help; none for a flag
  const char* help;
  std::variant<std::string Settings::*, std::vector<std::string> Settings::*, bool Settings::*>
      target;
  std::span<const std::string_view> choices = {};  // empty = any text
  bool comma_separated = false;                    // of a list
  // Not taken from a pasta.toml that lies in the working folder: such a file may have come with
  // the traces, and must not load code or overwrite files.
  bool own_file_only = false;
  // Words that a shell offers for a value that can be any text; none: names of files.
  std::vector<std::string_view> (*suggest)() = nullptr;
};

struct Verb {
  std::string_view name;
  std::string_view help;
  const char* operand;  // what stands for one in the help; none: there is none
  const char* operand_help;
  bool operand_optional, operand_repeats;
  std::vector<const OptionRow*> options;
  // Its exit code. Prints only results.
  Result<int> (*run)(const Settings& settings);
  // What an operand can be; none: the name of a file.
  std::vector<std::string_view> (*suggest)() = nullptr;
  bool hidden = false;  // in the list of verbs
  // Its operands are a program and that one's own arguments: what comes after the first is no
  // option of ours.
  bool runs_program = false;
};

extern const Verb kRun;
extern const Verb kReport;
extern const Verb kTools;
extern const Verb kDump;
extern const Verb kCheck;
extern const Verb kExport;
extern const Verb kMerge;
extern const Verb kJoin;
extern const Verb kDoctor;
extern const Verb kHelp;
extern const Verb kCompletion;

// In the order of the help.
std::span<const Verb* const> verbs();
// None: there is no such verb.
const Verb* find_verb(std::string_view name);

}  // namespace pasta::cli
