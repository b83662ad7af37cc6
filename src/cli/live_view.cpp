#include "cli/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/console.h"

namespace pasta::cli {
namespace {

constexpr std::chrono::milliseconds kBetween{250};
constexpr int kMostLines = 12;
constexpr int kFewestLines = 3;

// In one piece, so that little comes between it and what the program writes.
void write_to_terminal(std::string_view text) {
  // Nothing depends on what became of it.
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

winsize size_of_terminal() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  return size;
}

// A line, cleared, with the cursor in its first column.
std::string line_at(int row) { return fmt::format("\033[{};1H\033[2K", row); }

}  // namespace

std::unique_ptr<LiveView> LiveView::open() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  if (isatty(STDERR_FILENO) != 1 || dumb) {
    say("--live shows nothing: standard error is no terminal that can do it");
    return nullptr;
  }
  return std::unique_ptr<LiveView>(new LiveView);
}

LiveView::~LiveView() { hide(); }

Status LiveView::watch(std::unique_ptr<Adapter> adapter) {
  adapter_ = std::move(adapter);
  return adapter_->start({}, counts_);
}

void LiveView::draw() {
  if (adapter_) {
    if (auto more = adapter_->pump(); !more || !*more) adapter_.reset();
  }
  const Clock::time_point now = Clock::now();
  // Who draws from the background may be stopped for it.
  if (now < next_ || tcgetpgrp(STDERR_FILENO) != getpgrp()) return;
  next_ = now + kBetween;
  const winsize size = size_of_terminal();
  if (lines_ != 0 && size.ws_row != rows_) hide();
  const int lines = std::min(kMostLines, size.ws_row / 2);
  if (lines < kFewestLines) return;
  std::string out;
  if (lines_ == 0) {
    rows_ = size.ws_row;
    lines_ = lines;
    // Room below the cursor, which then is above our lines; only what is above them scrolls.
    for (int line = 0; line < lines; ++line) out += "\033D";
    out += fmt::format("\033[{}A\0337\033[1;{}r\0338", lines, rows_ - lines);
  }
  const auto text = counts_.text(now - began_, static_cast<std::size_t>(lines_ - 1), size.ws_col);
  out += "\0337\033[?7l" + line_at(rows_ - lines_ + 1) + "\033[2m";
  for (int column = 0; column < size.ws_col; ++column) out += "─";
  out += "\033[0m";
  for (int line = 1; line < lines_; ++line) {
    out += line_at(rows_ - lines_ + 1 + line);
    if (static_cast<std::size_t>(line) <= text.size())
      out += text[static_cast<std::size_t>(line) - 1];
  }
  write_to_terminal(out + "\033[?7h\0338");
}

void LiveView::hide() {
  if (lines_ == 0) return;
  write_to_terminal(fmt::format("\0337\033[r\033[{};1H\033[J\0338", rows_ - lines_ + 1));
  lines_ = 0;
  next_ = {};
}

}  // namespace pasta::cli
