// The second pass of the assembler: call paths of host events, and what each launch leaves behind.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "correlate/frame_map.h"
#include "correlate/open_ranges.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"

namespace pasta::correlate {

// Ends of arrows travel through the sort as events of these kinds, with start_ns where the arrow is
// bound. Their end_ns puts heads before, and tails after, all ranges that start at the same time:
// a head takes what starts then, a tail what has started.
inline constexpr Kind kLaunchHead{0xF0}, kLaunchTail{0xF1}, kForwardTail{0xF2}, kBackwardHead{0xF3};
inline constexpr bool is_flow(Kind kind) { return kind >= kLaunchHead; }

// `Event::scope` of device work whose correlation is the id of a launch arrow.
inline constexpr FrameId kByArrow{~std::uint32_t{0}};

// A time as messages give it: as written when the shifted one does not fit.
inline std::int64_t shown(std::int64_t at_ns, std::int64_t shift_ns) {
  std::int64_t shifted = 0;
  const bool fits = !__builtin_add_overflow(at_ns, shift_ns, &shifted) && shifted != kNoTime;
  return fits ? shifted : at_ns;
}

class HostPass {
 public:
  struct Options {
    bool launch_flows = false;       // arrows lead from launches to device work
    bool backward_by_flows = false;  // arrows lead from forward to backward operators
    std::int64_t shift_ns = 0;       // for times in messages
  };
  HostPass(Dictionary& dictionary, Problems& problems, FrameMap& launches, FrameMap& arrows,
           Options options);

  // All that starts at one time, in order (see trace/sorted_runs.h), groups in order of start.
  // Sets scope, and correlation where an arrow gives one. Very large groups may come in pieces.
  void place(std::span<Event> group);

 private:
  struct LaneState {
    bool known = false;
    bool queue = false;
    bool runs_forward = false;
    ProcessId process{};
    OpenRanges open;
    std::vector<std::uint64_t> heads;  // launch arrows that wait for device work of this group
    std::size_t next_head = 0;
  };
  // Autograd's thread numbers are not those of the operating system.
  struct ForwardThreads {
    std::vector<LaneId> lanes;                            // with forward operators
    std::unordered_map<std::uint32_t, LaneId> of_number;  // learned
  };
  struct Rehang {
    const Event* event;
    FrameId forward;
  };

  LaneState& state(LaneId id);
  void place_event(Event& event);
  void leave_launch(const Event& event);
  void launch_head(const Event& flow);
  void launch_tail(const Event& flow, std::span<Event> group);
  void forward_tail(const Event& flow);
  void backward_head(const Event& flow, std::span<const Event> group);
  void end_of_heads();
  // Path of the forward operator of which `event` is the backward, or none.
  FrameId forward_of(const Event& event, const LaneState& lane);
  void remember_forward(const Event& event, LaneState& lane, FrameId node);
  [[nodiscard]] bool is_node(const Event& event) const;
  [[nodiscard]] bool lies_below(FrameId path, FrameId above) const;
  [[nodiscard]] std::string where(StringId name, std::int64_t at_ns) const;
  void flow_without_end(const Event& flow);

  Dictionary& dictionary_;
  Problems& problems_;
  FrameMap& launches_;
  FrameMap& arrows_;
  Options options_;
  FrameMap forward_;  // by arrow id, or by lane and sequence number
  std::vector<LaneState> lanes_;
  std::unordered_map<std::uint32_t, ForwardThreads> processes_;
  std::vector<Rehang> rehangs_;    // of this group
  std::vector<Event> open_heads_;  // launch heads of this group
};

}  // namespace pasta::correlate
