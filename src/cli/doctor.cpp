// pastaprof doctor: what can be had on this machine, and why not the rest.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/temp_file.h"
#include "base/units.h"
#include "cli/check.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/json_object.h"
#include "cli/live_adapters.h"
#include "pasta/adapter.h"
#include "report/text_layout.h"

namespace pasta::cli {
namespace {

using State = Found::State;
constexpr std::array<std::string_view, 3> kStateNames = {"ok", "warning", "missing"};

Found version() { return {.detail = std::string(kVersion)}; }

Found readers() {
  std::vector<std::string> known;
  for (const ReaderEntry& reader : builtin_readers()) {
    known.push_back(fmt::format("{} ({})", reader.info.name, reader.info.help));
  }
  return {.detail = fmt::format("{}", fmt::join(known, "; "))};
}

Found cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
  const int usable = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
  if (all < 1) return {State::kWarning, "the number of cores is not known", ""};
  if (usable < 1 || usable >= all) return {.detail = fmt::format("{}", all)};
  return {.detail = fmt::format("{} of {}", usable, all)};
}

Found memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages < 1 || size < 1) return {State::kWarning, "the size of the memory is not known", ""};
  const auto bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  return {.detail = base::format_bytes(bytes)};
}

// Where events go that do not fit into memory while they are put in order.
Found scratch() {
  const char* given = std::getenv("TMPDIR");
  const std::string folder = given == nullptr || *given == '\0' ? "/tmp" : given;
  const std::string remedy = "name another folder in TMPDIR, or raise --memory";
  auto file = base::TempFile::create();
  const Status written =
      file ? file->append(std::array<std::byte, 1>{}) : Status(tl::unexpected(file.error()));
  if (!written) return {State::kMissing, written.error().message, remedy};
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return {State::kWarning, fmt::format("{}: free space unknown", folder), ""};
  constexpr std::uintmax_t kLittle = std::uintmax_t{1} << 30;
  const bool little = space.available < kLittle;
  return {little ? State::kWarning : State::kOk,
          fmt::format("{}, {} free", folder, base::format_bytes(space.available)),
          little ? remedy : ""};
}

Found terminal() {
  if (::isatty(STDOUT_FILENO) != 1) {
    return {.detail = "standard output is none: no colours, no pager"};
  }
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const char* type = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  const bool colours = (no_color == nullptr || *no_color == '\0') &&
                       (type == nullptr || std::string_view(type) != "dumb");
  return {.detail = fmt::format("{} columns, {} lines, {}{}", size.ws_col, size.ws_row,
                                type == nullptr ? "type unknown" : type,
                                colours ? "" : ", no colours wanted")};
}

Found settings_files() {
  const auto files = read_config();
  if (!files) return {State::kWarning, files.error().message, "mend that line"};
  std::vector<std::string_view> paths;
  for (const ConfigFile& file : *files) paths.push_back(file.path);
  return {.detail = paths.empty() ? "no pasta.toml" : fmt::format("{}", fmt::join(paths, ", "))};
}

struct Check {
  std::string_view name;
  Found (*run)();
};
constexpr std::array kChecks = {
    Check{"version", version},   Check{"formats", readers}, Check{"cores", cores},
    Check{"memory", memory},     Check{"scratch", scratch}, Check{"pasta.toml", settings_files},
    Check{"terminal", terminal},
};

constexpr std::array<std::string_view, 3> kFormats = {"text", "table", "json"};
const OptionRow kFormatRowOfDoctor = {"--format",        "PASTA_FORMAT",
                                      "FORMAT",          "text or json; table is text",
                                      &Settings::format, kFormats};

std::string as_text(const Check& check, const Found& found) {
  constexpr std::size_t kWidth = 80;
  const std::string head =
      fmt::format("{:<11} {:<8} ", check.name, kStateNames[static_cast<std::size_t>(found.state)]);
  const std::string indent(head.size(), ' ');
  std::string text;
  const auto append = [&](std::string_view words, std::string_view first, std::string_view others) {
    for (const std::string& line : report::wrap(words, kWidth - indent.size() - 2)) {
      text += fmt::format("{}{}\n", first, line);
      first = others;
    }
  };
  append(report::clean(found.detail), head, indent);
  if (!found.remedy.empty()) append(found.remedy, indent + "→ ", indent + "  ");
  return text;
}

std::string as_json(const Check& check, const Found& found) {
  return JsonObject()
      .text("name", check.name)
      .text("status", kStateNames[static_cast<std::size_t>(found.state)])
      .text("detail", found.detail)
      .text("remedy", found.remedy)
      .done();
}

Result<int> run(const Settings& settings) {
  std::string text;
  std::vector<std::string> objects;
  std::vector<Check> checks(kChecks.begin(), kChecks.end());
  for (const LiveAdapter& adapter : live_adapters())
    checks.push_back({adapter.name, adapter.check});
  for (const Check& check : checks) {
    const Found found = check.run();
    text += as_text(check, found);
    objects.push_back(as_json(check, found));
  }
  if (settings.format == "json") {
    text = fmt::format("{{\"checks\": [\n{}\n]}}\n", fmt::join(objects, ",\n"));
  }
  PASTA_TRY(print(text));
  return kComplete;
}

}  // namespace

const Verb kDoctor = {"doctor",
                      "What can be had on this machine, and why not the rest",
                      nullptr,
                      nullptr,
                      true,
                      false,
                      {&kFormatRowOfDoctor},
                      run};

}  // namespace pasta::cli
