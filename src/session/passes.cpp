#include "session/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/iteration_counter.h"
#include "base/iteration_name.h"
#include "base/temp_file.h"
#include "correlate/object_names.h"
#include "device/result.h"
#include "pasta/dictionary.h"
#include "session/match_launches.h"
#include "trace/spool.h"

namespace pasta::session {
namespace {

// Memory that the join may still use. What finds none is left out, so that what is kept is the
// beginning.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : left_(bytes) {}
  bool take(std::uint64_t bytes) {
    left_ = bytes <= left_ ? left_ - bytes : 0;
    return left_ > 0;
  }

 private:
  std::uint64_t left_;
};
// Of a kernel of the run with times with all that is kept of it while launches are matched, of a
// call that may have launched one, and of what stands for the result of a launch.
constexpr std::uint64_t kKernelBytes = 96, kCallBytes = 2 * sizeof(std::uint64_t), kToldBytes = 256,
                        kPartBytes = 64;

// Names of kernels as numbers that both runs share.
class KernelNames {
 public:
  std::uint32_t number(std::string_view name) {
    return numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

// Reads a trace into what `on_event` makes of it, with tables of its own.
class Scan : public EventSink {
 public:
  Scan(KernelNames& names, Budget& budget) : names_(&names), budget_(&budget) {}
  Status read(Adapter& adapter, const Plan& plan) {
    scratch_ = plan.scratch;
    PASTA_TRY(adapter.start(plan, *this));
    for (;;) {
      auto more = adapter.pump();
      if (!more) return tl::unexpected(std::move(more).error());
      if (!*more) break;
    }
    return adapter.stop();
  }
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) on_event(event, {});
  }
  void push(Event event, std::span<const std::byte> blob) override { on_event(event, blob); }
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}

 protected:
  virtual void on_event(const Event& event, std::span<const std::byte> blob) = 0;
  [[nodiscard]] ProcessId process_of(const Event& event) const {
    return dictionary_.lane(event.lane).process;
  }
  std::uint32_t kernel_of(const Event& event) {
    const auto [known, is_new] = kernels_.try_emplace(event.name.value, 0);
    if (is_new) known->second = names_->number(dictionary_.text(event.name));
    return known->second;
  }
  Budget& budget() { return *budget_; }
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_; }

 private:
  std::filesystem::path scratch_;
  Dictionary dictionary_;
  KernelNames* names_;
  Budget* budget_;
  std::unordered_map<std::uint32_t, std::uint32_t> kernels_;  // by StringId
};

// How the processes of both runs are told apart.
struct ProcessKey {
  std::int32_t rank = kUnknownRank;
  std::string name;
  std::size_t ordinal = 0;  // of those for which the rest is equal
  auto operator<=>(const ProcessKey&) const = default;
};
std::map<ProcessKey, ProcessId> keys_of(const Dictionary& dictionary,
                                        const std::vector<ProcessId>& processes) {
  std::map<ProcessKey, ProcessId> keys;
  for (const ProcessId id : processes) {
    const Process process = dictionary.process(id);
    ProcessKey key{process.rank, std::string(dictionary.text(process.name)), 0};
    while (keys.contains(key)) ++key.ordinal;
    keys[key] = id;
  }
  return keys;
}

// The number in "step#7", as pasta_step() tells of an iteration.
std::optional<std::uint64_t> step_of(const Event& event, const Dictionary& dictionary) {
  constexpr std::string_view kStep = "step#";
  const std::string_view name = dictionary.text(event.name);
  if (event.kind != Kind::kScope ||
      event.detail != static_cast<std::uint16_t>(ScopeDomain::kIteration) ||
      !name.starts_with(kStep)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kStep.size(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// The kernels of the run with times, as they were launched.
class Timed final : public Scan {
 public:
  // In the order of the launches, each with its iteration where the process marks any.
  struct Launches {
    std::vector<LaunchKey> keys;
    std::vector<std::size_t> indices;  // of all kernels of the trace, as they come
  };

  using Scan::Scan;

  const Launches& launches(ProcessId process) {
    const auto [known, is_new] = launches_.try_emplace(process.value);
    if (!is_new) return known->second;
    std::vector<Kernel> kernels = std::exchange(kernels_[process.value], {});
    set_iterations(kernels, marks_of(process));
    const bool numbered =
        std::ranges::all_of(kernels, [](const Kernel& kernel) { return kernel.ordinal > 0; });
    std::ranges::stable_sort(kernels, {}, [numbered](const Kernel& kernel) {
      return std::tuple(numbered ? kernel.ordinal : 0, kernel.correlation, kernel.start_ns);
    });
    std::unordered_map<std::uint32_t, std::uint32_t> streams;  // by lane
    for (Kernel& kernel : kernels) {
      kernel.key.stream =
          streams.try_emplace(kernel.key.stream, static_cast<std::uint32_t>(streams.size()) + 1)
              .first->second;
      known->second.keys.push_back(kernel.key);
      known->second.indices.push_back(kernel.index);
    }
    return known->second;
  }
  [[nodiscard]] std::vector<ProcessId> processes() const {
    std::vector<ProcessId> ids;
    for (const auto& [id, kernels] : kernels_) ids.push_back({id});
    return ids;
  }
  // Kernels for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Kernel {
    std::size_t index;
    std::uint64_t correlation;
    std::int64_t start_ns;
    LaunchKey key;  // with the lane instead of the stream, until launches() is asked
    std::uint32_t ordinal;
  };
  struct Call {
    std::uint64_t correlation;
    std::int64_t start_ns;
  };
  // From when on it is which iteration, as LaunchKey has it.
  using Marks = std::map<std::int64_t, std::uint32_t>;
  // A range that begins, which base::IterationCounter knows.
  struct Mark {
    std::int64_t start_ns, end_ns;
    std::uint64_t name;
    base::IterationMark kind;
  };

  // Those of pasta_step() say which they are; others are counted as the collector does.
  Marks marks_of(ProcessId process) {
    Marks marks = std::exchange(marks_[process.value], {});
    if (!marks.empty()) return marks;
    std::vector<Mark> told = std::exchange(told_[process.value], {});
    for (auto& [lane, outermost] : outermost_) {
      if (dictionary().lane({lane}).process != process) continue;
      told.insert(told.end(), outermost.begin(), outermost.end());
    }
    std::ranges::stable_sort(told, {}, &Mark::start_ns);
    base::IterationCounter counter;
    for (const Mark& mark : told) {
      if (counter.mark(mark.kind, mark.name)) {
        marks[mark.start_ns] = static_cast<std::uint32_t>(counter.ended());
      }
    }
    return marks;
  }

  void take_mark(const Event& event) {
    if (event.kind != Kind::kScope) return;
    const auto domain = static_cast<ScopeDomain>(event.detail);
    if (domain != ScopeDomain::kModule && domain != ScopeDomain::kAnnotation) return;
    const auto [known, is_new] = names_.try_emplace({event.name.value, event.detail});
    Mark& mark = known->second;
    const std::string_view text = dictionary().text(event.name);
    if (is_new && domain == ScopeDomain::kModule) {
      mark.kind = base::IterationMark::kForward;
    } else if (is_new && text.starts_with(base::kOptimizerStep)) {
      mark.kind = base::IterationMark::kOptimizer;
    } else if (is_new && base::names_iteration(text)) {
      mark.kind = base::IterationMark::kRange;
    }
    if (is_new) {
      const base::NumberInName number = base::number_in_name(text);
      const bool stem = mark.kind == base::IterationMark::kRange && number.begin != number.end;
      mark.name = std::hash<std::string_view>()(stem ? text.substr(0, number.begin) : text);
    }
    if (mark.kind == base::IterationMark::kNone || !budget().take(sizeof(Mark))) return;
    mark.start_ns = event.start_ns;
    mark.end_ns = event.end_ns;
    if (mark.kind != base::IterationMark::kForward) {
      told_[process_of(event).value].push_back(mark);
      return;
    }
    // Of those of the main thread the ones that lie in no other: what lies in this one has ended.
    const Lane lane = dictionary().lane(event.lane);
    if (lane.native_id != dictionary().process(lane.process).native_id) return;
    std::vector<Mark>& outermost = outermost_[event.lane.value];
    while (!outermost.empty() && outermost.back().start_ns >= mark.start_ns) outermost.pop_back();
    outermost.push_back(mark);
  }

  void set_iterations(std::vector<Kernel>& kernels, const Marks& marks) {
    if (marks.empty()) return;
    if (!std::ranges::is_sorted(calls_, {}, &Call::correlation)) {
      std::ranges::stable_sort(calls_, {}, &Call::correlation);
    }
    for (Kernel& kernel : kernels) {
      const auto call =
          std::ranges::lower_bound(calls_, kernel.correlation, {}, &Call::correlation);
      if (call == calls_.end() || call->correlation != kernel.correlation) continue;
      // The marks of one process follow each other; what is before the first is of none.
      const auto behind = marks.upper_bound(call->start_ns);
      kernel.key.iteration = behind == marks.begin() ? 0 : std::prev(behind)->second;
    }
  }

  void on_event(const Event& event, std::span<const std::byte>) override {
    if (event.untimed()) {
      // It is of no iteration.
    } else if (event.kind == Kind::kApi && event.correlation != 0) {
      if (budget().take(kCallBytes)) calls_.push_back({event.correlation, event.start_ns});
    } else if (const auto step = step_of(event, dictionary())) {
      auto& marks = marks_[process_of(event).value];
      marks[event.start_ns] = static_cast<std::uint32_t>(*step + 1);
      marks.try_emplace(event.end_ns, static_cast<std::uint32_t>(*step + 2));
    } else {
      take_mark(event);
    }
    if (event.kind != Kind::kKernel) return;
    const std::size_t index = count_++;
    if (!budget().take(kKernelBytes)) {
      ++left_out_;
      return;
    }
    const KernelData& kernel = event.kernel;
    kernels_[process_of(event).value].push_back(
        {index,
         event.correlation,
         event.start_ns,
         {.kernel = kernel_of(event),
          .grid = {kernel.grid[0], kernel.grid[1], kernel.grid[2]},
          .stream = event.lane.value},
         kernel.ordinal});
  }

  std::map<std::uint32_t, std::vector<Kernel>> kernels_;  // by process
  std::map<std::uint32_t, Launches> launches_;            // the same, when they have been asked for
  std::map<std::uint32_t, Marks> marks_;
  std::map<std::uint32_t, std::vector<Mark>> told_;
  std::map<std::uint32_t, std::vector<Mark>> outermost_;  // by lane
  std::map<std::pair<std::uint32_t, std::uint16_t>, Mark> names_;
  std::vector<Call> calls_;
  std::size_t count_ = 0;
  std::uint64_t left_out_ = 0;
};

// Bytes that are kept until their place comes: beyond some, on disk.
class Parts {
 public:
  struct Place {
    std::uint64_t at = 0;
    std::uint32_t bytes = 0;
    bool on_disk = false;
  };
  // None where the disk is full, too.
  std::optional<Place> add(std::span<const std::byte> bytes, const std::filesystem::path& scratch) {
    Place place{memory_.size(), static_cast<std::uint32_t>(bytes.size()), false};
    if (memory_.size() + bytes.size() <= kMemory) {
      memory_.insert(memory_.end(), bytes.begin(), bytes.end());
      return place;
    }
    if (!file_) {
      auto made = base::TempFile::create(scratch);
      if (!made) return std::nullopt;
      file_ = std::move(*made);
    }
    place.at = file_->size();
    place.on_disk = true;
    if (!file_->append(bytes)) return std::nullopt;
    return place;
  }
  // Whether they could be read.
  bool read(const Place& place, std::vector<std::byte>& to) const {
    to.resize(place.bytes);
    if (place.on_disk) return file_->read_at(place.at, to).has_value();
    std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(place.at), place.bytes, to.begin());
    return true;
  }

 private:
  static constexpr std::size_t kMemory = std::size_t{64} << 20;
  std::vector<std::byte> memory_;
  std::optional<base::TempFile> file_;
};

// What was told of launches in the run with patches.
class Patched final : public Scan {
 public:
  struct Part {
    std::uint32_t name, format;  // of texts()
    Parts::Place place;
  };
  struct Told {
    std::optional<NumberedLaunch> launch;
    bool analysed = false;
    std::vector<Part> parts;
  };
  using Launches = std::map<std::uint64_t, Told>;  // by number

  Patched(KernelNames& names, Budget& budget, Parts& parts, std::deque<std::string>& texts)
      : Scan(names, budget), parts_(&parts), texts_(&texts) {}

  [[nodiscard]] std::map<std::uint32_t, Launches>& processes() { return processes_; }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  void report(const Problem& problem) override { problems_.push_back(problem); }
  // Results for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  void on_event(const Event& event, std::span<const std::byte> blob) override {
    names_.take(event, dictionary());
    if (event.kind != Kind::kDevice) return;
    // The other run has better ones.
    if (dictionary().text(event.device.format) == device::kTimesFormat) return;
    const ProcessId process = process_of(event);
    Launches& launches = processes_[process.value];
    const auto [known, is_new] = launches.try_emplace(event.device.launch);
    Told& told = known->second;
    if (is_new && !budget().take(kToldBytes)) {
      ++left_out_;
      launches.erase(known);
      return;
    }
    told.analysed =
        told.analysed || dictionary().text(event.device.format) != device::kSkippedFormat;
    auto result = device::read_result(blob);
    if (!result) {  // of another form
      keep(told, event, blob);
      return;
    }
    if (!told.launch) {
      const auto stream = device::stream_of(*result).value_or(device::StreamRow{});
      const auto iteration = device::iteration_of(*result);
      told.launch = {
          .key = {.kernel = kernel_of(event),
                  .grid = {result->grid[0], result->grid[1], result->grid[2]},
                  .stream = stream.launch > 0 ? static_cast<std::uint32_t>(stream.stream) : 0,
                  .iteration =
                      iteration ? static_cast<std::uint32_t>(*iteration) : LaunchKey::kNoIteration},
          .number = event.device.launch,
          .in_stream = stream.launch};
    }
    for (device::ResultTable& table : result->tables) {
      if (table.id != device::TableId::kObjects) continue;
      const auto rows = device::rows_of<device::ObjectRow>(table);
      table.names.resize(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        table.names[i] = names_.name_of(process, rows[i].address, rows[i].bytes,
                                        correlate::time_of_launch(event), table.names[i]);
      }
    }
    for (const std::string& part : device::write_result(*result, trace::spool::kMaxTextBytes)) {
      keep(told, event, std::as_bytes(std::span(part)));
    }
  }

  void keep(Told& told, const Event& event, std::span<const std::byte> bytes) {
    const auto place = budget().take(kPartBytes) ? parts_->add(bytes, scratch()) : std::nullopt;
    if (!place) {
      ++left_out_;
      return;
    }
    told.parts.push_back({text(event.name), text(event.device.format), *place});
  }
  std::uint32_t text(StringId id) {
    const auto [known, is_new] =
        numbers_.try_emplace(id.value, static_cast<std::uint32_t>(texts_->size()));
    if (is_new) texts_->emplace_back(dictionary().text(id));
    return known->second;
  }

  correlate::ObjectNames names_;
  std::map<std::uint32_t, Launches> processes_;
  std::vector<Problem> problems_;
  Parts* parts_;
  std::deque<std::string>* texts_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  // of texts, by StringId
  std::uint64_t left_out_ = 0;
};

// What comes behind a kernel of the run with times.
struct Behind {
  struct Launch {
    std::uint64_t number;
    bool joined;  // it is the kernel's own
    std::vector<Patched::Part> parts;
  };
  std::vector<Launch> launches;
};

struct Plot {
  std::map<std::size_t, Behind> behind;  // by index of the kernel
  // Of processes of which no kernel is in the run with times.
  struct Lost {
    Process process;  // its texts are of another dictionary
    std::string name;
    Behind behind;
  };
  std::vector<Lost> lost;
  std::uint64_t not_joined = 0;
  std::string first_not_joined;
  Parts parts;
  std::deque<std::string> texts;  // names and formats of parts
};

// `again`: other runs have said already what was left out.
void add_to(Plot& plot, Timed& timed, Patched& patched, bool again) {
  std::vector<ProcessId> ids;
  for (const auto& [id, launches] : patched.processes()) ids.push_back({id});
  const auto of_timed = keys_of(timed.dictionary(), timed.processes());
  for (const auto& [key, process] : keys_of(patched.dictionary(), ids)) {
    Patched::Launches& told = patched.processes()[process.value];
    std::vector<NumberedLaunch> numbered;
    for (const auto& [number, launch] : told) {
      if (number > 0 && launch.launch) numbered.push_back(*launch.launch);
    }
    const auto known = of_timed.find(key);
    const Timed::Launches none;
    const auto& kernels = known == of_timed.end() ? none : timed.launches(known->second);
    const auto matches = match_launches(kernels.keys, numbered);
    std::unordered_map<std::uint64_t, std::size_t> kernel_of;  // by number
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < numbered.size(); ++i) {
      if (matches[i] == kNoMatch) continue;
      kernel_of[numbered[i].number] = kernels.indices[matches[i]];
      if (!first) first = kernels.indices[matches[i]];
    }
    Behind* before = nullptr;
    if (kernels.keys.empty()) {
      plot.lost.push_back({patched.dictionary().process(process), key.name, {}});
      before = &plot.lost.back().behind;
    } else {
      before = &plot.behind[first.value_or(kernels.indices.front())];
    }
    for (auto& [number, launch] : told) {
      const auto found = kernel_of.find(number);
      const bool joined = found != kernel_of.end();
      if (joined) before = &plot.behind[found->second];
      if (again && !launch.analysed) launch.parts.clear();
      const std::uint32_t name = launch.parts.empty() ? 0 : launch.parts.front().name;
      if (!joined && launch.launch && launch.analysed && ++plot.not_joined == 1) {
        plot.first_not_joined = fmt::format("{}, launch {}", plot.texts[name], number);
      }
      before->launches.push_back({number, joined, std::move(launch.parts)});
    }
  }
}

class Passes final : public Adapter {
 public:
  Passes(OpenTrace timed, std::vector<OpenTrace> patched, std::string path,
         std::uint64_t memory_bytes, std::unique_ptr<Adapter> adapter)
      : open_timed_(std::move(timed)),
        open_patched_(std::move(patched)),
        path_(std::move(path)),
        memory_bytes_(memory_bytes),
        adapter_(std::move(adapter)) {
    info_ = adapter_->info();
    info_.provides = info_.provides | Kind::kDevice;
  }
  const AdapterInfo& info() const override { return info_; }

  Status start(const Plan& plan, EventSink& sink) override {
    if (!open_patched_.empty()) PASTA_TRY(look_ahead(plan));
    sink_ = &sinks_.emplace_back(*this, sink);
    return adapter_->start(plan, *sink_);
  }

  Result<bool> pump() override {
    auto more = adapter_->pump();
    if (more && !*more) end();
    return more;
  }
  Status stop() override { return adapter_->stop(); }

 private:
  // Reads all, to know what goes where.
  Status look_ahead(const Plan& plan) {
    const auto read = [&plan](const OpenTrace& open, Scan& scan) -> Status {
      auto adapter = open();
      if (!adapter) return tl::unexpected(std::move(adapter).error());
      return scan.read(**adapter, plan);
    };
    KernelNames names;
    Budget budget(memory_bytes_);
    Timed timed(names, budget);
    PASTA_TRY(read(open_timed_, timed));
    for (const OpenTrace& open : open_patched_) {
      Patched patched(names, budget, plot_.parts, plot_.texts);
      PASTA_TRY(read(open, patched));
      add_to(plot_, timed, patched, &open != open_patched_.data());
      problems_.insert(problems_.end(), patched.problems().begin(), patched.problems().end());
      if (patched.left_out() > 0) {
        problems_.push_back({Reason::kDroppedByCollector, patched.left_out(),
                             "results found no room where launches are joined"});
      }
    }
    if (timed.left_out() > 0) {
      problems_.push_back({Reason::kCollectorWarning, timed.left_out(),
                           "later kernels of the run with times found no room where launches are "
                           "joined: theirs are not joined"});
    }
    return {};
  }

  // Puts what is behind a kernel there.
  class Sink final : public EventSink {
   public:
    Sink(Passes& passes, EventSink& to) : passes_(&passes), to_(&to) {}
    Dictionary& dictionary() override { return to_->dictionary(); }
    void describe(const SourceInfo& info) override {
      SourceInfo named = info;
      if (!passes_->path_.empty()) named.path = passes_->path_;
      to_->describe(named);
    }
    EventSink& add_source(const SourceInfo& info) override {
      return passes_->sinks_.emplace_back(*passes_, to_->add_source(info));
    }
    void push(std::span<const Event> events) override {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < events.size(); ++i) {
        passes_->last_ns_ = std::max(passes_->last_ns_, events[i].end_ns);
        if (events[i].kind != Kind::kKernel) continue;
        const auto behind = passes_->plot_.behind.find(passes_->kernels_++);
        if (behind == passes_->plot_.behind.end()) continue;
        to_->push(events.subspan(begin, i + 1 - begin));
        begin = i + 1;
        push_behind(events[i], behind->second);
        passes_->plot_.behind.erase(behind);
      }
      if (begin < events.size()) to_->push(events.subspan(begin));
    }
    void push(Event event, std::span<const std::byte> blob) override { to_->push(event, blob); }
    void advance(std::int64_t end_ns) override { to_->advance(end_ns); }
    void report(const Problem& problem) override { to_->report(problem); }

    // With all that `where` says of the place and of times.
    void push_behind(const Event& where, const Behind& behind) {
      for (const Behind::Launch& launch : behind.launches) {
        for (const Patched::Part& part : launch.parts) {
          if (!passes_->plot_.parts.read(part.place, bytes_)) {
            ++passes_->unread_;
            continue;
          }
          Event event = where;
          event.kind = Kind::kDevice;
          event.name = dictionary().string(passes_->plot_.texts[part.name]);
          event.detail = static_cast<std::uint16_t>(launch.joined ? DeviceTimes::kOtherRun
                                                                  : DeviceTimes::kNotJoined);
          event.flags = where.flags & kUntimed;
          if (!launch.joined) {
            event.correlation = 0;
            event.start_ns = event.end_ns;
          }
          event.device = {.blob = {},
                          .format = dictionary().string(passes_->plot_.texts[part.format]),
                          .launch = launch.number,
                          .reserved = 0};
          to_->push(event, bytes_);
        }
      }
    }

   private:
    Passes* passes_;
    EventSink* to_;
    std::vector<std::byte> bytes_;
  };

  void end() {
    if (std::exchange(ended_, true)) return;
    for (const Plot::Lost& lost : plot_.lost) {
      Dictionary& dictionary = sink_->dictionary();
      Process process{.native_id = lost.process.native_id,
                      .source = dictionary.string("run with patches")};
      const ProcessId id = dictionary.process(process);
      process.name = dictionary.string(lost.name);
      process.rank = lost.process.rank;
      process.world_size = lost.process.world_size;
      dictionary.update(id, process);
      Event where{};
      where.lane = dictionary.lane({.process = id});
      where.flags = last_ns_ == kNoTime ? kUntimed : 0;
      where.start_ns = where.end_ns = last_ns_;
      sink_->push_behind(where, lost.behind);
    }
    if (plot_.not_joined > 0) {
      sink_->report({Reason::kNotJoined, plot_.not_joined, plot_.first_not_joined});
    }
    for (const Problem& problem : problems_) {
      sink_->report({problem.reason, problem.count, "run with patches: " + problem.first});
    }
    if (unread_ > 0) {
      sink_->report({Reason::kDroppedByCollector, unread_,
                     "results of the run with patches could not be read again"});
    }
  }

  OpenTrace open_timed_;
  std::vector<OpenTrace> open_patched_;
  std::string path_;
  std::uint64_t memory_bytes_;
  std::unique_ptr<Adapter> adapter_;
  AdapterInfo info_{};
  Plot plot_;
  std::vector<Problem> problems_;  // of runs with patches
  std::deque<Sink> sinks_;         // one for each source
  Sink* sink_ = nullptr;
  std::size_t kernels_ = 0;   // that have come
  std::uint64_t unread_ = 0;  // parts
  std::int64_t last_ns_ = kNoTime;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Adapter>> join_passes(OpenTrace timed, std::vector<OpenTrace> patched,
                                             std::string path, std::uint64_t memory_bytes) {
  auto adapter = timed();
  if (!adapter) return adapter;
  return std::make_unique<Passes>(std::move(timed), std::move(patched), std::move(path),
                                  memory_bytes, std::move(*adapter));
}

}  // namespace pasta::session
