// What patches made of launches, for the tools that read it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "correlate/object_names.h"
#include "device/result.h"
#include "device/warp.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/report.h"
#include "pasta/tool.h"

namespace pasta::tools {

// What such a tool needs, and what names its objects where the trace has it.
inline constexpr KindSet kDeviceResultKinds = Kind::kDevice;
inline constexpr KindSet kObjectNameKinds = Kind::kAlloc | Kind::kFree | KindSet(Kind::kScope);
// What says how much of the time of kernels was analysed.
inline constexpr KindSet kKernelTimeKinds = Kind::kKernel;

struct LaunchResult {
  std::string kernel;
  ProcessId process;
  std::uint64_t launch = 0;  // the n-th of its process
  std::int64_t start_ns = 0;
  std::optional<std::uint64_t> iteration;  // as device::IterationRow has it
  // Where a result is kept in several parts, the first of them.
  bool first = true;
  device::PatchResult result;
};

class DeviceResults {
 public:
  // Of the format of one patch, which watching runs when told so: "--tool access". `by_kernel`:
  // the tool has a table with a row for each kernel, in which uncovered_cell() says what it hides.
  DeviceResults(std::string_view format, std::string_view tool, bool by_kernel = true)
      : format_(format), tool_(tool), by_kernel_(by_kernel) {}

  // To be given all events of the kinds above. None for what is no readable result of this format.
  std::optional<LaunchResult> take(const Event& event, const Context& context);

  // Of an object of the result taken last, or of a number that stands for something else: what the
  // kernel, the program (tag) or the call path of its allocation calls it, and which it is.
  [[nodiscard]] std::string label(ProcessId process, std::uint64_t number) const;
  // None when no result has said it.
  [[nodiscard]] const device::ObjectRow* object(ProcessId process, std::uint64_t number) const;
  // How long the analysed launches of a kernel took, in the run without patches: of those that were
  // found there; where there was no such run, about how long so many take. Unknown when none was.
  [[nodiscard]] Cell time_cell(const std::string& kernel) const;
  // Bytes of so many sectors, of all its analysed launches, in a second of that time. Unknown
  // unless all were found.
  [[nodiscard]] Cell rate_cell(const std::string& kernel, std::uint64_t launches,
                               std::uint64_t sectors) const;

  // The result taken last is damaged in a way that only the tool sees.
  void refuse() { ++unreadable_; }
  // Whether it has instructions that access global memory unseen, so that its numbers are too low.
  [[nodiscard]] bool is_uncovered(const std::string& kernel) const;
  // What it has unseen, for the column `uncovered` that each table has: "tiles, textures,
  // multicast, constants, products, fills", of which those come that are so; "no" where there are
  // none. Of two kernels, what either has.
  [[nodiscard]] Cell uncovered_cell(const std::string& kernel) const;
  [[nodiscard]] Cell uncovered_cell(const std::string& kernel, const std::string& other) const;
  // Of an object: "tiles" where such a kernel was given a tensor map of it. Unknown of others when
  // it is not known what some kernel accesses so.
  [[nodiscard]] Cell uncovered_cell(ProcessId process, std::uint64_t object) const;
  // For tools that show times: whose they are.
  void add_times(Report& report) const;
  // What the numbers do not hold: launches that were not analysed, accesses that were not seen.
  void add_findings(Report& report) const;

 private:
  struct Known {
    device::ObjectRow row;
    std::string name;
  };
  struct Unseen {
    std::uint64_t launches = 0;
    device::UnseenRow row;
    device::UnseenTooRow too;
    [[nodiscard]] bool is_of_global_memory() const {
      return row != device::UnseenRow{} || too.multicast > 0;
    }
    std::set<std::string> mapped;  // labels of objects that it was given tensor maps of
  };

  void take_tables(const LaunchResult& launch, const Event& event);
  void take_times(const Event& event, const std::string& kernel);
  void add_uncovered(Report& report) const;
  void add_unseen_memory(Report& report) const;

  std::string_view format_, tool_;
  bool by_kernel_;
  correlate::ObjectNames names_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Known> objects_;  // by process and number
  std::map<std::uint32_t, std::uint64_t> last_launch_;                // by process
  std::uint64_t launches_ = 0, skipped_ = 0, unreadable_ = 0, dropped_ = 0;
  std::map<std::string, Unseen> unseen_;                      // by kernel
  std::set<std::pair<std::uint32_t, std::uint64_t>> mapped_;  // process and number of an object
  struct Time {
    std::int64_t ns = 0;
    std::uint64_t launches = 0;
  };
  // By kernel.
  [[nodiscard]] std::optional<Time> time_of(const std::string& kernel) const;

  std::map<std::string, Time> times_;  // of launches whose time is known
  struct About {
    double each_ns = 0;  // in the iteration where that is least
    std::uint64_t launches = 0;
  };
  std::map<std::string, About> about_;              // of other launches of this run, see TimesRow
  std::map<std::string, std::uint64_t> of_kernel_;  // analysed launches
  std::int64_t kernels_ns_ = 0;                     // of all kernels of the trace
  std::uint64_t joined_ = 0, not_joined_ = 0;       // launches
};

// A place of a kernel that accesses memory, told apart by all of these.
struct SiteKey {
  std::string kernel, site;
  std::uint64_t number, space, access;
  auto operator<=>(const SiteKey&) const = default;
};

// Of a finding that is about a share of what all kernels do: below a hundredth there is none.
inline constexpr double kWorthNoting = 0.01;
inline Finding::Level level_of(double share) {
  constexpr double kMuch = 0.1;
  return share >= kMuch ? Finding::Level::kWarning : Finding::Level::kInfo;
}

// For cells of tables.
Cell count_cell(std::uint64_t value);
// Of the bytes that are moved, those of no object: where there are any. `kernel`: of which most of
// them are, where that is known.
void add_unknown_objects(Report& report, double unknown, double moved,
                         const std::string& kernel = {});
Cell moved_cell(std::uint64_t sectors);  // bytes
inline double moved_bytes(std::uint64_t sectors) {
  return static_cast<double>(sectors) * device::kSectorBytes;
}
// The name of a site, or its number; "others" for those that found no room.
std::string site_label(std::uint64_t site, const std::string& name);
// Of a kernel in a sentence: those of templates take pages. Tables have all of it.
std::string in_sentence(const std::string& kernel);
std::string_view space_name(std::uint64_t space);
std::string_view access_name(std::uint64_t access);

}  // namespace pasta::tools
