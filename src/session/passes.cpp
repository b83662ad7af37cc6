#include "session/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "correlate/object_names.h"
#include "device/result.h"
#include "pasta/dictionary.h"
#include "session/match_launches.h"
#include "trace/spool.h"

namespace pasta::session {
namespace {

// Reads a trace into what `on_event` makes of it, with tables of its own.
class Scan : public EventSink {
 public:
  Status read(Adapter& adapter, const Plan& plan) {
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

 private:
  Dictionary dictionary_;
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
  struct Kernel {
    std::size_t index;  // of all kernels of the trace, as they come
    std::uint64_t correlation;
    std::uint32_t ordinal;
    std::int64_t start_ns;
    LaunchKey key;
  };
  // In the order of the launches, each with its iteration where the process marks any.
  std::vector<Kernel>& kernels(ProcessId process) {
    auto& kernels = processes_[process.value];
    const auto& marks = marks_[process.value];
    for (Kernel& kernel : kernels) {
      const auto call = calls_.find(kernel.correlation);
      if (marks.empty() || call == calls_.end()) continue;
      // The marks of one process follow each other; what is before the first is of none.
      const auto behind = marks.upper_bound(call->second);
      kernel.key.iteration = behind == marks.begin() ? 0 : std::prev(behind)->second;
    }
    const bool numbered =
        std::ranges::all_of(kernels, [](const Kernel& kernel) { return kernel.ordinal > 0; });
    std::ranges::stable_sort(kernels, {}, [numbered](const Kernel& kernel) {
      return std::tuple(numbered ? kernel.ordinal : 0, kernel.correlation, kernel.start_ns);
    });
    return kernels;
  }
  [[nodiscard]] std::vector<ProcessId> processes() const {
    std::vector<ProcessId> ids;
    for (const auto& [id, kernels] : processes_) ids.push_back({id});
    return ids;
  }

 private:
  void on_event(const Event& event, std::span<const std::byte>) override {
    if (event.untimed()) {
      // It is of no iteration.
    } else if (event.kind == Kind::kApi && event.correlation != 0) {
      calls_.try_emplace(event.correlation, event.start_ns);
    } else if (const auto step = step_of(event, dictionary())) {
      auto& marks = marks_[process_of(event).value];
      marks[event.start_ns] = *step + 1;
      marks.try_emplace(event.end_ns, *step + 2);
    }
    if (event.kind != Kind::kKernel) return;
    const KernelData& kernel = event.kernel;
    processes_[process_of(event).value].push_back(
        {count_++,
         event.correlation,
         kernel.ordinal,
         event.start_ns,
         {std::string(dictionary().text(event.name)),
          {kernel.grid[0], kernel.grid[1], kernel.grid[2]}}});
  }

  std::map<std::uint32_t, std::vector<Kernel>> processes_;
  // By process: how many iterations have begun, from when on.
  std::map<std::uint32_t, std::map<std::int64_t, std::uint64_t>> marks_;
  std::unordered_map<std::uint64_t, std::int64_t> calls_;  // when they began, by correlation
  std::size_t count_ = 0;
};

// What was told of launches in the run with patches.
class Patched final : public Scan {
 public:
  struct Part {
    std::string name, format;
    std::vector<std::byte> bytes;
  };
  struct Told {
    std::optional<LaunchKey> key;
    std::vector<Part> parts;
  };
  using Launches = std::map<std::uint64_t, Told>;  // by number

  [[nodiscard]] std::map<std::uint32_t, Launches>& processes() { return processes_; }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  void report(const Problem& problem) override { problems_.push_back(problem); }

 private:
  void on_event(const Event& event, std::span<const std::byte> blob) override {
    names_.take(event, dictionary());
    if (event.kind != Kind::kDevice) return;
    const ProcessId process = process_of(event);
    Told& told = processes_[process.value][event.device.launch];
    const std::string name(dictionary().text(event.name));
    const std::string format(dictionary().text(event.device.format));
    auto result = device::read_result(blob);
    if (!result) {  // of another form
      told.parts.push_back({name, format, {blob.begin(), blob.end()}});
      return;
    }
    if (!told.key) {
      told.key = {
          name, {result->grid[0], result->grid[1], result->grid[2]}, device::iteration_of(*result)};
    }
    for (device::ResultTable& table : result->tables) {
      if (table.id != device::TableId::kObjects) continue;
      const auto rows = device::rows_of<device::ObjectRow>(table);
      table.names.resize(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        table.names[i] = names_.name_of(process, rows[i].address, rows[i].bytes, table.names[i]);
      }
    }
    for (const std::string& part : device::write_result(*result, trace::spool::kMaxTextBytes)) {
      const auto bytes = std::as_bytes(std::span(part));
      told.parts.push_back({name, format, {bytes.begin(), bytes.end()}});
    }
  }

  correlate::ObjectNames names_;
  std::map<std::uint32_t, Launches> processes_;
  std::vector<Problem> problems_;
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
      if (number > 0 && launch.key) numbered.push_back({*launch.key, number});
    }
    const auto known = of_timed.find(key);
    const std::vector<Timed::Kernel> none;
    const auto& kernels = known == of_timed.end() ? none : timed.kernels(known->second);
    std::vector<LaunchKey> all;
    for (const Timed::Kernel& kernel : kernels) all.push_back(kernel.key);
    const auto matches = match_launches(all, numbered);
    std::map<std::uint64_t, std::size_t> kernel_of;  // by number
    for (std::size_t i = 0; i < numbered.size(); ++i) {
      if (matches[i] != kNoMatch) kernel_of[numbered[i].number] = kernels[matches[i]].index;
    }
    Behind* before = nullptr;
    if (kernels.empty()) {
      plot.lost.push_back({patched.dictionary().process(process), key.name, {}});
      before = &plot.lost.back().behind;
    } else {
      const auto first = kernel_of.empty() ? kernels.front().index : kernel_of.begin()->second;
      before = &plot.behind[first];
    }
    for (auto& [number, launch] : told) {
      const auto found = kernel_of.find(number);
      const bool joined = found != kernel_of.end();
      if (joined) before = &plot.behind[found->second];
      const auto left_out = [](const Patched::Part& part) {
        return part.format == device::kSkippedFormat;
      };
      const bool analysed = !std::ranges::all_of(launch.parts, left_out);
      if (again) std::erase_if(launch.parts, left_out);
      before->launches.push_back({number, joined, std::move(launch.parts)});
      if (joined || !launch.key || !analysed) continue;
      if (++plot.not_joined == 1) {
        plot.first_not_joined = fmt::format("{}, launch {}", launch.key->kernel, number);
      }
    }
  }
}

class Passes final : public Adapter {
 public:
  Passes(OpenTrace timed, std::vector<OpenTrace> patched, std::string path,
         std::unique_ptr<Adapter> adapter)
      : open_timed_(std::move(timed)),
        open_patched_(std::move(patched)),
        path_(std::move(path)),
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
    Timed timed;
    PASTA_TRY(read(open_timed_, timed));
    for (const OpenTrace& open : open_patched_) {
      Patched patched;
      PASTA_TRY(read(open, patched));
      add_to(plot_, timed, patched, &open != open_patched_.data());
      problems_.insert(problems_.end(), patched.problems().begin(), patched.problems().end());
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
          Event event = where;
          event.kind = Kind::kDevice;
          event.name = dictionary().string(part.name);
          event.detail = static_cast<std::uint16_t>(launch.joined ? DeviceTimes::kOtherRun
                                                                  : DeviceTimes::kNotJoined);
          event.flags = where.flags & kUntimed;
          if (!launch.joined) {
            event.correlation = 0;
            event.start_ns = event.end_ns;
          }
          event.device = {.blob = {},
                          .format = dictionary().string(part.format),
                          .launch = launch.number,
                          .reserved = 0};
          to_->push(event, part.bytes);
        }
      }
    }

   private:
    Passes* passes_;
    EventSink* to_;
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
  }

  OpenTrace open_timed_;
  std::vector<OpenTrace> open_patched_;
  std::string path_;
  std::unique_ptr<Adapter> adapter_;
  AdapterInfo info_{};
  Plot plot_;
  std::vector<Problem> problems_;  // of runs with patches
  std::deque<Sink> sinks_;         // one for each source
  Sink* sink_ = nullptr;
  std::size_t kernels_ = 0;  // that have come
  std::int64_t last_ns_ = kNoTime;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Adapter>> join_passes(OpenTrace timed, std::vector<OpenTrace> patched,
                                             std::string path) {
  auto adapter = timed();
  if (!adapter) return adapter;
  return std::make_unique<Passes>(std::move(timed), std::move(patched), std::move(path),
                                  std::move(*adapter));
}

}  // namespace pasta::session
