// A program with known answers: pasta.h from several threads, fork and exec, and every way to end.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "pasta/pasta.h"

namespace {

void work(int ranges) {
  for (int i = 0; i < ranges; ++i) {
    pasta::annotate outer("outer");
    pasta::annotate inner("inner");
  }
}

// Says on standard output what has been annotated, after it has been.
[[noreturn]] void announce() {
  pasta::annotate open("open");
  for (unsigned count = 1;; ++count) {
    pasta_mark("announced");
    if (write(STDOUT_FILENO, &count, sizeof count) != sizeof count) _exit(1);
  }
}

// What lies inside of a range "wanted" of any thread, and what does not.
void capture() {
  pasta::annotate around("around");
  work(1);
  for (int i = 0; i < 2; ++i) {
    pasta::annotate wanted("wanted");
    pasta::annotate nested("wanted");
    work(1);
    std::thread(work, 1).join();
    if (fork() == 0) {
      work(1);
      std::exit(0);
    }
    wait(nullptr);
  }
  if (fork() == 0) {
    work(1);
    std::exit(0);
  }
  wait(nullptr);
  work(1);
}

void expect(bool done) {
  if (!done) std::abort();
}

// Two processes of two threads do some of their work, wait for a line of input with ranges open,
// and do the rest.
int phases() {
  pasta::annotate around("around");
  int ready[2], go[2];
  expect(pipe(ready) == 0 && pipe(go) == 0);
  const pid_t child = fork();
  const auto thread = [&] {
    pasta::annotate open("open");
    work(5);
    char byte = 0;
    expect(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
    work(5);
  };
  std::thread first(thread), second(thread);
  if (child != 0) {
    char bytes[4];
    for (char& byte : bytes) expect(read(ready[0], &byte, 1) == 1);
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
    expect(write(go[1], bytes, sizeof bytes) == sizeof bytes);
  }
  first.join();
  second.join();
  if (child == 0) _exit(0);
  wait(nullptr);
  return 0;
}

// Ranges from four threads until there is a line of input.
int busy() {
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        work(10);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  over = true;
  for (std::thread& each : threads) each.join();
  return 0;
}

// Tells of each SIGINT, and ends by nothing but SIGKILL or a line of input.
int stubborn() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, "interrupted\n", 12);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  pasta_mark("waiting");
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  std::getchar();
  return 5;
}

// Numbered lines, each with ranges, until there is a line of input.
int lines() {
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int i = 0; !over; ++i) {
      work(100);
      if (i < 60) std::printf("line %d\n", i);
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  std::getchar();
  over = true;
  writer.join();
  std::puts("the end");
  return 3;
}

// A moment, and after a line of input another.
int gate() {
  pasta_mark("before");
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  pasta_mark("after");
  return 4;
}

void end_by(const std::string& how) {
  pasta::annotate open("open");
  if (how == "_exit") _exit(5);
  if (how == "exit") std::exit(6);
  if (how == "abort") std::abort();
  if (how == "segfault") std::raise(SIGSEGV);
  if (how == "kill") std::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "ranges") {
    work(count);
  } else if (what == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(work, 10);
    for (std::thread& thread : threads) thread.join();
  } else if (what == "short-threads") {
    for (int i = 0; i < count; ++i) std::thread(work, 1).join();
  } else if (what == "fork") {
    pasta::annotate open("around the fork");
    for (int i = 0; i < count; ++i) {
      if (fork() == 0) {
        work(3);
        _exit(i);
      }
    }
    while (wait(nullptr) > 0) {
    }
  } else if (what == "steps") {
    for (int i = 0; i <= count; ++i) {
      pasta_step();
      work(1);
    }
  } else if (what == "stopped") {
    pasta_stop();
    work(count);
    pasta_start();
    pasta_mark("on");
  } else if (what == "tag") {
    pasta_tag(argv, 16, "arguments");
  } else if (what == "stop-inside") {
    const std::uint64_t range = pasta_begin("begun before");
    pasta_stop();
    pasta_end(range);
    pasta_start();
    work(1);
  } else if (what == "capture") {
    capture();
  } else if (what == "gate") {
    return gate();
  } else if (what == "phases") {
    return phases();
  } else if (what == "busy") {
    return busy();
  } else if (what == "stubborn") {
    return stubborn();
  } else if (what == "lines") {
    return lines();
  } else if (what == "announce") {
    announce();
  } else if (what == "wait") {
    pasta_mark("waiting");
    std::puts("ready");
    std::fflush(stdout);
    for (;;) pause();
  } else {
    end_by(what);
  }
  return 0;
}
