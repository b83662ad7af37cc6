// How far reading has come: one line on the terminal.
#pragma once

#include <chrono>
#include <string>

#include "pasta/adapter.h"

namespace pasta::cli {

class Progress {
 public:
  // Draws nothing unless `wanted` and standard error is a terminal. `read` outlives it.
  Progress(const ReadProgress& read, bool wanted);
  // Takes away what it drew.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws, when the last time is long enough ago. To be called often.
  void update() {
    if (on_ && Clock::now() >= next_) draw();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  [[nodiscard]] std::string text() const;

  const ReadProgress& read_;
  bool on_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace pasta::cli
