// What the host threads of a trace did, as far as it explains why a device stood still.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "stats/interval_set.h"
#include "tools/common/api_role.h"
#include "tools/common/idle_cause.h"
#include "tools/common/longest.h"
#include "tools/common/memo.h"

namespace pasta::tools {

// When each cause held, in order of precedence: at any moment the first set that covers it decides.
struct HostLevels {
  struct Level {
    IdleCause cause;
    stats::IntervalSet when;
  };
  std::vector<Level> levels;
  bool any_host = false;  // the trace holds something of the host
};

// Whether what a host process did explains what happens on the queues of another: the same process,
// or, where the source is of one program and does not say whose a queue is, one of that source.
bool same_program(ProcessId host, ProcessId queue, const Dictionary& dictionary);

// Fed with all host events of a trace; the rules are those of docs/idle-causes.md.
class HostActivity {
 public:
  // An event on a host thread.
  void add(const Event& event, const Dictionary& dictionary);

  // Indices of the threads that belong to the processes of some queues.
  [[nodiscard]] std::vector<std::size_t> threads_of(std::span<const ProcessId> queue_processes,
                                                    const Dictionary& dictionary) const;
  [[nodiscard]] HostLevels levels(std::span<const std::size_t> threads) const;
  // Name of the innermost known range of these threads that takes at least half of [begin, end).
  // Only the longest ranges of a trace are known: none may only mean that it was not kept.
  [[nodiscard]] StringId range_in(std::int64_t begin, std::int64_t end,
                                  std::span<const std::size_t> threads) const;

 private:
  // What a moment of a thread can be.
  enum State : std::uint8_t {
    kWaiting,     // in a call that waits for the device
    kInput,       // waiting for input
    kWork,        // in an operator, module or call: short, or issuing work
    kFrame,       // in a Python frame: short, or issuing work
    kLongWork,    // in an operator, module or call that takes long and issues nothing
    kLongFrame,   // in a Python frame or annotation of that sort
    kShortNamed,  // in a short annotation that issues nothing
  };
  static constexpr std::size_t kStates = 7;
  struct Thread {
    ProcessId process{};
    bool issues = false;
    std::int64_t last_issue_ns =
        std::numeric_limits<std::int64_t>::min();  // start of the last call
    std::array<stats::IntervalSet, kStates> states;
  };
  struct Range {
    std::int64_t start_ns, end_ns;
    StringId name;
    std::uint32_t thread;
  };

  Memo<LaneId, std::size_t> index_of_;
  Memo<StringId, ApiRole> roles_;
  Memo<StringId, bool> inputs_;
  std::vector<Thread> threads_;
  Longest<Range> ranges_{std::size_t{1} << 16};
};

}  // namespace pasta::tools
