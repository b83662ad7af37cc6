#include "pasta/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "session/blobs.h"
#include "session/dispatcher.h"
#include "session/labels.h"
#include "session/merger.h"
#include "session/quality.h"
#include "session/sieve.h"
#include "session/source_sink.h"
#include "session/summary.h"

namespace pasta {
namespace {

// Enough that a virtual call costs nothing, few enough to stay in the first cache with the tools'
// own data (see benchmarks/session_benchmark.cpp).
constexpr std::size_t kBatch = 256;
// What one pump() of a merge gives before it returns to its caller.
constexpr std::size_t kEventsPerPump = std::size_t{1} << 16;

std::string names_of(KindSet kinds) {
  std::vector<std::string_view> names;
  for (unsigned i = 0; i < kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    if (kinds.has(kind)) names.push_back(kind_name(kind));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class Use>
void for_each_blob(std::span<const Event> events, const Use& use) {
  for (const Event& event : events) {
    if (event.kind == Kind::kDevice) use(event.device.blob);
  }
}

}  // namespace

struct Session::Impl final : Context {
  struct Given {
    std::unique_ptr<Adapter> adapter;
    std::string label;
    bool of_job;
    std::vector<std::size_t> sources;  // at first one; more when it says that it has several
  };
  struct Source {
    std::size_t adapter;
    std::unique_ptr<session::Quality> quality;
    std::unique_ptr<session::SourceSink> sink;
    Problems here;  // found beside other sources, and not a fact of this one
  };
  struct Output {
    std::unique_ptr<Recorder> recorder;
    bool filtered;
  };

  explicit Impl(Plan given) : plan(std::move(given)) {}

  // Context
  [[nodiscard]] const Dictionary& dictionary() const override { return names; }
  [[nodiscard]] std::span<const std::byte> blob(BlobId id) const override { return blobs.get(id); }
  [[nodiscard]] std::string device_label(DeviceId id) const override { return labels.label(id); }
  [[nodiscard]] std::int64_t origin_ns() const override { return origin; }

  Status start();
  Result<bool> pump();
  Result<Document> finish();

  Status prepare();
  std::size_t make_source(std::size_t adapter);
  Result<bool> pump_adapter(std::size_t index);
  Result<bool> pump_merge();
  void receive(std::size_t source, std::span<const Event> events);
  void give_batch();
  void record(std::size_t source, std::span<const Event> events, bool filtered);
  void end_with(std::size_t adapter, const Error& error);
  [[nodiscard]] std::vector<Problems> all_problems() const;
  [[nodiscard]] Status failure() const;

  Plan plan;
  Filter wanted;
  std::size_t batch_events = kBatch;
  std::vector<Given> adapters;
  std::vector<Source> sources;
  std::vector<Output> outputs;
  session::Dispatcher tools;
  std::vector<std::pair<std::string_view, KindSet>> needs;

  Dictionary names;
  session::Blobs blobs;
  mutable session::DeviceLabels labels{names};
  session::Sieve sieve{names};
  bool direct = false;                    // the only source hands its events on itself
  std::optional<session::Merger> merger;  // else, once all sources have said what they are
  std::vector<Event> batch;               // of the merge
  std::vector<BlobId> batch_blobs;        // that no one needs once the batch has been given
  std::vector<SourceInfo> infos;
  std::vector<const session::Quality*> qualities;
  std::int64_t origin = kNoTime;
  bool one_clock = true;
  bool prepared = false;
  std::optional<Error> unreadable;  // why the first source that gave nothing gave nothing
  Status refused;     // the sources cannot stand beside each other, or a recorder failed
  bool told = false;  // that failure() is not empty
};

Status Session::Impl::start() {
  if (adapters.empty()) return fail(ErrorCode::kUsage, "no trace given");
  KindSet provided;
  std::vector<std::string> givers;
  for (const Given& given : adapters) {
    const AdapterInfo& info = given.adapter->info();
    provided = provided | info.provides;
    const std::string giver = fmt::format("{} ({})", info.name, names_of(info.provides));
    if (std::find(givers.begin(), givers.end(), giver) == givers.end()) givers.push_back(giver);
  }
  for (const auto& [tool, kinds] : needs) {
    if (provided.contains(kinds)) continue;
    return fail(ErrorCode::kUnsupported,
                fmt::format("tool {} needs events of kind {}, which cannot come from {}", tool,
                            names_of(kinds - provided), fmt::join(givers, ", ")));
  }
  for (const Output& output : outputs) PASTA_TRY(output.recorder->begin(names));

  direct = adapters.size() == 1 && !adapters[0].adapter->info().live;
  for (std::size_t i = 0; i < adapters.size(); ++i) make_source(i);
  for (const Given& given : adapters) {
    PASTA_TRY(given.adapter->start(plan, *sources[given.sources[0]].sink));
  }
  return {};
}

std::size_t Session::Impl::make_source(std::size_t adapter) {
  const std::size_t index = sources.size();
  Source& source = sources.emplace_back();
  source.adapter = adapter;
  source.quality = std::make_unique<session::Quality>(names);
  session::SourceSink::Receive on_push;
  if (direct) on_push = [this](std::span<const Event> events) { receive(0, events); };
  source.sink = std::make_unique<session::SourceSink>(names, blobs, *source.quality, batch_events,
                                                      std::move(on_push),
                                                      [this, adapter]() -> session::SourceSink& {
                                                        // What several sources give is put in order
                                                        // by the merge, also that of one adapter.
                                                        if (std::exchange(direct, false))
                                                          sources[0].sink->wait();
                                                        return *sources[make_source(adapter)].sink;
                                                      });
  adapters[adapter].sources.push_back(index);
  return index;
}

// Once every source has said what it is.
Status Session::Impl::prepare() {
  prepared = true;
  // In the order of the files, whenever they said that they have several.
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.adapter < b.adapter; });
  for (Given& adapter : adapters) adapter.sources.clear();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    adapters[sources[i].adapter].sources.push_back(i);
  }
  std::vector<session::GivenName> given;
  for (Source& source : sources) {
    const Given& adapter = adapters[source.adapter];
    infos.push_back(source.sink->info());
    qualities.push_back(source.quality.get());
    given.push_back({adapter.label, adapter.of_job, adapter.sources.size() > 1});
  }
  PASTA_TRY(session::label_sources(infos, given));
  for (const SourceInfo& info : infos) {
    if (info.first_ns != kNoTime) {
      origin = origin == kNoTime ? info.first_ns : std::min(origin, info.first_ns);
    }
    one_clock = one_clock && (info.absolute_clock || infos.size() == 1);
  }
  std::vector<std::int64_t> origins;
  std::vector<session::MergeInput*> inputs;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    inputs.push_back(sources[i].sink.get());
    origins.push_back(one_clock ? origin : infos[i].first_ns);
    if (one_clock || infos[i].absolute_clock) continue;
    sources[i].here.add(Reason::kClockUnaligned, 1,
                        infos[i].first_ns == kNoTime
                            ? "no event has times"
                            : fmt::format("starts at {} ns", infos[i].first_ns));
  }
  if (!direct) merger.emplace(inputs);
  labels.sources(infos, qualities);
  sieve.prepare(wanted, infos, origins, labels);
  for (const Output& output : outputs) PASTA_TRY(output.recorder->sources(infos));
  return {};
}

Result<bool> Session::Impl::pump() {
  if (told) return false;
  auto more = direct ? pump_adapter(0) : pump_merge();
  if (Status status = failure(); !status) {
    told = true;
    return tl::unexpected<Error>(std::move(status).error());
  }
  return more;
}

// False once the adapter has ended.
Result<bool> Session::Impl::pump_adapter(std::size_t index) {
  if (sources[adapters[index].sources[0]].sink->ended()) return false;
  auto more = adapters[index].adapter->pump();
  if (!more) {
    end_with(index, more.error());
  } else if (!*more) {
    for (const std::size_t source : adapters[index].sources) sources[source].sink->end();
  }
  return more;
}

Result<bool> Session::Impl::pump_merge() {
  if (!prepared) {
    for (const Source& source : sources) {
      if (source.sink->described() || source.sink->ended()) continue;
      auto more = pump_adapter(source.adapter);
      return more ? Result<bool>(true) : more;
    }
    refused = prepare();
  }
  std::size_t given = 0;
  while (failure() && given < kEventsPerPump) {
    const auto step = merger->next();
    if (!step) {
      give_batch();
      return false;
    }
    if (!step->run.empty()) {
      receive(step->input, step->run);
      given += step->run.size();
      continue;
    }
    const session::SourceSink& sink = *sources[step->input].sink;
    const std::uint64_t before = sink.progress();
    auto more = pump_adapter(sources[step->input].adapter);
    if (!more) return more;
    if (*more && sink.progress() == before) break;  // a live source has nothing yet
  }
  return true;
}

void Session::Impl::end_with(std::size_t adapter, const Error& error) {
  session::SourceSink& first = *sources[adapters[adapter].sources[0]].sink;
  if (!first.described() && !unreadable) unreadable = error;
  first.report({Reason::kTruncated, 1, error.message});
  for (const std::size_t source : adapters[adapter].sources) sources[source].sink->end();
}

Status Session::Impl::failure() const { return refused ? tools.status() : refused; }

// `events` are of one source, and next in the order of the whole.
void Session::Impl::receive(std::size_t source, std::span<const Event> events) {
  if (!prepared) refused = prepare();
  if (!refused) return;
  record(source, events, false);
  // Also of events that do not pass.
  std::vector<BlobId> arrived;
  if (merger && !blobs.empty()) {
    for_each_blob(events, [&](BlobId id) { arrived.push_back(id); });
  }
  if (!sieve.lets_all_pass()) events = sieve.pass(source, events);
  record(source, events, true);
  if (!merger) {
    if (!events.empty()) tools.give(events, *this);
    return;
  }
  while (!events.empty()) {
    const auto portion = events.first(std::min(events.size(), batch_events - batch.size()));
    batch.insert(batch.end(), portion.begin(), portion.end());
    events = events.subspan(portion.size());
    if (batch.size() == batch_events) give_batch();
  }
  // Some of them may be of the batch that is only begun.
  batch_blobs.insert(batch_blobs.end(), arrived.begin(), arrived.end());
}

void Session::Impl::give_batch() {
  if (!batch.empty()) tools.give(batch, *this);
  batch.clear();
  for (const BlobId id : batch_blobs) blobs.remove(id);
  batch_blobs.clear();
}

void Session::Impl::record(std::size_t source, std::span<const Event> events, bool filtered) {
  for (const Output& output : outputs) {
    if (output.filtered != filtered || events.empty()) continue;
    output.recorder->from(source);
    if (!blobs.empty()) {
      for_each_blob(events, [&](BlobId id) {
        Status status = output.recorder->record_blob(id, blobs.get(id));
        if (!status && refused) refused = status;
      });
    }
    if (Status status = output.recorder->record(events); !status && refused) refused = status;
  }
}

Result<Document> Session::Impl::finish() {
  if (sources.empty()) return fail(ErrorCode::kUsage, "the session was not started");
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    Status status = adapters[i].adapter->stop();
    const auto& own = adapters[i].sources;
    if (!status && !sources[own[0]].sink->ended()) end_with(i, status.error());
    for (const std::size_t source : own) sources[source].sink->end();
  }
  // A source that ended before it said what it is gave nothing; when none said it, there is no
  // answer.
  if (unreadable && std::none_of(sources.begin(), sources.end(),
                                 [](const Source& source) { return source.sink->described(); })) {
    return tl::unexpected<Error>(*unreadable);
  }
  if (!prepared) refused = prepare();
  if (merger && failure()) {
    while (const auto step = merger->next()) receive(step->input, step->run);
    give_batch();
  }
  PASTA_TRY(failure());
  PASTA_TRY(sieve.unmatched());
  auto reports = tools.finish(*this);
  if (!reports) return tl::unexpected<Error>(std::move(reports).error());

  const auto problems = all_problems();
  Document document;
  document.trace = session::summarize(names, infos, qualities, problems, one_clock, labels);
  document.trace.filter = wanted.describe();
  document.reports = std::move(*reports);
  // Of a stored trace the session observes again what it observed here, so only what the adapters
  // knew is recorded.
  std::vector<std::vector<Problem>> lists;
  for (const Source& source : sources) {
    const Problems& reported = source.sink->problems();
    lists.emplace_back(reported.list().begin(), reported.list().end());
  }
  for (const Output& output : outputs) PASTA_TRY(output.recorder->end(infos, lists));
  return document;
}

std::vector<Problems> Session::Impl::all_problems() const {
  std::vector<Problems> all;
  for (const Source& source : sources) {
    Problems& problems = all.emplace_back();
    problems = source.sink->problems();
    for (const Problems* more : {&source.quality->problems(), &source.here}) {
      for (const Problem& problem : more->list()) {
        problems.add(problem.reason, problem.count, problem.first);
      }
    }
  }
  return all;
}

Session::Session(Plan plan) : impl_(std::make_unique<Impl>(std::move(plan))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::add(std::unique_ptr<Adapter> adapter, std::string label, bool of_job) {
  impl_->adapters.push_back({std::move(adapter), std::move(label), of_job, {}});
}
void Session::add(const ToolEntry& entry, std::unique_ptr<Tool> tool) {
  impl_->needs.emplace_back(entry.name, entry.needs);
  impl_->tools.add(entry, std::move(tool));
}
void Session::add(std::unique_ptr<Recorder> recorder, bool filtered) {
  impl_->outputs.push_back({std::move(recorder), filtered});
}
void Session::filter(Filter filter) { impl_->wanted = std::move(filter); }
void Session::batch_size(std::size_t events) {
  impl_->batch_events = std::max<std::size_t>(events, 1);
}

Status Session::start() { return impl_->start(); }
Result<bool> Session::pump() { return impl_->pump(); }
Result<Document> Session::finish() { return impl_->finish(); }
const Dictionary& Session::dictionary() const { return impl_->names; }
Severity Session::worst() const {
  Severity worst = Severity::kNote;
  for (const Problems& problems : impl_->all_problems()) worst = std::max(worst, problems.worst());
  return worst;
}

}  // namespace pasta
