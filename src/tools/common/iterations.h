// The iterations of a trace: by its marks where it has some, else found in what the devices did.
// How it is decided is in docs/iterations.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/tool.h"

namespace pasta::tools {

// Which of both says what an iteration is.
enum class MarksUse : std::uint8_t {
  kUse,     // marks, and mining where there are none
  kIgnore,  // mining, as if there were no marks
  kOnly,    // marks or nothing
};
// The option `marks` of every tool that asks for iterations, and what its text means.
inline constexpr std::string_view kMarksChoices[] = {"use", "ignore", "only"};
inline constexpr OptionInfo kMarksOption = {
    "marks", "whether marks say what an iteration is: use, ignore, or only (mine nothing)", "use",
    kMarksChoices};
MarksUse marks_use(std::string_view text);

// What the component must be fed with.
inline constexpr KindSet kIterationKinds = kDeviceWork | Kind::kApi | Kind::kScope | Kind::kGap;

enum class IterationPhase : std::uint8_t {
  kWarmUp,      // before the steady state, and unlike it
  kSteady,      // one of the many that do the same
  kEvaluation,  // the forward part of a steady one, without the rest
  kCheckpoint,  // state saved to the host
  kPartial,     // the trace begins or ends inside it
  kOther,       // anything else that is not like the steady ones
};
std::string_view phase_name(IterationPhase phase);

struct Iteration {
  // Half-open, on the trace's axis, ascending, not overlapping. Of a mark: from where the host
  // entered it, but not before the previous iteration's device work was done, to where the host
  // left it and its device work was done. Mined: from its first device work to that of the next.
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  // First start and last end of its device work; kNoTime without.
  std::int64_t device_start_ns = kNoTime;
  std::int64_t device_end_ns = kNoTime;
  IterationPhase phase = IterationPhase::kOther;
  // Whether both its ends are known. Not that of the last mined one, of which only the work is, nor
  // that of the first where only ends are marked: their durations do not compare.
  bool whole = true;
  std::int64_t number = -1;  // that its mark bears (ProfilerStep#17); -1 = none
  std::uint64_t device_events = 0;
  std::uint64_t kernels = 0;
  std::int64_t device_ns = 0;  // sum of the durations of its device work
  // Launches by which it differs from the typical one: left out, added or exchanged.
  std::uint64_t edits = 0;
  // Keys of its launches, [first, last]; empty when first > last.
  std::uint64_t first_key = 1;
  std::uint64_t last_key = 0;

  [[nodiscard]] std::int64_t duration_ns() const { return end_ns - start_ns; }
};

enum class IterationOrigin : std::uint8_t { kNone, kMarks, kMined };

// The iterations of one process.
struct IterationRun {
  ProcessId process{};
  IterationOrigin origin = IterationOrigin::kNone;
  std::string marks;          // name of the marks without their numbers: "ProfilerStep#"
  std::string abstained;      // why there are none, one clause; empty when there are
  double confidence = 0;      // 0..1
  std::uint64_t period = 0;   // launches of the typical iteration
  std::uint64_t repeats = 0;  // steady iterations
  double coverage = 0;        // part of the process' device time that lies in iterations, 0..1
  std::uint64_t edits = 0;    // of the steady iterations together
  std::uint64_t lost = 0;     // events that the source lost (`gap`)
  std::vector<Iteration> list;
};

// Which iteration a device event belongs to.
struct IterationMember {
  std::uint32_t run;        // index into Iterations::runs()
  std::uint32_t iteration;  // index into its list
  bool operator==(const IterationMember&) const = default;
};

// The process to which an event of a trace counts. Where a source does not say whose a queue is,
// its correlations still say which work belongs to which calls.
inline ProcessId program_of(const Event& event, ProcessId of_lane) {
  const bool launches = event.kind == Kind::kApi || kDeviceWork.has(event.kind);
  const ProcessId launcher = correlation_process(event.correlation);  // text need not name one
  return launches && launcher ? launcher : of_lane;
}

// Of what an iteration has more than the steady ones on average.
struct IterationExcess {
  StringId work{};  // whose device work took longest beyond that, and by how much
  std::int64_t work_ns = 0;
  StringId waited_for{};  // before which the process' devices stood still longest beyond that
  std::int64_t wait_ns = 0;
};

// Fed with all events of a trace of kIterationKinds, in the order in which a tool gets them;
// counters among them do not matter.
class Iterations {
 public:
  explicit Iterations(MarksUse marks);
  ~Iterations();
  Iterations(Iterations&&) noexcept;
  Iterations& operator=(Iterations&&) noexcept;

  void consume(std::span<const Event> events, const Context& context);
  // After the last event. One run for each process that had device work, or host marks, in order of
  // process.
  void finish(const Context& context);
  [[nodiscard]] std::span<const IterationRun> runs() const;

  // After finish(); reads all device work once more.
  [[nodiscard]] IterationExcess excess(std::size_t run, std::size_t iteration) const;

  // Of a kernel, copy or fill of the trace, after finish(). None: it lies in no iteration. Work
  // belongs to the iteration that launched it, whenever it ran.
  [[nodiscard]] std::optional<IterationMember> member(const Event& work) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::tools
