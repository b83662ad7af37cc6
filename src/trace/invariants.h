// The laws every trace obeys, checked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/recorder.h"
#include "pasta/report.h"

namespace pasta::trace {

enum class Law : std::uint8_t {
  kOrder,             // events come in order of end_ns, untimed ones first
  kEndNotBefore,      // a timed event does not end before it starts
  kUntimedHasNoTime,  // flag untimed if and only if both times are kNoTime
  kKindKnown,         // the kind is one
  kFlagsKnown,        // no flag that has no meaning
  kDetailKnown,       // the detail is one of its kind's
  kIdsKnown,          // every id is in its table
  kLaneFits,          // device work lies on a queue, a host call on a thread
  kCorrelationOwner,  // a correlation names a process
  kLinkedHasLaunch,   // linked device work has its launch call in the trace
  kUnusedZero,        // payload bytes that the kind does not use are zero
  kTablesSound,       // table entries refer to entries that are there
  kFramesNested,      // a frame's parent was made before it: no cycles
  kCount,
};

// Counts violations of each law while a trace passes; report() may be asked for after end().
class InvariantChecker final : public Recorder {
 public:
  Status begin(const Dictionary& dictionary) override;
  Status record(std::span<const Event> events) override;
  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> problems) override;

  // Table `invariants`: law, checked, violations, first (unknown where there is none).
  // Table `problems`: source, reason, severity, count, first: what the readers reported.
  [[nodiscard]] Report report() const;
  [[nodiscard]] std::uint64_t violations() const;

 private:
  struct Tally {
    std::uint64_t checked = 0;
    std::uint64_t violations = 0;
    std::string first;
  };
  // `place` is called for the first violation only.
  template <class Place>
  void check(Law law, bool holds, Place&& place);
  void check(const Event& event);
  void check_tables();
  [[nodiscard]] bool ids_known(const Event& event) const;
  [[nodiscard]] std::string place(const Event& event) const;

  const Dictionary* dictionary_ = nullptr;
  std::array<Tally, static_cast<std::size_t>(Law::kCount)> tallies_;
  std::uint64_t seen_ = 0;
  std::int64_t last_end_ns_ = 0;
  // Launches and linked work meet only at the end: either may come first.
  struct Linked {
    std::uint64_t correlation;
    std::uint64_t number;  // of the event
  };
  std::vector<std::uint64_t> launches_;
  std::vector<Linked> linked_;
  struct SourceProblem {
    std::string source;
    Problem problem;
  };
  std::vector<SourceProblem> problems_;
};

}  // namespace pasta::trace
