// The program that is watched, as a child that runs as if it were alone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pasta/result.h"

namespace pasta::cli {

class Child {
 public:
  struct Exit {
    int wait_status = 0;
    // Somebody at the terminal pressed Ctrl-C twice: the program is still running.
    bool left = false;
    // Somebody wanted it to end, by a signal that came to this process, too.
    bool interrupted = false;
  };
  // What the program's standard input and output are.
  enum class Streams : unsigned char { kOurs, kNoOutput, kNone };

  // `environment` is added to this process's. Errors: kNotFound and kUnsupported as shells tell
  // 127 and 126 apart; then no program has run.
  static Result<Child> start(const std::vector<std::string>& words,
                             const std::vector<std::pair<std::string, std::string>>& environment,
                             Streams streams = Streams::kOurs);
  [[nodiscard]] pid_t id() const { return id_; }

  // Until the program ends, `meanwhile` is called about 20 times a second. A signal that was sent
  // to this process alone goes on to the program; what the terminal sends it gets anyway. Where
  // that stops both, `before_stop` is called first.
  Exit wait(const std::function<void()>& meanwhile, const std::function<void()>& before_stop);

 private:
  Child(pid_t id, int signals) : id_(id), signals_(signals) {}
  pid_t id_;
  int signals_;  // signalfd
};

// To be called first of all: what signals the program is to find as it would without us.
void remember_signals();

}  // namespace pasta::cli
