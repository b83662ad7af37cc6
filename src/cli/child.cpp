#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace pasta::cli {
namespace {

constexpr int kWaitMs = 50;
constexpr std::chrono::seconds kTwice{1};
// Those that somebody may send to us and mean the program.
constexpr std::array kForwarded = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,   SIGUSR1,
                                   SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGTSTP};

bool g_pipe_ignored = false;

// Those who are to end what they are sent to.
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

void leave_streams(Child::Streams streams) {
  if (streams == Child::Streams::kOurs) return;
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDOUT_FILENO);
  if (streams == Child::Streams::kNone) dup2(nothing, STDIN_FILENO);
}

[[noreturn]] void become(char* const* words, const sigset_t& mask, int report) {
  if (g_pipe_ignored) std::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0], words);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = write(report, &reason, sizeof reason);
  _exit(127);
}

// As who does not know of this signal: also in that it does nothing where nobody could go on with
// what is stopped.
void stop() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

void remember_signals() {
  struct sigaction before {};
  sigaction(SIGPIPE, nullptr, &before);
  g_pipe_ignored = before.sa_handler == SIG_IGN;
}

Result<Child> Child::start(const std::vector<std::string>& words,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           Streams streams) {
  const auto refused = [&](int reason) {
    const bool missing = reason == ENOENT;
    return fail(missing ? ErrorCode::kNotFound : ErrorCode::kUnsupported,
                fmt::format("{}: {}", words[0],
                            missing ? "there is no such program" : std::strerror(reason)));
  };
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : kForwarded) sigaddset(&signals, signal);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &before);
  int ends[2] = {-1, -1};
  const int arriving = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (arriving < 0 || pipe2(ends, O_CLOEXEC) != 0) return refused(errno);
  const pid_t id = fork();
  if (id < 0) return refused(errno);
  if (id == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    leave_streams(streams);
    become(pointers.data(), before, ends[1]);
  }
  close(ends[1]);
  int reason = 0;
  ssize_t size = 0;
  do size = read(ends[0], &reason, sizeof reason);
  while (size < 0 && errno == EINTR);
  close(ends[0]);
  if (size == sizeof reason) {
    waitpid(id, nullptr, 0);
    close(arriving);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return refused(reason);
  }
  return Child(id, arriving);
}

Child::Exit Child::wait(const std::function<void()>& meanwhile,
                        const std::function<void()>& before_stop) {
  using Clock = std::chrono::steady_clock;
  Exit exit;
  Clock::time_point next = Clock::now();
  Clock::time_point interrupted{};
  for (;;) {
    pid_t ended = 0;
    do ended = waitpid(id_, &exit.wait_status, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended != 0) break;
    pollfd waiting{signals_, POLLIN, 0};
    poll(&waiting, 1, kWaitMs);
    signalfd_siginfo got;
    while (read(signals_, &got, sizeof got) == sizeof got) {
      const int signal = static_cast<int>(got.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (std::ranges::find(kEnding, signal) != kEnding.end()) exit.interrupted = true;
      const bool of_terminal = got.ssi_code == SI_KERNEL;
      if (!of_terminal) kill(id_, signal);
      if (signal == SIGTSTP) {
        before_stop();
        stop();
      }
      if (of_terminal && signal == SIGINT) {
        const Clock::time_point now = Clock::now();
        exit.left = interrupted != Clock::time_point{} && now - interrupted < kTwice;
        interrupted = now;
      }
    }
    if (exit.left) break;
    if (Clock::now() < next) continue;
    meanwhile();
    next = Clock::now() + std::chrono::milliseconds(kWaitMs);
  }
  close(signals_);
  return exit;
}

}  // namespace pasta::cli
