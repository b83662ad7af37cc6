// The manual page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.h"
#include "cli/help.h"

namespace pasta::cli {
namespace {

// Text that troff takes as it is.
std::string plain(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else if ((letter == '.' || letter == '\'') && out.empty()) {
      out += "\\&";
      out += letter;
    } else {
      out += letter;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", plain(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", plain(text)); }

void append_option(std::string& page, const OptionRow& row) {
  std::vector<std::string> names;
  for (const std::string_view name : names_of(row)) names.push_back(bold(name));
  page += fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (row.value != nullptr) page += ' ' + italic(row.value);
  page += fmt::format("\n{} ({})\n", plain(meaning_of(row)), plain(row.environment));
}

void append_verb(std::string& page, const Verb& verb) {
  page += fmt::format(".SS {}\n.B pastaprof {}", verb.name, verb.name);
  if (!verb.options.empty()) page += " [OPTIONS]";
  page += fmt::format(" {}\n.PP\n{}.\n", operands_of(verb), plain(verb.help));
  if (verb.operand != nullptr) {
    page += fmt::format(".TP\n{}\n{}\n", italic(verb.operand), plain(verb.operand_help));
  }
  for (const OptionRow* row : verb.options) append_option(page, *row);
}

}  // namespace

std::string manual() {
  std::string page = fmt::format(
      ".TH PASTAPROF 1 \"\" \"pastaprof {}\" \"User Commands\"\n"
      ".SH NAME\npastaprof \\- answers questions about what accelerators did\n"
      ".SH SYNOPSIS\n.B pastaprof\n.I VERB\n[OPTIONS] [TRACE...]\n"
      ".SH DESCRIPTION\n"
      "Reads recordings of programs that used accelerators and says where the time went. Formats "
      "are told by content, not by name; gzip, and zip of one file, are opened on the way.\n"
      ".SH VERBS\n",
      PASTA_VERSION);
  for (const Verb* verb : verbs()) {
    if (!verb->hidden) append_verb(page, *verb);
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes()) {
    page += fmt::format(".TP\n{}\n{}\n", code.code, plain(code.meaning));
  }
  page +=
      ".SH ENVIRONMENT\n"
      "An option that is not on the command line takes its value from the variable that stands "
      "behind it above.\n"
      ".TP\n.B NO_COLOR\nNo colours.\n"
      ".TP\n.B PASTA_PAGER\\fR, \\fBPAGER\n"
      "What shows text that is longer than the terminal; empty: nothing does (default: less "
      "\\-FRX)\n"
      ".TP\n.B TMPDIR\nFolder for what does not fit into memory\n"
      ".SH FILES\n"
      ".TP\n.I pasta.toml\\fR, \\fI~/.config/pastaprof/pasta.toml\n"
      "Options that are neither on the command line nor in the environment: lines OPTION = VALUE "
      "with the long name of an option, for one verb below a line [VERB].\n";
  return page;
}

}  // namespace pasta::cli
