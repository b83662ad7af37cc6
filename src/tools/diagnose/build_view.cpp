#include "tools/diagnose/build_view.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "stats/quantiles.h"
#include "tools/common/demangle.h"
#include "tools/common/saturate.h"

namespace pasta::tools::diagnose {
namespace {

using stats::Interval;
using stats::IntervalSet;

// A stretch without launches that is shorter prepares nothing worth the name.
constexpr std::int64_t kLeastPreparationNs = 1'000'000;
// Names of a chain that are kept to show it.
constexpr std::size_t kShownChain = 6;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

void grow(std::int64_t& sum, std::int64_t by) { sum = add_saturated(sum, by); }

// Which windows stretches of time lie in.
class Windows {
 public:
  explicit Windows(std::span<const Window> windows) : windows_(windows) {}
  // Calls take(window index, begin, end) for the parts of a stretch that lie in windows; stretches
  // ascend.
  template <class Take>
  void clip(std::int64_t begin, std::int64_t end, Take&& take) {
    while (first_ < windows_.size() && windows_[first_].end_ns <= begin) ++first_;
    for (std::size_t i = first_; i < windows_.size() && windows_[i].start_ns < end; ++i) {
      const std::int64_t from = std::max(begin, windows_[i].start_ns);
      const std::int64_t to = std::min(end, windows_[i].end_ns);
      if (from < to) take(i, from, to);
    }
  }
  // The window that holds a moment; moments may come in any order.
  [[nodiscard]] std::size_t holding(std::int64_t moment) {
    if (last_ < windows_.size() && holds(last_, moment)) return last_;
    const auto next = std::ranges::upper_bound(windows_, moment, {}, &Window::start_ns);
    if (next == windows_.begin()) return kNowhere;
    last_ = static_cast<std::size_t>(next - windows_.begin()) - 1;
    return holds(last_, moment) ? last_ : kNowhere;
  }

 private:
  [[nodiscard]] bool holds(std::size_t i, std::int64_t moment) const {
    return windows_[i].start_ns <= moment && moment < windows_[i].end_ns;
  }
  std::span<const Window> windows_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

// Adds a stretch of a window to its bins, in parts of a bin.
template <class Number>
void add_to_bins(const Window& window, std::int64_t begin, std::int64_t end,
                 std::vector<Number>& bins) {
  const auto length = static_cast<double>(window.duration_ns());
  const auto count = static_cast<double>(bins.size());
  const double from =
      static_cast<double>(distance_saturated(window.start_ns, begin)) / length * count;
  const double to = static_cast<double>(distance_saturated(window.start_ns, end)) / length * count;
  for (auto i = static_cast<std::size_t>(from); i < bins.size(); ++i) {
    const auto left = static_cast<double>(i);
    if (left >= to) break;
    const double part = std::min(to, left + 1) - std::max(from, left);
    bins[i] += static_cast<Number>(part);
  }
}

TimePart part_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::kLaunchBound:
      return TimePart::kLaunchBound;
    case IdleCause::kSyncBound:
      return TimePart::kSyncBound;
    case IdleCause::kInputBound:
      return TimePart::kInputBound;
    case IdleCause::kHostBusy:
    case IdleCause::kWorkQueued:
      return TimePart::kOther;
    case IdleCause::kNoHostThread:
    case IdleCause::kUnknown:
      break;
  }
  return TimePart::kUnknown;
}

class Builder {
 public:
  Builder(const DeviceWork& device, const IterationRun* run, Observed& observed, std::size_t bins,
          const Dictionary& dictionary)
      : device_(device), observed_(observed), bins_(bins), dictionary_(dictionary) {
    View& view = result_.view;
    view.dictionary = &dictionary;
    view.facts = dictionary.device(device.device);
    if (run != nullptr) {
      for (const Iteration& one : run->list) {
        view.windows.push_back({.start_ns = one.start_ns,
                                .end_ns = one.end_ns,
                                .phase = one.phase,
                                .number = one.number,
                                .edits = one.edits});
        if (one.phase == IterationPhase::kSteady && one.duration_ns() > 0) {
          view.origin = run->origin;
        }
      }
    }
    if (view.origin == IterationOrigin::kNone) {
      view.windows = {{.start_ns = device.first_ns, .end_ns = device.last_ns}};
    }
  }

  Diagnosis build() {
    add_busy();
    add_idle();
    add_log();
    add_calls();
    total();
    return std::move(result_);
  }

 private:
  View& view() { return result_.view; }
  std::vector<Window>& windows() { return result_.view.windows; }

  // Calls take(window, begin, end) for what of the set lies in windows.
  template <class Take>
  void each_in(const IntervalSet& set, Take&& take) {
    Windows clipped(windows());
    IntervalSet::Reader reader(set);
    for (Interval piece; reader.next(piece);) {
      clipped.clip(piece.begin, piece.end, [&](std::size_t i, std::int64_t from, std::int64_t to) {
        take(windows()[i], from, to);
      });
    }
  }

  void add_part(const IntervalSet& set, TimePart part) {
    each_in(set, [&](Window& window, std::int64_t from, std::int64_t to) {
      grow(time_of(window.parts, part), distance_saturated(from, to));
    });
  }

  void add_busy() {
    const IntervalSet kernels = stats::unite(device_.compute, device_.communication);
    add_part(device_.compute, TimePart::kCompute);
    add_part(stats::subtract(device_.communication, device_.compute), TimePart::kCommunication);
    add_part(stats::subtract(device_.copies, kernels), TimePart::kCopy);
    each_in(device_.communication, [&](Window& window, std::int64_t from, std::int64_t to) {
      grow(window.communication_ns, distance_saturated(from, to));
    });
    busy_ = stats::unite(kernels, device_.copies);

    std::size_t steady = 0;
    for (const Window& window : windows()) steady += window.steady() ? 1 : 0;
    Timeline& line = result_.timeline;
    line.each.assign(steady, std::vector<float>(bins_));
    std::size_t index = 0;
    const Window* current = nullptr;
    // Windows come in order; those in which the device did nothing keep their zeros.
    std::unordered_map<const Window*, std::size_t> index_of;
    for (const Window& window : windows()) {
      if (window.steady()) index_of[&window] = index++;
    }
    std::size_t row = 0;
    each_in(busy_, [&](Window& window, std::int64_t from, std::int64_t to) {
      grow(window.busy_ns, distance_saturated(from, to));
      if (!window.steady()) return;
      if (&window != current) current = &window, row = index_of[current];
      add_to_bins(window, from, to, line.each[row]);
    });
  }

  void add_idle() {
    const HostLevels host =
        observed_.host().levels(observed_.host().threads_of(device_.owners, dictionary_));
    IdleSplitter splitter(host);
    Coverage waiting(device_.waiting.when());
    const std::vector<std::int64_t> inputs = input_starts();
    Windows clipped(windows());
    const auto gap = [&](std::int64_t begin, std::int64_t end) {
      if (begin >= end) return;
      const bool queued = waiting.covers(begin);
      // Had the host not waited, the device would have had its next work earlier, but by no more
      // than the time of waiting.
      const Interval wait = splitter.wait_at(begin);
      std::int64_t lost = queued ? 0 : distance_saturated(wait.begin, wait.end);
      const bool before_input = std::ranges::binary_search(inputs, end);
      clipped.clip(begin, end, [&](std::size_t i, std::int64_t from, std::int64_t to) {
        Window& window = windows()[i];
        CauseTimes causes{};
        if (queued) {
          causes[static_cast<std::size_t>(IdleCause::kWorkQueued)] = distance_saturated(from, to);
        } else {
          causes = splitter.split(from, to);
        }
        for (std::size_t c = 0; c < kIdleCauseCount; ++c) {
          grow(time_of(window.parts, part_of(static_cast<IdleCause>(c))), causes[c]);
        }
        const auto of = [&](IdleCause cause) { return causes[static_cast<std::size_t>(cause)]; };
        const std::int64_t after_wait =
            std::min(of(IdleCause::kLaunchBound),
                     std::max<std::int64_t>(lost - of(IdleCause::kSyncBound), 0));
        grow(window.waited_ns, of(IdleCause::kSyncBound) + after_wait);
        lost -= std::min(lost, of(IdleCause::kSyncBound) + after_wait);
        if (before_input && of(IdleCause::kHostBusy) >= kLeastPreparationNs) {
          grow(window.prepared_ns, of(IdleCause::kHostBusy));
        }
        if (window.steady()) idle_.add(from, to);
      });
    };
    std::int64_t done = windows().front().start_ns;
    IntervalSet::Reader reader(busy_);
    for (Interval piece; reader.next(piece);) {
      gap(done, piece.begin);
      done = std::max(done, piece.end);
    }
    gap(done, windows().back().end_ns);
  }

  // Starts of copies to the device.
  [[nodiscard]] std::vector<std::int64_t> input_starts() const {
    std::vector<std::int64_t> starts;
    WorkLog::Reader reader(device_.log);
    for (WorkRecord record; reader.next(record);) {
      const WorkKey& key = device_.log.keys()[record.key];
      if (key.kind == Kind::kCopy &&
          static_cast<CopyDirection>(key.detail) == CopyDirection::kHostToDevice) {
        starts.push_back(record.start_ns);
      }
    }
    std::ranges::sort(starts);
    return starts;
  }

  struct Chain {
    std::size_t window = kNowhere;
    std::uint64_t blocks = 0;
    std::int64_t kernels = 0, total_ns = 0, longest_ns = 0;
    std::uint64_t signature = 0;
    std::vector<StringId> names;
  };
  struct ChainSort {
    std::int64_t saved_ns = 0;
    std::int64_t kernels = 0;
    std::vector<StringId> names;
  };

  void add_log() {
    const auto& keys = device_.log.keys();
    std::vector<WorkUse> uses(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      uses[i].key = keys[i];
      if (keys[i].kind == Kind::kKernel)
        uses[i].type = observed_.type_of(keys[i].name, dictionary_);
    }
    Timeline& line = result_.timeline;
    line.classes.assign(kKernelClassCount + 1, std::vector<double>(bins_));
    Windows holder(windows());
    stats::Quantiles kernels;
    std::map<LaneId, std::pair<QueueUse, IntervalSet>> queues;
    std::unordered_map<std::uint32_t, Chain> chains;  // by queue
    WorkLog::Reader reader(device_.log);
    for (WorkRecord record; reader.next(record);) {
      WorkUse& use = uses[record.key];
      const std::size_t at = holder.holding(record.start_ns);
      if (at == kNowhere || !windows()[at].steady()) continue;
      const Window& window = windows()[at];
      const std::int64_t took = distance_saturated(record.start_ns, record.end_ns);
      ++use.calls;
      use.total_ns = add_saturated(use.total_ns, took);
      const bool kernel = use.key.kind == Kind::kKernel;
      const auto row = kernel ? static_cast<std::size_t>(use.type) : kKernelClassCount;
      add_to_bins(window, record.start_ns, std::min(record.end_ns, window.end_ns),
                  line.classes[row]);
      if (!kernel) {
        use.bytes_known &= record.bytes != kUnknownBytes;
        if (record.bytes != kUnknownBytes) use.bytes += record.bytes;
        continue;
      }
      kernels.add(took);
      if (use.key.detail != 0) ++view().graph_kernels;
      follow(chains[use.key.lane.value], use, at, took);
      if (use.type == KernelClass::kCommunication) {
        ++view().communication_calls;
      } else if (device_.queues.size() > 1) {
        auto& [queue, ran] = queues[use.key.lane];
        queue.lane = use.key.lane;
        ++queue.kernels;
        ran.add(record.start_ns, record.end_ns);
      }
    }
    for (auto& [lane, chain] : chains) end(chain);
    show_longest_chain();
    view().kernels = static_cast<std::int64_t>(kernels.count());
    view().median_kernel_ns = kernels.quantile(0.5);
    IntervalSet all;
    std::int64_t sum = 0;
    for (auto& [lane, queue] : queues) {
      queue.first.busy_ns = queue.second.length();
      grow(sum, queue.first.busy_ns);
      view().compute_queues.push_back(queue.first);
      all = all.empty() ? queue.second : stats::unite(all, queue.second);
    }
    view().compute_overlap_ns = sum - all.length();
    std::erase_if(uses, [](const WorkUse& use) { return use.calls == 0; });
    add_recomputed(uses);
    view().work = std::move(uses);
  }

  // Continues the chain of a queue, or ends it and begins another.
  void follow(Chain& chain, const WorkUse& use, std::size_t window, std::int64_t took) {
    const bool fits = use.type == KernelClass::kElementwise && use.key.blocks != 0;
    if (!fits || chain.window != window || chain.blocks != use.key.blocks) end(chain);
    if (!fits) return;
    chain.window = window;
    chain.blocks = use.key.blocks;
    ++chain.kernels;
    grow(chain.total_ns, took);
    chain.longest_ns = std::max(chain.longest_ns, took);
    chain.signature = (chain.signature + use.key.name.value) * 0x9e3779b97f4a7c15u;
    if (chain.names.size() < kShownChain) chain.names.push_back(use.key.name);
  }

  void end(Chain& chain) {
    if (chain.kernels >= 2) {
      Chains& all = view().chains;
      ++all.chains;
      all.kernels += chain.kernels;
      grow(all.total_ns, chain.total_ns);
      grow(all.longest_ns, chain.longest_ns);
      ChainSort& sort = chain_sorts_[chain.signature];
      grow(sort.saved_ns, chain.total_ns - chain.longest_ns);
      if (sort.names.empty()) sort.names = chain.names, sort.kernels = chain.kernels;
    }
    chain = {};
  }

  void show_longest_chain() {
    const ChainSort* most = nullptr;
    for (const auto& [signature, sort] : chain_sorts_) {
      if (most == nullptr ||
          std::pair(sort.saved_ns, most->names) > std::pair(most->saved_ns, sort.names)) {
        most = &sort;
      }
    }
    if (most == nullptr) return;
    std::string& text = view().chains.longest;
    for (const StringId name : most->names) {
      if (!text.empty()) text += " > ";
      text += short_name(demangle(dictionary_.text(name)));
    }
    if (most->kernels > static_cast<std::int64_t>(most->names.size())) text += " > ...";
  }

  void add_recomputed(std::span<const WorkUse> uses) {
    std::vector<StringId> forward_names;
    std::vector<std::pair<const WorkUse*, StringId>> again;
    for (const WorkUse& use : uses) {
      if (use.key.kind != Kind::kKernel || use.type == KernelClass::kCommunication) continue;
      const Recomputed::Found found = observed_.recomputed().of(use.key.scope, dictionary_);
      if (found.path == Recomputed::Path::kRecomputed)
        again.emplace_back(&use, found.operator_name);
      if (found.path == Recomputed::Path::kForward) forward_names.push_back(use.key.name);
    }
    std::ranges::sort(forward_names);
    for (const auto& [use, name] : again) {
      View& of = view();
      grow(of.recomputed_ns, use->total_ns);
      of.recomputed_kernels += use->calls;
      if (std::ranges::binary_search(forward_names, use->key.name)) {
        grow(of.recomputed_known_ns, use->total_ns);
      }
      if (std::ranges::find(of.recomputed_operators, name) == of.recomputed_operators.end()) {
        of.recomputed_operators.push_back(name);
      }
    }
  }

  void add_calls() {
    Windows holder(windows());
    IntervalSet allocating;
    std::map<std::pair<StringId, FrameId>, CallUse> waits, allocations;
    for (const HostCall& call : observed_.calls()) {
      const bool of_device = std::ranges::any_of(device_.owners, [&](ProcessId owner) {
        return same_program(call.process, owner, dictionary_);
      });
      if (!of_device) continue;
      const std::size_t at = holder.holding(call.start_ns);
      if (at == kNowhere || !windows()[at].steady()) continue;
      CallUse& use = (call.waits ? waits : allocations)[{call.name, call.scope}];
      use.name = call.name;
      use.scope = call.scope;
      ++use.calls;
      const std::int64_t took = distance_saturated(call.start_ns, call.end_ns);
      use.total_ns = add_saturated(use.total_ns, took);
      use.longest_ns = std::max(use.longest_ns, took);
      if (!call.waits) allocating.add(call.start_ns, call.end_ns);
    }
    for (const auto& [key, use] : waits) view().waits.push_back(use);
    for (const auto& [key, use] : allocations) view().allocations.push_back(use);
    Windows of_returns(windows());
    std::size_t returned_in = kNowhere;
    for (const Return& one : observed_.returns()) {
      if (one.device != device_.device) continue;
      const std::size_t at = of_returns.holding(one.at_ns);
      if (at == kNowhere || !windows()[at].steady()) continue;
      ++view().returns;
      view().returned_bytes = add_saturated(view().returned_bytes, one.bytes);
      view().returning_iterations += at != returned_in ? 1 : 0;
      returned_in = at;
    }
    view().allocation_idle_ns = stats::intersection_length(idle_, allocating);
    view().median_launch_ns = observed_.median_launch_ns(device_.owners.front(), dictionary_);
  }

  void total() {
    View& of = view();
    for (const Window& window : windows()) {
      if (!window.steady()) continue;
      ++of.iterations;
      of.total_ns = add_saturated(of.total_ns, window.duration_ns());
      for (std::size_t i = 0; i < kPartCount; ++i) grow(of.parts[i], window.parts[i]);
      grow(of.communication_ns, window.communication_ns);
      grow(of.busy_ns, window.busy_ns);
      grow(of.waited_ns, window.waited_ns);
      grow(of.prepared_ns, window.prepared_ns);
      of.edits += window.edits;
    }
    Timeline& line = result_.timeline;
    line.busy.assign(bins_, 0);
    const auto count = static_cast<double>(std::max<std::size_t>(line.each.size(), 1));
    for (const auto& one : line.each) {
      for (std::size_t i = 0; i < bins_; ++i) line.busy[i] += static_cast<double>(one[i]) / count;
    }
    for (auto& row : line.classes) {
      for (double& value : row) value /= count;
    }
  }

  const DeviceWork& device_;
  Observed& observed_;
  std::size_t bins_;
  const Dictionary& dictionary_;
  Diagnosis result_;
  IntervalSet busy_, idle_;
  std::map<std::uint64_t, ChainSort> chain_sorts_;
};

}  // namespace

Diagnosis diagnose_device(const DeviceWork& device, const IterationRun* run, Observed& observed,
                          std::string label, std::size_t bins, const Dictionary& dictionary) {
  Diagnosis made = Builder(device, run, observed, bins, dictionary).build();
  made.view.device = std::move(label);
  return made;
}

}  // namespace pasta::tools::diagnose
