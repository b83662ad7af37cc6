// What `run --live` shows on the terminal while the program runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/live_counts.h"
#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::cli {

// The lowest lines of the terminal that is standard error. What the program writes scrolls above
// them, so nothing of it is lost. As long as this lives and has been drawn, the terminal scrolls
// only there; the destructor gives it back.
class LiveView {
 public:
  // None, and it is said why, when standard error is no terminal that can do it.
  static std::unique_ptr<LiveView> open();
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // What happens is told by this from now on.
  Status watch(std::unique_ptr<Adapter> adapter);
  // Now and then; draws about four times a second.
  void draw();
  // Gives the terminal back until the next draw.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;
  LiveView() = default;

  LiveCounts counts_;
  std::unique_ptr<Adapter> adapter_;  // none: nothing more is told
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_{};
  int rows_ = 0, lines_ = 0;  // of the terminal, and of them ours; 0: hidden
};

}  // namespace pasta::cli
