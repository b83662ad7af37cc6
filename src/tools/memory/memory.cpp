#include "tools/memory/memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/units.h"
#include "tools/common/memo.h"
#include "tools/common/ratio.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/memory/curve.h"
#include "tools/memory/place.h"

namespace pasta::tools {
namespace {

using memory::Curve;
using memory::Owner;
using memory::Place;

constexpr std::string_view kGroupings[] = {"operator", "path"};
constexpr OptionInfo kOptions[] = {
    {"by",
     "whose an allocation is: the innermost operator's, or that of the whole path of operators",
     "operator", kGroupings},
};
constexpr std::string_view kNoOperator = "(outside operators)";
constexpr std::string_view kNotSeen = "(not seen allocated)";
// The allocator's own counters, as sources call them.
constexpr std::string_view kTotalAllocated = "Total Allocated";
constexpr std::string_view kTotalReserved = "Total Reserved";

// A row of the tables `peak` and `never_freed`.
struct Share {
  std::string_view owner;
  std::int64_t bytes;
  std::optional<std::int64_t> allocations;
  std::int64_t longest_ns = 0;
};

void by_size(std::vector<Share>& rows) {
  std::ranges::sort(rows, [](const Share& a, const Share& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.owner < b.owner;
  });
}

Cell known(bool is_known, std::int64_t value) { return is_known ? Cell(value) : Cell(); }
Cell known(const std::optional<std::int64_t>& value) { return value ? Cell(*value) : Cell(); }
std::string bytes_text(std::int64_t bytes) {
  return base::format_bytes(static_cast<std::uint64_t>(bytes));
}

class Memory : public Tool {
 public:
  explicit Memory(bool by_path) : by_path_(by_path) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (event.kind == Kind::kCounter) {
        count(event, dictionary);
        continue;
      }
      if (!event.untimed()) end_ns_ = event.end_ns;
      const ProcessId process = process_of(event.lane, dictionary);
      place_of(event.memory.device, process).change(event, process, [&] {
        return owner_of(event.scope, dictionary);
      });
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    name_places(context);
    Report report{.tool = "memory", .title = "Memory", .parts = {}};
    if (places_.empty()) {
      report.parts.emplace_back(
          Finding{.id = "no-memory-events",
                  .level = Finding::Level::kInfo,
                  .text = "the trace does not say what memory was allocated",
                  .of = {},
                  .evidence = {},
                  .advice = "PyTorch's profiler records it with profile_memory=True"});
    }
    Table peak{.id = "peak",
               .title = "What was allocated at the peak",
               .columns = {{"device"},
                           {"operator"},
                           {"bytes", Unit::kBytes},
                           {"allocations", Unit::kCount},
                           {"share", Unit::kShare}},
               .rows = {}};
    Table still_live{.id = "never_freed",
                     .title = "Allocations of the trace that were still live at its end",
                     .columns = {{"device"},
                                 {"operator"},
                                 {"bytes", Unit::kBytes},
                                 {"allocations", Unit::kCount},
                                 {"longest_lived", Unit::kNanoseconds}},
                     .rows = {}};
    Table devices = devices_table();
    for (const auto& [label, place] : labelled_) {
      devices.rows.push_back(device_row(label, *place, context.origin_ns()));
      if (!place->live_known()) continue;
      const std::vector<Share> at_peak = live_at_peak(*place);
      std::int64_t whole = 0;
      for (const Share& row : at_peak) whole = add_saturated(whole, row.bytes);
      for (const Share& row : at_peak) {
        peak.rows.push_back({label, std::string(row.owner), row.bytes, known(row.allocations),
                             ratio_cell(row.bytes, whole)});
      }
      for (const Share& row : live_at_end(*place)) {
        still_live.rows.push_back(
            {label, std::string(row.owner), row.bytes, known(row.allocations), row.longest_ns});
      }
    }
    add_findings(context, report);
    report.parts.emplace_back(std::move(devices));
    report.parts.emplace_back(std::move(peak));
    report.parts.emplace_back(std::move(still_live));
    for (const auto& [label, place] : labelled_) add_series(label, *place, context, report);
    return report;
  }

 private:
  using Labelled = std::pair<std::string, const Place*>;

  // --- events

  ProcessId process_of(LaneId lane, const Dictionary& dictionary) {
    return process_of_lane_.get(lane, [&] { return dictionary.lane(lane).process; });
  }

  Place& place_of(DeviceId device, ProcessId process) {
    const auto make = [&] {
      places_.emplace_back(device, device ? ProcessId{} : process);
      return places_.size() - 1;
    };
    return places_[device ? place_of_device_.get(device, make)
                          : place_of_process_.get(process, make)];
  }

  void count(const Event& event, const Dictionary& dictionary) {
    enum { kOther, kTotal, kReserved };
    const int role = counter_role_.get(event.name, [&] {
      const std::string_view name = dictionary.text(event.name);
      return name == kTotalAllocated ? kTotal : name == kTotalReserved ? kReserved : kOther;
    });
    constexpr double kLimit = 9.2e18;  // the next power of two does not fit
    if (role == kOther || !(event.counter.value >= 0 && event.counter.value < kLimit)) return;
    if (!event.untimed()) end_ns_ = event.end_ns;
    Place& place = place_of(event.counter.device, process_of(event.lane, dictionary));
    const auto value = static_cast<std::int64_t>(event.counter.value);
    if (role == kTotal) {
      place.count_total(event, value);
    } else {
      place.count_reserved(event, value);
    }
  }

  std::size_t owner_of(FrameId scope, const Dictionary& dictionary) {
    return owner_of_frame_.get(scope, [&] {
      std::string name;
      for (FrameId id = scope; id;) {
        const Frame frame = dictionary.frame(id);
        id = frame.parent;
        if (frame.domain != ScopeDomain::kOperator) continue;
        const std::string_view text = dictionary.text(frame.name);
        name = name.empty() ? std::string(text) : fmt::format("{} > {}", text, name);
        if (!by_path_) break;
      }
      if (name.empty()) name = kNoOperator;
      const auto [known, is_new] = owner_called_.try_emplace(std::move(name), owner_names_.size());
      if (is_new) owner_names_.push_back(known->first);
      return known->second;
    });
  }

  // --- answers

  void name_places(const Context& context) {
    const Dictionary& dictionary = context.dictionary();
    const auto hosts = std::ranges::count_if(places_, [](const Place& p) { return !p.device; });
    for (const Place& place : places_) {
      std::string label = context.device_label(place.device);
      if (!place.device) {
        const Process process = dictionary.process(place.process);
        label = hosts == 1          ? "host"
                : process.rank >= 0 ? fmt::format("rank {} host", process.rank)
                : process.native_text
                    ? fmt::format("process {} host", dictionary.text(process.native_text))
                    : fmt::format("process {} host", process.native_id);
        for (const Labelled& other : labelled_) {
          if (other.first != label) continue;
          label += fmt::format(" #{}", place.process.value);
          break;
        }
      }
      labelled_.emplace_back(std::move(label), &place);
    }
    // Devices first: what people look for.
    std::ranges::stable_sort(labelled_, [](const Labelled& a, const Labelled& b) {
      if (a.second->device != b.second->device && (!a.second->device || !b.second->device)) {
        return static_cast<bool>(a.second->device);
      }
      return natural_less(a.first, b.first);
    });
  }

  static Table devices_table() {
    return {.id = "devices",
            .title = "Memory of each device and of the host",
            .columns = {{"device"},
                        {"allocs", Unit::kCount},
                        {"frees", Unit::kCount},
                        {"allocated_bytes", Unit::kBytes},
                        {"freed_bytes", Unit::kBytes},
                        {"net", Unit::kBytes},
                        {"peak_seen", Unit::kBytes},
                        {"peak_time", Unit::kNanoseconds},
                        {"peak_total_allocated", Unit::kBytes},
                        {"peak_total_reserved", Unit::kBytes},
                        {"reserved_unused", Unit::kBytes},
                        {"address_known", Unit::kShare},
                        {"address_reused", Unit::kCount},
                        {"frees_unmatched", Unit::kCount}},
            .rows = {}};
  }

  static std::vector<Cell> device_row(const std::string& label, const Place& place,
                                      std::int64_t origin_ns) {
    Cell peak_time;
    if (place.peak_known() && place.peak_ns) {
      peak_time = distance_saturated(origin_ns, *place.peak_ns);
    }
    const bool any = place.events() > 0;
    return {label,
            place.allocs,
            place.frees,
            known(place.allocated.known, place.allocated.bytes),
            known(place.freed.known, place.freed.bytes),
            known(place.sizes_known(), place.allocated.bytes - place.freed.bytes),
            known(place.peak_known() && any, place.peak),
            peak_time,
            known(place.total.highest),
            known(place.reserved.highest),
            known(place.reserved_unused()),
            ratio_cell(place.events() - place.addressless, place.events()),
            known(place.live_known(), place.reused),
            known(place.live_known(), place.unmatched)};
  }

  [[nodiscard]] std::vector<Share> live_at_peak(const Place& place) const {
    std::vector<Share> rows;
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < place.owners.size(); ++i) {
      const Owner& owner = place.owners[i];
      if (owner.peak_allocations == 0) continue;
      seen += owner.peak_bytes;
      rows.push_back({owner_names_[i], owner.peak_bytes, owner.peak_allocations});
    }
    if (place.total_at_peak && *place.total_at_peak > seen) {
      rows.push_back({kNotSeen, *place.total_at_peak - seen, {}});
    }
    std::erase_if(rows, [](const Share& row) { return row.bytes == 0; });
    by_size(rows);
    return rows;
  }

  [[nodiscard]] std::vector<Share> live_at_end(const Place& place) const {
    std::vector<Share> rows;
    for (std::size_t i = 0; i < place.owners.size(); ++i) {
      rows.push_back({owner_names_[i], place.owners[i].bytes, place.owners[i].allocations});
    }
    for (const auto& [address, allocation] : place.live) {
      Share& row = rows[allocation.owner];
      row.longest_ns = std::max(row.longest_ns, distance_saturated(allocation.start_ns, end_ns_));
    }
    std::erase_if(rows, [](const Share& row) { return row.allocations == 0; });
    by_size(rows);
    return rows;
  }

  static void add_series(const std::string& label, const Place& place, const Context& context,
                         Report& report) {
    std::string suffix = label;
    std::ranges::replace(suffix, ' ', '_');
    const std::string of =
        place.device ? fmt::format("on device {}", label) : fmt::format("on the {}", label);
    const auto add = [&](std::string_view id, std::string title, const Curve& curve) {
      report.parts.emplace_back(Series{.id = fmt::format("{}.{}", id, suffix),
                                       .title = std::move(title),
                                       .unit = Unit::kBytes,
                                       .points = curve.points(context.origin_ns())});
    };
    if (!place.total.curve.empty()) {
      add("allocated", fmt::format("Allocated {}, by the allocator's own count", of),
          place.total.curve);
    } else if (place.peak_known() && !place.curve.empty()) {
      add("allocated", fmt::format("Allocated {} since the trace began", of), place.curve);
    }
    if (!place.reserved.curve.empty() && *place.reserved.highest > 0) {
      add("reserved", fmt::format("Reserved {} by the allocator", of), place.reserved.curve);
    }
  }

  void add_findings(const Context& context, Report& report) const {
    // Of several devices, the one that comes closest to its end.
    const Labelled* fullest = nullptr;
    const Labelled* most_unused = nullptr;
    std::int64_t also_unused = 0;
    for (const Labelled& one : labelled_) {
      const Place& place = *one.second;
      if (!place.device) continue;
      if (most_allocated(place) > 0 &&
          (fullest == nullptr || most_allocated(place) > most_allocated(*fullest->second))) {
        fullest = &one;
      }
      if (!much_unused(place)) continue;
      ++also_unused;
      if (most_unused == nullptr ||
          *place.reserved_unused() > *most_unused->second->reserved_unused()) {
        most_unused = &one;
      }
    }
    if (fullest != nullptr) report.parts.emplace_back(peak_finding(*fullest, context));
    if (most_unused != nullptr) {
      report.parts.emplace_back(unused_finding(*most_unused, also_unused - 1));
    }
    add_unknown(report, "the source does not say at which address memory was allocated",
                [](const Place& p) { return p.peak_known() && p.addressless > 0; });
    add_unknown(report, "allocations or frees have no time",
                [](const Place& p) { return p.untimed > 0; });
    add_unknown(report, "sizes of allocations or frees are missing or absurd",
                [](const Place& p) { return p.untimed == 0 && !p.sizes_known(); });
  }

  template <class Predicate>
  void add_unknown(Report& report, std::string_view why, Predicate&& concerns) const {
    std::vector<std::string> labels;
    for (const auto& [label, place] : labelled_) {
      if (concerns(*place)) labels.push_back((place->device ? "device " : "the ") + label);
    }
    if (labels.empty()) return;
    report.parts.emplace_back(
        Finding{.id = "live-unknown",
                .level = Finding::Level::kInfo,
                .text = fmt::format("what was live on {} at the peak and at the end is unknown: {}",
                                    fmt::join(labels, ", "), why),
                .of = {},
                .evidence = {},
                .advice = {}});
  }

  static std::int64_t most_allocated(const Place& place) {
    if (place.total.highest) return *place.total.highest;
    return place.peak_known() ? place.peak : 0;
  }

  [[nodiscard]] Finding peak_finding(const Labelled& of, const Context& context) const {
    const auto& [label, place] = of;
    Finding finding{.id = "memory-peak",
                    .level = Finding::Level::kInfo,
                    .text = {},
                    .of = {},
                    .evidence = {{"device", label}},
                    .advice = {}};
    if (place->total.highest) {
      finding.text = fmt::format("at most {} were allocated at once on device {}",
                                 bytes_text(*place->total.highest), label);
      finding.evidence.emplace_back("peak_total_allocated", *place->total.highest, Unit::kBytes);
    } else {
      finding.text = fmt::format(
          "what the trace shows being allocated on device {} reached {} at once; what was there "
          "before the trace began comes on top",
          label, bytes_text(place->peak));
    }
    if (place->peak_known() && place->events() > 0)
      finding.evidence.emplace_back("peak_seen", place->peak, Unit::kBytes);
    if (place->live_known()) {
      const std::vector<Share> rows = live_at_peak(*place);
      std::int64_t whole = 0;
      for (const Share& row : rows) whole = add_saturated(whole, row.bytes);
      const auto top =
          std::ranges::find_if(rows, [](const Share& row) { return row.owner != kNotSeen; });
      const auto unseen = std::ranges::find(rows, kNotSeen, &Share::owner);
      if (unseen != rows.end()) {
        finding.text +=
            fmt::format(", of which {} probably before the trace began", bytes_text(unseen->bytes));
      }
      if (top != rows.end()) {
        finding.text += fmt::format(
            "; the most{}, {} ({}), was allocated {}", unseen != rows.end() ? " of the rest" : "",
            bytes_text(top->bytes), base::format_share(ratio(top->bytes, whole)),
            top->owner == kNoOperator ? "outside operators" : fmt::format("in {}", top->owner));
        finding.evidence.emplace_back("operator", std::string(top->owner));
        finding.evidence.emplace_back("bytes", top->bytes, Unit::kBytes);
      }
    }
    const auto capacity =
        static_cast<double>(context.dictionary().device(place->device).memory_bytes);
    const auto most = static_cast<double>(place->total.highest.value_or(0));
    if (most > 0 && most <= capacity) {
      finding.share = most / capacity;
      finding.of = "device memory";
    }
    return finding;
  }

  // More than a quarter of what is given out, and enough to be worth a change.
  static bool much_unused(const Place& place) {
    constexpr std::int64_t kWorthwhile = std::int64_t{1} << 30;
    const auto unused = place.reserved_unused();
    return unused && *unused > kWorthwhile && *unused > *place.total.highest / 4;
  }

  static Finding unused_finding(const Labelled& of, std::int64_t others) {
    const auto& [label, place] = of;
    const std::int64_t unused = *place->reserved_unused();
    std::string text = fmt::format(
        "on device {} {} were reserved when at most {} were allocated: {} lay unused, cut into "
        "pieces that fit nothing, or kept from an earlier time that needed more",
        label, bytes_text(*place->reserved_at_total), bytes_text(*place->total.highest),
        bytes_text(unused));
    if (others > 0) text += fmt::format("; the same on {} other devices", others);
    return {.id = "reserved-unused",
            .level = Finding::Level::kWarning,
            .text = std::move(text),
            .share = ratio(unused, *place->reserved_at_total),
            .of = "reserved memory",
            .evidence = {{"device", label},
                         {"reserved", *place->reserved_at_total, Unit::kBytes},
                         {"allocated", *place->total.highest, Unit::kBytes},
                         {"unused", unused, Unit::kBytes}},
            .advice =
                "if memory runs out: keep sizes the same from step to step, let the allocator "
                "grow its blocks (PyTorch: expandable_segments:True in "
                "PYTORCH_CUDA_ALLOC_CONF), and look for what needed more before this trace"};
  }

  bool by_path_;
  std::int64_t end_ns_ = kNoTime;  // of the last timed event
  Memo<LaneId, ProcessId> process_of_lane_;
  Memo<DeviceId, std::size_t> place_of_device_;
  Memo<ProcessId, std::size_t> place_of_process_;
  Memo<StringId, int> counter_role_;
  Memo<FrameId, std::size_t> owner_of_frame_;
  std::unordered_map<std::string, std::size_t> owner_called_;
  std::vector<std::string_view> owner_names_;
  std::vector<Place> places_;
  std::vector<Labelled> labelled_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  return std::make_unique<Memory>(options.text("by") == "path");
}

}  // namespace

constinit const ToolEntry kMemory = {
    .name = "memory",
    .help = "memory over time on each device: its peak, what was live then, and what stayed live",
    .needs = Kind::kAlloc | Kind::kFree | KindSet(Kind::kCounter),
    .options = kOptions,
    .make = make};

}  // namespace pasta::tools
