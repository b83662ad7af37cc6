#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/units.h"

namespace pasta::cli {
namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr std::string_view kErase = "\r\033[K";

void write_to_terminal(std::string_view text) {
  // Nothing depends on what became of it.
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

std::size_t width_of_terminal() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

// "4 s", "3 min 20 s", "2 h 5 min".
std::string time_left(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", std::max<std::int64_t>(whole, 1));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

bool can_draw() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

Progress::Progress(const ReadProgress& read, bool wanted)
    : read_(read), on_(wanted && can_draw()), next_(start_ + kInterval) {}

Progress::~Progress() {
  if (drawn_) write_to_terminal(kErase);
}

void Progress::draw() {
  drawn_ = true;
  next_ = Clock::now() + kInterval;
  const std::size_t room = width_of_terminal() - 1;  // a full line would begin the next
  write_to_terminal(std::string(kErase) + text().substr(0, room));
}

std::string Progress::text() const {
  const std::uint64_t read = read_.read_bytes.load(std::memory_order_relaxed);
  const std::uint64_t total = read_.total_bytes;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = static_cast<double>(read) / seconds;
  const std::string speed =
      fmt::format("{}/s", base::format_bytes(static_cast<std::uint64_t>(rate)));
  if (!read_.total_known) return fmt::format("read {}, {}", base::format_bytes(read), speed);
  if (read >= total) return fmt::format("read {}, analysing", base::format_bytes(total));
  return fmt::format(
      "read {} of {} ({}%), {}, {} left", base::format_bytes(read), base::format_bytes(total),
      read * 100 / total, speed,
      read == 0 ? "unknown time" : time_left(static_cast<double>(total - read) / rate));
}

}  // namespace pasta::cli
