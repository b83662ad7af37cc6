// Programs that end badly, or take away what a collector needs, each with a known answer.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pasta/pasta.h"

namespace {

constexpr int kNotPermitted = 77;

void marks(int count) {
  for (int i = 0; i < count; ++i) pasta_mark("mark");
}

pid_t spawn(const char* program, const char* what, int standard_output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (standard_output >= 0) {
    posix_spawn_file_actions_adddup2(&actions, standard_output, STDOUT_FILENO);
  }
  char* words[] = {const_cast<char*>(program), const_cast<char*>(what), nullptr};
  pid_t child = -1;
  if (posix_spawn(&child, program, &actions, nullptr, words, environ) != 0) std::exit(1);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Says on standard output what has been marked, after it has been.
[[noreturn]] void announce() {
  for (;;) {
    pasta_mark("announced");
    if (write(STDOUT_FILENO, "x", 1) != 1) _exit(1);
  }
}

// Kills `count` programs at random times. Says of each "PID COUNT": what it has announced.
void kill_all(const char* program, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<char> buffer(1 << 16);
  for (int i = 0; i < count; ++i) {
    int ends[2];
    if (pipe(ends) != 0) std::exit(1);
    const pid_t child = spawn(program, "announce", ends[1]);
    close(ends[1]);
    // Some while they start, the others after up to 2000 marks.
    std::size_t told = 0;
    if (random() % 4 == 0) {
      usleep(random() % 3000);
    } else {
      for (const std::size_t enough = random() % 2000; told < enough;) {
        const ssize_t got = read(ends[0], buffer.data(), enough - told);
        if (got <= 0) std::exit(1);
        told += static_cast<std::size_t>(got);
      }
    }
    kill(child, SIGKILL);
    for (ssize_t got = 1; got > 0;) {
      got = read(ends[0], buffer.data(), buffer.size());
      if (got > 0) told += static_cast<std::size_t>(got);
    }
    close(ends[0]);
    waitpid(child, nullptr, 0);
    std::printf("%d %zu\n", child, told);
  }
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  if (setrlimit(static_cast<__rlimit_resource>(resource), &both) != 0) std::exit(kNotPermitted);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "mark") {
    marks(count);
  } else if (what == "announce") {
    announce();
  } else if (what == "kill") {
    kill_all(argv[0], count, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
  } else if (what == "processes") {
    for (int i = 0; i < count; ++i) waitpid(spawn(argv[0], "mark", -1), nullptr, 0);
  } else if (what == "threads") {
    for (int i = 0; i < count; i += 10) {
      std::vector<std::thread> threads;
      for (int k = 0; k < 10; ++k) threads.emplace_back(marks, 1);
      for (std::thread& thread : threads) thread.join();
    }
  } else if (what == "close") {
    for (int file = 0; file < 1024; ++file) close(file);
    marks(count);
  } else if (what == "no-files") {
    marks(1);
    limit(RLIMIT_NOFILE, 0);
    marks(count - 1);
  } else if (what == "no-memory") {
    marks(1);
    limit(RLIMIT_AS, 1);
    marks(count - 1);
  } else if (what == "small-files") {
    limit(RLIMIT_FSIZE, 300 << 10);
    marks(count);
  } else if (what == "chroot") {
    marks(1);
    if (chroot(".") != 0) return kNotPermitted;
    marks(count - 1);
  } else if (what == "unlink") {
    marks(1);
    std::filesystem::remove_all(std::getenv("PASTA_RUN_FOLDER"));
    marks(count - 1);
  } else if (what == "exec") {
    pasta_begin("before");
    pasta_mark("mark");
    execl(argv[0], argv[0], "mark", nullptr);
  } else if (what == "first-thread-ends") {
    std::thread([count] {
      usleep(200'000);
      marks(count);
      std::exit(3);
    }).detach();
    pthread_exit(nullptr);
  } else if (what == "vfork") {
    const pid_t child = vfork();
    if (child == 0) _exit(9);
    marks(count);
    kill(getpid(), SIGKILL);
  } else if (what == "abort") {
    pasta::annotate open("open");
    std::abort();
  }
  return 0;
}
