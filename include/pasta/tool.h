// An analysis: events in, a Report out.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/report.h"
#include "pasta/result.h"

namespace pasta {

// One option of a tool: a row of `pastaprof tools NAME` and of the tool's page.
struct OptionInfo {
  std::string_view name;
  std::string_view help;
  std::string_view fallback;                  // value when the user gives none
  std::span<const std::string_view> choices;  // empty = any text
};

// Values of a tool's options, checked against its rows before the tool is made.
class Options {
 public:
  Options() = default;
  // Fails with kUsage, naming the option and what would be right, on an unknown name or value.
  static Result<Options> parse(std::string_view tool, std::span<const OptionInfo> rows,
                               std::span<const std::pair<std::string, std::string>> given);
  // The given value or the row's fallback; "" for a name without a row.
  [[nodiscard]] std::string_view text(std::string_view name) const;
  // The value as an integer; kUsage when it is not one.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// What a tool may look things up in while it runs.
class Context {
 public:
  virtual ~Context() = default;
  [[nodiscard]] virtual const Dictionary& dictionary() const = 0;
  // Bytes of a kDevice event; valid until consume() returns.
  [[nodiscard]] virtual std::span<const std::byte> blob(BlobId id) const = 0;
  // How a device is called in tables: its ordinal, with the rank or label where there are several
  // ("0", "rank 3 gpu 0"). The same in every tool.
  [[nodiscard]] virtual std::string device_label(DeviceId id) const = 0;
  // Earliest start of the trace; kNoTime when no event has times.
  [[nodiscard]] virtual std::int64_t origin_ns() const = 0;
};

// One analysis. Called from one thread at a time. Sees only the kinds it asked for, so its report
// cannot depend on which other tools ran beside it.
class Tool {
 public:
  virtual ~Tool() = default;
  // Events in order of end_ns, untimed ones first. A short kernel can end before its launch call
  // returns: do not expect the call first. The span is valid until the call returns.
  virtual Status consume(std::span<const Event> events, const Context& context) = 0;
  // Called once, after the last event.
  virtual Result<Report> finish(const Context& context) = 0;
};

// How a tool is made: by a function, or by what holds a plug-in, which outlives the maker.
class ToolMaker {
 public:
  using Function = Result<std::unique_ptr<Tool>> (*)(const Options& options);
  using BoundFunction = Result<std::unique_ptr<Tool>> (*)(const void* holder,
                                                          const Options& options);
  // Implicit, so that an entry names its function and nothing else.
  template <std::convertible_to<Function> Make>
  constexpr ToolMaker(Make make) : function_(make) {}
  constexpr ToolMaker(BoundFunction function, const void* holder)
      : bound_(function), holder_(holder) {}
  Result<std::unique_ptr<Tool>> operator()(const Options& options) const {
    return function_ != nullptr ? function_(options) : bound_(holder_, options);
  }

 private:
  Function function_ = nullptr;
  BoundFunction bound_ = nullptr;
  const void* holder_ = nullptr;
};

// What a tool reported of one rank's trace.
struct RankReport {
  std::string label;         // tells it apart in tables: "rank 3"
  std::int64_t untimed = 0;  // events of its trace that have no times
  Report report;             // devices are called as in a session over all ranks ("rank 3 gpu 0")
};

// Makes the job's report of those of its ranks, so that they can be analysed apart: whatever is
// known in it equals the report of one session over all their traces; what cannot be had from
// reports (a median of medians) is unknown. Fails with kBadInput when the reports do not fit
// together.
using JoinFunction = Result<Report> (*)(std::span<const RankReport> ranks);

// One line of src/tools/builtin.cpp.
struct ToolEntry {
  std::string_view name;
  std::string_view help;
  KindSet needs;  // without any of these in the trace, the tool cannot answer
  std::span<const OptionInfo> options;
  ToolMaker make;
  JoinFunction join = nullptr;  // none: reports of ranks do not join
  KindSet also = {};            // it gets these too, where the trace has some
  std::string_view patch = {};  // what runs beside kernels for it while a program is watched
  bool samples = false;         // it reads samples of program counters, which watching then takes
};
std::span<const ToolEntry> builtin_tools();

}  // namespace pasta
