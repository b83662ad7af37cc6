#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "cli/options.h"
#include "cli/pager.h"
#include "pasta/quality.h"

namespace pasta::cli {
namespace {

constexpr int kWidthWithoutTerminal = 120;

Result<int> width_of(const Settings& settings, int terminal) {
  if (!settings.width.empty()) return number_of("width", settings.width, 1);
  winsize size{};
  if (settings.output == "-" && ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  const char* columns = std::getenv("COLUMNS");
  return columns == nullptr ? kWidthWithoutTerminal
                            : number_of("width", columns, 1).value_or(kWidthWithoutTerminal);
}

bool to_terminal(const Settings& settings, int terminal) {
  return settings.output == "-" && isatty(terminal) == 1;
}

bool longer_than_terminal(std::string_view text) {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
         std::count(text.begin(), text.end(), '\n') >= size.ws_row;
}

bool colour_wanted(const Settings& settings, int to) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return to_terminal(settings, to);
}

report::TimeUnit time_unit_of(std::string_view name) {
  using enum report::TimeUnit;
  return name == "ns"   ? kNanoseconds
         : name == "us" ? kMicroseconds
         : name == "ms" ? kMilliseconds
         : name == "s"  ? kSeconds
                        : kAuto;
}

std::string_view explain(std::string_view id) {
  for (const ReasonInfo& reason : reasons()) {
    if (reason.id == id) return reason.help;
  }
  return "";
}

// Letters to insert, remove, change or swap with their neighbour.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
      }
    }
    before = std::exchange(row, next);
  }
  return row[b.size()];
}

}  // namespace

Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return {};
  }
  return fail(ErrorCode::kIo,
              fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

void say(std::string_view line) { fmt::print(stderr, "pastaprof: {}\n", line); }

int exit_code(const Error& error) {
  return error.code == ErrorCode::kUsage ? kWrongUsage : kNoAnswer;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_edits = word.size() / 3 + 1;  // a longer way is no slip
  for (const std::string_view candidate : candidates) {
    const std::size_t count =
        word.size() >= 3 && candidate.starts_with(word) ? 1 : edits(word, candidate);
    if (count > best_edits || (count == best_edits && !best.empty())) continue;
    best = candidate;
    best_edits = count;
  }
  return best;
}

Result<Destination> Destination::open(const Settings& settings, Stream stream) {
  const int terminal = stream == Stream::kOutput ? STDOUT_FILENO : STDERR_FILENO;
  const auto width = width_of(settings, terminal);
  if (!width) return tl::unexpected(width.error());
  const auto rows = number_of("top", settings.top, 0);
  if (!rows) return tl::unexpected(rows.error());
  Destination destination;
  destination.format_ = settings.format;
  destination.stream_ = stream;
  destination.page_ = stream == Stream::kOutput && to_terminal(settings, terminal) &&
                      !settings.no_pager && settings.format != "json" && settings.format != "csv";
  destination.text_.width = *width;
  destination.text_.colour = colour_wanted(settings, terminal);
  destination.text_.time_unit = time_unit_of(settings.time_unit);
  destination.text_.max_rows = static_cast<std::size_t>(*rows);
  destination.text_.explain = explain;
  if (settings.output != "-") {
    auto file = trace::OutputFile::open(settings.output, {.overwrite = settings.force});
    if (!file) return tl::unexpected(std::move(file).error());
    destination.file_.emplace(std::move(*file));
  }
  return destination;
}

Status Destination::write(const Document& document) {
  const std::string text = format_ == "json"  ? report::render_json(document)
                           : format_ == "csv" ? report::render_csv(document)
                                              : report::render_text(document, text_);
  if (page_ && longer_than_terminal(text) && page(text)) return {};
  if (!file_ && stream_ == Stream::kError) {
    fmt::print(stderr, "{}", text);
    return {};
  }
  if (!file_) return print(text);
  PASTA_TRY(file_->write(text));
  return file_->close();
}

}  // namespace pasta::cli
