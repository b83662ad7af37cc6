#include "cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/command_line.h"
#include "cli/console.h"

namespace pasta::cli {
namespace {

class Parser {
 public:
  Parser(std::string path, std::string_view text) : text_(text) { file_.path = std::move(path); }

  Result<ConfigFile> parse() {
    for (;;) {
      skip(true);
      if (at_end()) return std::move(file_);
      PASTA_TRY(peek() == '[' ? section() : entry());
      skip(false);
      if (!at_end() && peek() != '\n') return wrong("there is more than one thing on this line");
    }
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char wanted) {
    if (peek() != wanted || at_end()) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::kUsage, fmt::format("{}:{}: {}", file_.path, line_, what));
  }

  // Blanks and comments, and the ends of lines where they mean nothing.
  void skip(bool lines) {
    for (; !at_end(); ++at_) {
      if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_end() || (peek() == '\n' && !lines)) return;
      if (peek() == '\n') ++line_;
      if (std::string_view(" \t\r\n").find(peek()) == std::string_view::npos) return;
    }
  }

  std::string word(std::string_view more) {
    const std::size_t start = at_;
    while (!at_end() && (std::isalnum(static_cast<unsigned char>(peek())) != 0 ||
                         more.find(peek()) != std::string_view::npos)) {
      ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  Status section() {
    take('[');
    skip(false);
    section_ = word("_-");
    skip(false);
    if (section_.empty() || !take(']')) return wrong("a section is [VERB]");
    return {};
  }

  Status entry() {
    ConfigEntry entry;
    entry.section = section_;
    entry.key = word("_-");
    entry.line = line_;
    skip(false);
    if (entry.key.empty() || !take('=')) return wrong("a line is OPTION = VALUE or [VERB]");
    const bool known = std::ranges::any_of(file_.entries, [&](const ConfigEntry& other) {
      return other.section == entry.section && other.key == entry.key;
    });
    if (known) return wrong(fmt::format("{} is given twice", entry.key));
    skip(false);
    if (take('[')) {
      entry.is_list = true;
      for (skip(true); !take(']'); skip(true)) {
        PASTA_TRY(value(entry));
        skip(true);
        if (!take(',') && peek() != ']') return wrong("values of a list have a comma between them");
      }
    } else {
      PASTA_TRY(value(entry));
      entry.is_bool = bare_ && (entry.values[0] == "true" || entry.values[0] == "false");
    }
    file_.entries.push_back(std::move(entry));
    return {};
  }

  Status value(ConfigEntry& entry) {
    bare_ = false;
    if (take('\'')) return quoted(entry, '\'');
    if (take('"')) return quoted(entry, '"');
    bare_ = true;
    std::string text = word("+-._:");
    const bool number = !text.empty() && text.find_first_not_of("+-._0123456789eE") == text.npos;
    if (!number && text != "true" && text != "false") {
      return wrong("a value is \"text\", a number, true, false, or a [list] of those");
    }
    std::erase(text, '_');  // between digits, as TOML allows
    entry.values.push_back(std::move(text));
    return {};
  }

  Status quoted(ConfigEntry& entry, char quote) {
    std::string text;
    for (; !take(quote); ++at_) {
      if (at_end() || peek() == '\n') return wrong("a text without its closing quote");
      if (quote == '\'' || peek() != '\\') {
        text += peek();
        continue;
      }
      ++at_;
      switch (peek()) {
        case '"':
        case '\\':
          text += peek();
          break;
        case 'n':
          text += '\n';
          break;
        case 't':
          text += '\t';
          break;
        default:
          return wrong("after a backslash in \"text\" stands \\, \", n or t; 'text' has none");
      }
    }
    entry.values.push_back(std::move(text));
    return {};
  }

  ConfigFile file_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string section_;
  bool bare_ = false;  // the last value stood without quotes
};

bool names_it(const OptionRow& row, std::string_view key) {
  return std::ranges::any_of(names_of(row), [&](std::string_view name) {
    return name.starts_with("--") && name.substr(2) == key;
  });
}

tl::unexpected<Error> unknown(std::string_view what, const std::string& word,
                              const std::vector<std::string_view>& known) {
  const std::string_view slip = nearest(word, known);
  return fail(ErrorCode::kUsage,
              slip.empty() ? fmt::format("there is no {} {}; there are {}", what, word,
                                         fmt::join(known, ", "))
                           : fmt::format("there is no {} {}; did you mean {}?", what, word, slip));
}

// Whether the entry is an option that its verb, or any, has.
Status check(const ConfigEntry& entry, bool own) {
  std::vector<std::string_view> sections, keys;
  for (const Verb* verb : verbs()) {
    if (verb->options.empty()) continue;
    sections.push_back(verb->name);
    if (!entry.section.empty() && verb->name != entry.section) continue;
    for (const OptionRow* row : verb->options) {
      if (names_it(*row, entry.key)) {
        if (own || !row->own_file_only) return {};
        return fail(ErrorCode::kUsage,
                    fmt::format("{} may stand only in your own file, "
                                "~/.config/pastaprof/pasta.toml: this one may have come with "
                                "somebody's traces",
                                entry.key));
      }
      const std::string_view name = name_of(*row);
      if (std::ranges::find(keys, name) == keys.end()) keys.push_back(name);
    }
  }
  if (keys.empty()) return unknown("verb", entry.section, sections);
  return unknown("option", entry.key, keys);
}

std::string own_path() {
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  if (folder != nullptr && *folder != '\0') return fmt::format("{}/pastaprof/pasta.toml", folder);
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? ""
                                          : fmt::format("{}/.config/pastaprof/pasta.toml", home);
}

}  // namespace

Result<ConfigFile> parse_config(std::string path, std::string_view text) {
  return Parser(std::move(path), text).parse();
}

Result<std::vector<ConfigFile>> read_config() {
  std::vector<ConfigFile> files;
  const std::string own = own_path();
  std::error_code ignored;
  std::vector<std::string> paths = {own};
  if (!std::filesystem::equivalent("pasta.toml", own, ignored))
    paths.insert(paths.begin(), "pasta.toml");
  for (const std::string& path : paths) {
    if (!std::filesystem::is_regular_file(path, ignored)) continue;
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream.is_open() || stream.bad()) {
      return fail(ErrorCode::kUsage, fmt::format("{} cannot be read", path));
    }
    auto file = parse_config(path, text);
    if (!file) return tl::unexpected(std::move(file).error());
    for (const ConfigEntry& entry : file->entries) {
      if (const Status status = check(entry, path == own); !status) {
        return fail(ErrorCode::kUsage,
                    fmt::format("{}:{}: {}", path, entry.line, status.error().message));
      }
    }
    files.push_back(std::move(*file));
  }
  return files;
}

const ConfigEntry* find_entry(const ConfigFile& file, const Verb& verb, const OptionRow& row) {
  for (const std::string_view section : {verb.name, std::string_view()}) {
    for (const ConfigEntry& entry : file.entries) {
      if (entry.section == section && names_it(row, entry.key)) return &entry;
    }
  }
  return nullptr;
}

}  // namespace pasta::cli
