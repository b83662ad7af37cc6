#include "tools/reuse/reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "device/reuse.h"
#include "device/warp.h"
#include "stats/interval_set.h"
#include "tools/common/device_results.h"
#include "tools/common/ratio.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

using device::FingerprintRow;
using device::kSectorBytes;
using device::RunRow;
using device::SetRow;
using stats::IntervalSet;

// Of the launches of one iteration: beyond it, what iterations touch is unknown.
constexpr std::size_t kMostPieces = std::size_t{1} << 20;
// Of a process, of which what is touched is still added up.
constexpr std::uint64_t kOpenIterations = 4;
// As pasta_step() names them.
constexpr std::string_view kStep = "step#";
constexpr double kStreaming = 1.25;  // sectors for each different one

using ObjectKey = std::pair<std::uint32_t, std::uint64_t>;  // process, number
using Sets = std::map<ObjectKey, IntervalSet>;

std::int64_t length(const Sets& sets) {
  std::int64_t sum = 0;
  for (const auto& [key, set] : sets) sum = add_saturated(sum, set.length());
  return sum;
}
std::int64_t shared_length(const Sets& a, const Sets& b) {
  std::int64_t sum = 0;
  for (const auto& [key, set] : a) {
    const auto other = b.find(key);
    if (other != b.end()) sum = add_saturated(sum, intersection_length(set, other->second));
  }
  return sum;
}
void unite_into(Sets& all, const Sets& more) {
  for (const auto& [key, set] : more) {
    IntervalSet& known = all[key];
    known = unite(known, set);
  }
}
std::size_t pieces(const Sets& sets) {
  std::size_t sum = 0;
  for (const auto& [key, set] : sets) sum += set.pieces();
  return sum;
}

struct Launch {
  std::string kernel;
  std::uint32_t process = 0;
  std::uint64_t number = 0;
  std::int64_t start_ns = 0;
  std::uint64_t iteration = 0;  // as device::IterationRow has it; 0: none, or unknown
  std::uint64_t touched = 0;    // bytes of objects
  std::uint64_t asked = 0, sectors = 0;
  std::uint64_t of_objects = 0;  // of the sectors
  std::uint64_t different = 0;   // at least so many of these differ from each other
  bool uncovered = false;        // some of its accesses are not seen
  FingerprintRow fingerprint;
  Sets sets;
  std::map<std::uint64_t, std::uint64_t> last_end;  // of the runs so far, by object
};

struct Kernel {
  std::uint64_t launches = 0;
  std::uint64_t most_touched = 0, touched = 0;
  std::uint64_t asked = 0, sectors = 0;
  std::uint64_t of_objects = 0, different = 0;  // of the sectors, as in Launch
  std::int64_t runs = 0;    // bytes of the sets of launches that have one before them
  std::int64_t before = 0;  // of these, touched by that, too
  FingerprintRow fingerprint;
};
struct Pair {
  std::string from, to;
  auto operator<=>(const Pair&) const = default;
};
struct Shared {
  std::uint64_t launches = 0;
  std::int64_t bytes = 0;
  double apart = 0;  // launches between them, times bytes
};

// Which launch touched each piece of the objects of a process last.
class LastTouches {
 public:
  struct Touch {
    std::string kernel;
    std::uint64_t number = 0;  // of the launch
  };

  // found(touch, bytes) for all that is known of `sets`; from now on it is what `by` has touched.
  template <class Found>
  void touch(const Sets& sets, const Touch& by, Found found) {
    const auto touch = std::make_shared<const Touch>(by);
    for (const auto& [key, set] : sets) {
      auto& pieces = objects_[key];
      count_ -= pieces.size();
      IntervalSet::Reader reader(set);
      for (stats::Interval piece; reader.next(piece);) put(pieces, piece, touch, found);
      count_ += pieces.size();
    }
  }
  void clear() {
    objects_.clear();
    count_ = 0;
  }
  [[nodiscard]] std::size_t pieces() const { return count_; }

 private:
  struct Piece {
    std::int64_t end = 0;
    std::shared_ptr<const Touch> by;
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by where they begin

  template <class Found>
  static void put(Pieces& pieces, const stats::Interval& interval,
                  const std::shared_ptr<const Touch>& by, Found found) {
    auto at = pieces.upper_bound(interval.begin);
    if (at != pieces.begin() && std::prev(at)->second.end > interval.begin) --at;
    while (at != pieces.end() && at->first < interval.end) {
      const auto [begin, old] = *at;
      at = pieces.erase(at);
      found(*old.by, std::min(old.end, interval.end) - std::max(begin, interval.begin));
      if (begin < interval.begin) pieces[begin] = {interval.begin, old.by};
      if (old.end > interval.end) pieces[interval.end] = old;
    }
    pieces[interval.begin] = {interval.end, by};
  }

  std::map<ObjectKey, Pieces> objects_;
  std::size_t count_ = 0;
};
class Iteration {
 public:
  std::string name;
  void add(const Launch& launch) {
    count(launch);
    sum_ = add_saturated(sum_, length(launch.sets));
    pieces_ += pieces(launch.sets);
    if (pieces_ > kMostPieces) {
      sets_.clear();
    } else {
      unite_into(sets_, launch.sets);
    }
  }
  // Launches that come later are more, of which nothing else is known.
  void close() {
    if (!touched_) touched_ = length(sets_);
    sets_.clear();
  }
  [[nodiscard]] std::uint64_t launches() const { return launches_; }
  [[nodiscard]] std::uint64_t sectors() const { return sectors_; }
  [[nodiscard]] std::uint64_t uncovered() const { return uncovered_; }
  // Unknown when there were too many pieces, or launches that came too late.
  [[nodiscard]] Cell touched() const { return is_known() ? Cell(*touched_) : Cell(); }
  [[nodiscard]] Cell sum() const { return is_known() ? Cell(sum_) : Cell(); }
  void add_late(const Launch& launch) {
    count(launch);
    lose();
  }
  void lose() { lost_ = true; }
  [[nodiscard]] bool is_closed() const { return touched_.has_value(); }

 private:
  [[nodiscard]] bool is_known() const { return touched_ && !lost_ && pieces_ <= kMostPieces; }
  void count(const Launch& launch) {
    ++launches_;
    sectors_ += launch.sectors;
    uncovered_ += launch.uncovered ? 1 : 0;
  }

  std::uint64_t launches_ = 0, sectors_ = 0, uncovered_ = 0;
  std::int64_t sum_ = 0;
  std::size_t pieces_ = 0;
  Sets sets_;
  std::optional<std::int64_t> touched_;
  bool lost_ = false;
};

class ReuseTool : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      if (event.kind == Kind::kScope &&
          event.detail == static_cast<std::uint16_t>(ScopeDomain::kIteration)) {
        end_iteration(event, context.dictionary());
      }
      if (const auto launch = results_.take(event, context)) take(*launch);
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    for (auto& [process, open] : open_) end_launch(open);
    take_numbered();
    Report report{.tool = "reuse", .title = "Working sets and reuse", .parts = {}};
    add_findings(report);
    results_.add_times(report);
    results_.add_findings(report);
    report.parts.emplace_back(kernels());
    report.parts.emplace_back(pairs());
    report.parts.emplace_back(earlier());
    report.parts.emplace_back(iterations());
    return report;
  }

 private:
  // What a process is at.
  struct Open {
    Launch launch;  // whose parts are coming in
    bool any = false;
    Launch before;
    bool any_before = false;
    std::vector<Launch> pending;  // since the end of the last iteration, that do not say theirs
    std::size_t pieces = 0;       // of these
    bool too_many = false;
    std::map<std::uint64_t, Iteration> numbered;
    std::uint64_t newest = 0;  // iteration
    LastTouches touches;
  };

  void take(const LaunchResult& result) {
    Open& open = open_[result.process.value];
    if (result.first) {
      end_launch(open);
      open.any = true;
      open.launch.kernel = result.kernel;
      open.launch.process = result.process.value;
      open.launch.number = result.launch;
      open.launch.start_ns = result.start_ns;
      open.launch.iteration = result.iteration.value_or(0);
    }
    Launch& launch = open.launch;
    for (const device::ResultTable& table : result.result.tables) {
      if (table.id == device::TableId::kSets) {
        for (const SetRow& row : device::rows_of<SetRow>(table)) {
          launch.touched += row.counts.touched;
          launch.asked += row.counts.asked_bytes;
          launch.sectors += row.counts.sectors;
          if (row.object != device::kUnknownObject) launch.of_objects += row.counts.sectors;
          launch.different +=
              row.counts.touched / kSectorBytes + (row.counts.touched % kSectorBytes > 0 ? 1 : 0);
          most_granule_ = std::max(most_granule_, row.run_granule);
        }
      } else if (table.id == device::TableId::kUnseen) {
        launch.uncovered = true;
      } else if (table.id == device::TableId::kRuns) {
        for (const RunRow& row : device::rows_of<RunRow>(table)) add_run(launch, row);
      } else if (table.id == device::TableId::kFingerprints) {
        for (const FingerprintRow& row : device::rows_of<FingerprintRow>(table)) {
          device::add_row(launch.fingerprint, row);
        }
      }
    }
  }

  static void add_run(Launch& launch, const RunRow& row) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (row.begin >= row.end || row.end > kMost) return;
    IntervalSet& set = launch.sets[{launch.process, row.object}];
    // Runs come in ascending order; of a damaged result, in any.
    const auto last = launch.last_end.find(row.object);
    if (last == launch.last_end.end() || row.end >= last->second) {
      set.add(static_cast<std::int64_t>(row.begin), static_cast<std::int64_t>(row.end));
      launch.last_end[row.object] = row.end;
    } else {
      IntervalSet run;
      run.add(static_cast<std::int64_t>(row.begin), static_cast<std::int64_t>(row.end));
      set = unite(set, run);
    }
  }

  void end_launch(Open& open) {
    if (!open.any) return;
    Launch& launch = open.launch;
    Kernel& kernel = kernels_[launch.kernel];
    ++kernel.launches;
    kernel.touched += launch.touched;
    kernel.most_touched = std::max(kernel.most_touched, launch.touched);
    kernel.asked += launch.asked;
    kernel.sectors += launch.sectors;
    kernel.of_objects += launch.of_objects;
    kernel.different += launch.different;
    device::add_row(kernel.fingerprint, launch.fingerprint);
    // Of what was not analysed nothing is known, and in iterations that are left out nobody counts.
    const bool follows = open.any_before && launch.iteration <= open.before.iteration + 1;
    if (!follows) open.touches.clear();
    find_earlier(open, launch);
    if (follows && open.before.number + 1 == launch.number) {
      const std::int64_t bytes = shared_length(open.before.sets, launch.sets);
      kernel.runs = add_saturated(kernel.runs, length(launch.sets));
      kernel.before = add_saturated(kernel.before, bytes);
      Shared& shared = pairs_[{open.before.kernel, launch.kernel}];
      ++shared.launches;
      shared.bytes = add_saturated(shared.bytes, bytes);
    }
    open.before = launch;
    open.any_before = true;
    open.newest = std::max(open.newest, launch.iteration);
    if (launch.iteration > 0) {
      add_numbered(open, launch);
    } else {
      open.pieces += pieces(launch.sets);
      open.too_many = open.too_many || open.pieces > kMostPieces;
      if (open.too_many) open.pending.clear();
      if (!open.too_many) open.pending.push_back(std::move(launch));
    }
    open.launch = {};
    open.any = false;
  }

  void find_earlier(Open& open, const Launch& launch) {
    std::map<std::string, Shared> found;  // by kernel
    open.touches.touch(launch.sets, {launch.kernel, launch.number},
                       [&](const LastTouches::Touch& earlier, std::int64_t bytes) {
                         // Launches that went on at the same time are told in any order.
                         if (earlier.number >= launch.number) return;
                         Shared& shared = found[earlier.kernel];
                         shared.bytes = add_saturated(shared.bytes, bytes);
                         shared.apart += static_cast<double>(launch.number - earlier.number) *
                                         static_cast<double>(bytes);
                       });
    for (const auto& [kernel, shared] : found) {
      Shared& sum = earlier_[{kernel, launch.kernel}];
      ++sum.launches;
      sum.bytes = add_saturated(sum.bytes, shared.bytes);
      sum.apart += shared.apart;
    }
    if (open.touches.pieces() <= kMostPieces) return;
    open.touches.clear();
    ++forgotten_;
  }

  static void add_numbered(Open& open, const Launch& launch) {
    Iteration& iteration = open.numbered[launch.iteration];
    if (iteration.is_closed()) {
      iteration.add_late(launch);
    } else {
      iteration.add(launch);
    }
    // Results come when streams have got so far, but not iterations later.
    const std::uint64_t newest = open.numbered.rbegin()->first;
    for (auto& [number, older] : open.numbered) {
      if (number + kOpenIterations <= newest) older.close();
    }
  }

  // What launches do not say themselves: those of its process that began in it are of it.
  void end_iteration(const Event& mark, const Dictionary& dictionary) {
    const std::uint32_t process = dictionary.lane(mark.lane).process.value;
    const std::string name(dictionary.text(mark.name));
    Open& open = open_[process];
    end_launch(open);
    Iteration iteration;
    iteration.name = name;
    for (const Launch& launch : open.pending) {
      if (mark.untimed() || launch.start_ns >= mark.start_ns) iteration.add(launch);
    }
    if (open.too_many) iteration.lose();
    const bool any = iteration.launches() > 0 || open.too_many;
    open.pending.clear();
    open.pieces = 0;
    open.too_many = false;
    iteration.close();
    if (any) iterations_.push_back(std::move(iteration));
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with(kStep)) return;
    const auto [stop, error] = std::from_chars(name.data() + kStep.size(), end, number);
    if (error == std::errc() && stop == end) ended_.emplace_back(process, number + 1, name);
  }

  // Those of which launches say that they are of them, and that have ended: a mark of the program
  // says so, or a launch of a later one.
  void take_numbered() {
    for (const auto& [process, number, name] : ended_) {
      auto& numbered = open_[process].numbered;
      const auto known = numbered.find(number);
      if (known == numbered.end()) continue;
      known->second.close();
      known->second.name = name;
      iterations_.push_back(std::move(known->second));
      numbered.erase(known);
    }
    for (auto& [process, open] : open_) {
      for (auto& [number, iteration] : open.numbered) {
        if (number >= open.newest) continue;
        iteration.close();
        iteration.name = fmt::format("iteration {}", number);
        iterations_.push_back(std::move(iteration));
      }
    }
  }

  // Sectors that groups accessed for each different one of theirs.
  static double repeats(const FingerprintRow& row) { return ratio(row.sectors, row.distinct); }
  static std::string behaviour(const Kernel& kernel) {
    if (kernel.fingerprint.distinct == 0) return "unknown";
    if (repeats(kernel.fingerprint) >= kStreaming) return "reuse in groups";
    // Of an object that is smaller than a sector, a whole one is moved.
    return ratio(kernel.of_objects, kernel.different) >= kStreaming ? "reuse across groups"
                                                                    : "streaming";
  }

  [[nodiscard]] Table kernels() const {
    Table table{.id = "kernels",
                .title = "Kernels, those with the largest working set first",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"time", Unit::kNanoseconds},
                            {"working_set", Unit::kBytes},
                            {"asked", Unit::kBytes},
                            {"moved", Unit::kBytes},
                            {"moved_per_touched"},
                            {"group_repeats"},
                            {"behaviour"},
                            {"from_before", Unit::kShare},
                            {"uncovered"}},
                .rows = {}};
    std::vector<const std::pair<const std::string, Kernel>*> order;
    for (const auto& line : kernels_) order.push_back(&line);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto* line) { return line->second.most_touched; });
    for (const auto* line : order) {
      const auto& [name, kernel] = *line;
      const bool told = kernel.fingerprint.distinct > 0;
      table.rows.push_back({name, count_cell(kernel.launches), results_.time_cell(name),
                            count_cell(kernel.most_touched), count_cell(kernel.asked),
                            moved_cell(kernel.sectors),
                            ratio_cell(moved_bytes(kernel.of_objects), kernel.touched),
                            told ? Cell(repeats(kernel.fingerprint)) : Cell(), behaviour(kernel),
                            ratio_cell(kernel.before, kernel.runs), results_.uncovered_cell(name)});
    }
    return table;
  }

  [[nodiscard]] Table pairs() const {
    Table table{.id = "pairs",
                .title = "What a launch touches that the launch before it touched, too",
                .columns = {{"before"},
                            {"kernel"},
                            {"launches", Unit::kCount},
                            {"shared", Unit::kBytes},
                            {"uncovered"}},
                .rows = {}};
    std::vector<const std::pair<const Pair, Shared>*> order;
    for (const auto& line : pairs_) order.push_back(&line);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto* line) { return line->second.bytes; });
    for (const auto* line : order) {
      table.rows.push_back({line->first.from, line->first.to, count_cell(line->second.launches),
                            line->second.bytes,
                            results_.uncovered_cell(line->first.from, line->first.to)});
    }
    return table;
  }

  [[nodiscard]] Table earlier() const {
    Table table{.id = "earlier",
                .title = "Which earlier launch has last touched what a launch touches",
                .columns = {{"earlier"},
                            {"kernel"},
                            {"launches", Unit::kCount},
                            {"shared", Unit::kBytes},
                            {"launches_apart"},
                            {"uncovered"}},
                .rows = {}};
    std::vector<const std::pair<const Pair, Shared>*> order;
    for (const auto& line : earlier_) order.push_back(&line);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto* line) { return line->second.bytes; });
    for (const auto* line : order) {
      const Shared& shared = line->second;
      table.rows.push_back({line->first.from, line->first.to, count_cell(shared.launches),
                            shared.bytes,
                            ratio_cell(shared.apart, static_cast<double>(shared.bytes)),
                            results_.uncovered_cell(line->first.from, line->first.to)});
    }
    return table;
  }

  [[nodiscard]] Table iterations() const {
    Table table{.id = "iterations",
                .title = "Iterations",
                .columns = {{"iteration"},
                            {"launches", Unit::kCount},
                            {"working_set", Unit::kBytes},
                            {"sum_of_launches", Unit::kBytes},
                            {"moved", Unit::kBytes},
                            {"uncovered", Unit::kCount}},
                .rows = {}};
    for (const Iteration& iteration : iterations_) {
      table.rows.push_back({iteration.name, count_cell(iteration.launches()), iteration.touched(),
                            iteration.sum(), moved_cell(iteration.sectors()),
                            count_cell(iteration.uncovered())});
    }
    return table;
  }

  void add_findings(Report& report) const {
    if (most_granule_ > kSectorBytes) {
      report.parts.emplace_back(Finding{
          .id = "touched-in-pieces",
          .level = Finding::Level::kInfo,
          .text = "what was touched of some objects is known in pieces, and may be less than is "
                  "shown",
          .of = {},
          .evidence = {{"piece", count_cell(most_granule_), Unit::kBytes}},
          .advice = {}});
    }
    if (forgotten_ > 0) {
      report.parts.emplace_back(Finding{
          .id = "touches-forgotten",
          .level = Finding::Level::kInfo,
          .text = "pieces that launches touched were too many at once: what earlier launches have "
                  "touched may be more than is shown",
          .of = {},
          .evidence = {{"times", count_cell(forgotten_), Unit::kCount}},
          .advice = {}});
    }
    std::uint64_t full = 0, groups = 0;
    double moved = 0, unknown = 0, most = 0;
    std::string most_in;
    for (const auto& [name, kernel] : kernels_) {
      moved += moved_bytes(kernel.sectors);
      const double of_none = moved_bytes(kernel.sectors) - moved_bytes(kernel.of_objects);
      unknown += of_none;
      if (of_none > most) {
        most = of_none;
        most_in = name;
      }
      full += kernel.fingerprint.full;
      groups += kernel.fingerprint.groups;
    }
    add_unknown_objects(report, unknown, moved, most_in);
    if (full > 0) {
      report.parts.emplace_back(
          Finding{.id = "fingerprints-full",
                  .level = Finding::Level::kInfo,
                  .text = "some groups touch more than their fingerprint tells apart: they may "
                          "repeat less than is shown",
                  .share = ratio(full, groups),
                  .of = "groups with a fingerprint",
                  .evidence = {{"groups", count_cell(full), Unit::kCount}},
                  .advice = {}});
    }
  }

  DeviceResults results_{device::ReusePatch::kFormat, "reuse"};
  std::map<std::uint32_t, Open> open_;  // by process
  std::map<std::string, Kernel> kernels_;
  std::map<Pair, Shared> pairs_, earlier_;
  std::uint64_t forgotten_ = 0;
  std::vector<Iteration> iterations_;
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::string>> ended_;  // process, number
  std::uint64_t most_granule_ = 0;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<ReuseTool>(); }

}  // namespace

constinit const ToolEntry kReuse = {
    .name = "reuse",
    .help =
        "how much memory kernels and iterations touch, whether they come back to it, and what "
        "kernels find of those before them",
    .needs = kDeviceResultKinds,
    .options = {},
    .make = make,
    .also = kObjectNameKinds | kKernelTimeKinds,
    .patch = "reuse"};

}  // namespace pasta::tools
