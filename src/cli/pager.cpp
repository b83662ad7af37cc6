#include "cli/pager.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

extern char** environ;

namespace pasta::cli {
namespace {

std::string command() {
  for (const char* variable : {"PASTA_PAGER", "PAGER"}) {
    if (const char* value = std::getenv(variable)) return value;
  }
  return "less -FRX";  // ends by itself when all fits, keeps colours, leaves the text there
}

// Ignored while the pager runs: what the user types at it is meant for it, and it may end before it
// has read all.
constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGPIPE};

class Ignored {
 public:
  Ignored() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      before_[i] = std::signal(kSignals[i], SIG_IGN);
  }
  ~Ignored() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }
  Ignored(const Ignored&) = delete;
  Ignored& operator=(const Ignored&) = delete;

 private:
  std::array<void (*)(int), kSignals.size()> before_{};
};

// A shell that runs `line` with `input` as its standard input. -1 when there is none.
pid_t start(std::string line, int input) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  sigset_t normal;
  ::sigemptyset(&normal);
  for (const int signal : kSignals) ::sigaddset(&normal, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &normal);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::array shell = {std::string("sh"), std::string("-c"), std::move(line)};
  std::array<char*, 4> words = {shell[0].data(), shell[1].data(), shell[2].data(), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, "/bin/sh", &actions, &attributes, words.data(), environ) != 0) {
    child = -1;
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Less than all when the reader has seen enough.
void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

bool page(std::string_view text) {
  std::string line = command();
  if (line.find_first_not_of(' ') == std::string::npos) return false;
  // Reports are UTF-8 whatever the locale says.
  ::setenv("LESSCHARSET", "utf-8", 0);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const Ignored ignored;
  const pid_t child = start(std::move(line), ends[0]);
  ::close(ends[0]);
  if (child >= 0) write_all(ends[1], text);
  ::close(ends[1]);
  if (child < 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kCannotRun = 126, kNotFound = 127;  // as shells say it
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return code != kCannotRun && code != kNotFound;
}

}  // namespace pasta::cli
