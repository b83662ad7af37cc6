// The session through its public door, with sources and tools made for the purpose.
#include "pasta/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

namespace pasta {
namespace {

struct Script {
  SourceInfo info;
  // What each pump() does; the source ends after the last.
  std::vector<std::function<Status(EventSink&)>> steps;
  bool live = false;
  KindSet provides = KindSet::all();
};

class FakeAdapter final : public Adapter {
 public:
  explicit FakeAdapter(Script script)
      : script_(std::move(script)), info_{"fake", "", script_.provides, script_.live} {}
  const AdapterInfo& info() const override { return info_; }
  Status start(const Plan&, EventSink& sink) override {
    sink_ = &sink;
    return {};
  }
  Result<bool> pump() override {
    if (next_ == 0) sink_->describe(script_.info);
    if (next_ < script_.steps.size()) {
      PASTA_TRY(script_.steps[next_++](*sink_));
    }
    return next_ < script_.steps.size();
  }
  Status stop() override { return {}; }

 private:
  Script script_;
  AdapterInfo info_;
  EventSink* sink_ = nullptr;
  std::size_t next_ = 0;
};

Event event(Kind kind, std::int64_t start, std::int64_t end, std::uint32_t lane = 0,
            std::uint64_t correlation = 0) {
  Event e{};
  e.kind = kind;
  e.start_ns = start;
  e.end_ns = end;
  e.lane = {lane};
  e.correlation = correlation;
  return e;
}

Script source(std::string path, std::vector<Event> events, std::int32_t rank = -1) {
  Script script;
  script.info.path = std::move(path);
  script.info.format = "fake";
  script.info.rank = rank;
  script.info.absolute_clock = true;
  script.info.first_ns = kNoTime;
  for (const Event& e : events) {
    if (e.untimed()) continue;
    if (script.info.first_ns == kNoTime || e.start_ns < script.info.first_ns) {
      script.info.first_ns = e.start_ns;
    }
  }
  script.steps.push_back([events = std::move(events)](EventSink& sink) -> Status {
    sink.push(events);
    return {};
  });
  return script;
}

// Remembers all it was given.
struct Log {
  std::vector<Event> events;
  std::vector<std::size_t> spans;
  std::int64_t origin = 0;
  std::vector<std::string> blobs;
};

class LogTool final : public Tool {
 public:
  explicit LogTool(Log& log) : log_(&log) {}
  Status consume(std::span<const Event> events, const Context& context) override {
    log_->events.insert(log_->events.end(), events.begin(), events.end());
    log_->spans.push_back(events.size());
    log_->origin = context.origin_ns();
    for (const Event& e : events) {
      if (e.kind != Kind::kDevice) continue;
      const auto bytes = context.blob(e.device.blob);
      log_->blobs.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return {};
  }
  Result<Report> finish(const Context& context) override {
    Report report{"log", "", {}};
    Table devices{"devices", "", {{"device"}}, {}};
    for (std::uint32_t id = 1; id < context.dictionary().device_count(); ++id) {
      devices.rows.push_back({context.device_label({id})});
    }
    report.parts.emplace_back(std::move(devices));
    return report;
  }

 private:
  Log* log_;
};

ToolEntry entry_of(KindSet kinds, std::string_view name = "log") {
  return {name, "", kinds, {}, nullptr};
}

struct Outcome {
  Document document;
  std::vector<std::string> errors;
  Severity worst{};
};

struct Job {
  std::vector<Script> scripts = {};
  std::vector<std::string> labels = {};
  KindSet kinds = KindSet::all();
  Filter filter = {};
  std::size_t batch = 0;
};

Result<Outcome> run(const Job& job, Log& log) {
  Session session;
  for (std::size_t i = 0; i < job.scripts.size(); ++i) {
    session.add(std::make_unique<FakeAdapter>(job.scripts[i]),
                job.labels.empty() ? "" : job.labels[i]);
  }
  session.add(entry_of(job.kinds), std::make_unique<LogTool>(log));
  session.filter(job.filter);
  if (job.batch != 0) session.batch_size(job.batch);
  PASTA_TRY(session.start());
  Outcome outcome;
  for (;;) {
    auto more = session.pump();
    if (!more) {
      outcome.errors.push_back(more.error().message);
    } else if (!*more) {
      break;
    }
  }
  auto document = session.finish();
  if (!document) return tl::unexpected(document.error());
  outcome.document = *document;
  outcome.worst = session.worst();
  return outcome;
}

std::vector<std::int64_t> starts(const Log& log) {
  std::vector<std::int64_t> values;
  for (const Event& e : log.events) values.push_back(e.start_ns);
  return values;
}

const TraceSummary::ProblemRow* problem(const Document& document, std::string_view reason) {
  for (const auto& row : document.trace.problems) {
    if (row.reason == reason) return &row;
  }
  return nullptr;
}

using Values = std::vector<std::int64_t>;

TEST(Session, MergesByEndThenSourceThenArrival) {
  Log log;
  // The start tells the events apart; ends tie across and within sources.
  const auto outcome =
      run({.scripts = {source("a", {event(Kind::kApi, 1, 10), event(Kind::kApi, 2, 20),
                                    event(Kind::kApi, 3, 20), event(Kind::kApi, 4, 40)}),
                       source("b", {event(Kind::kApi, 5, 5), event(Kind::kApi, 6, 20),
                                    event(Kind::kApi, 7, 30)})}},
          log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{5, 1, 2, 3, 6, 7, 4}));
}

TEST(Session, OrderDoesNotDependOnHowSourcesAreCutIntoPushes) {
  std::vector<Event> a, b;
  for (int i = 0; i < 300; ++i) a.push_back(event(Kind::kApi, i, i / 7 * 7 + 7));
  for (int i = 0; i < 300; ++i) b.push_back(event(Kind::kApi, 1000 + i, i / 5 * 5 + 5));
  Log whole;
  ASSERT_TRUE(run({.scripts = {source("a", a), source("b", b)}}, whole));

  const auto cut = [](std::string path, const std::vector<Event>& events, std::size_t size) {
    Script script = source(std::move(path), events);
    script.steps.clear();
    for (std::size_t i = 0; i < events.size(); i += size) {
      const auto end = std::min(i + size, events.size());
      script.steps.push_back(
          [part = std::vector(events.begin() + static_cast<std::ptrdiff_t>(i),
                              events.begin() + static_cast<std::ptrdiff_t>(end))](
              EventSink& sink) -> Status {
            sink.push(part);
            return {};
          });
    }
    return script;
  };
  for (const std::size_t size : {1u, 3u, 64u}) {
    Log log;
    ASSERT_TRUE(run({.scripts = {cut("a", a, size), cut("b", b, 7)}, .batch = size}, log));
    EXPECT_EQ(starts(log), starts(whole)) << size;
    for (const std::size_t span : log.spans) EXPECT_LE(span, size);
  }
}

TEST(Session, UntimedEventsOfAllSourcesComeFirst) {
  Event untimed = event(Kind::kKernel, kNoTime, kNoTime);
  untimed.flags = kUntimed;
  Log log;
  const auto outcome = run({.scripts = {source("a", {event(Kind::kApi, 1, 2)}),
                                        source("b", {untimed, event(Kind::kApi, 0, 1)})}},
                           log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{kNoTime, 0, 1}));
  EXPECT_EQ(outcome->document.trace.untimed, 1);
}

TEST(Session, AnswersDoNotDependOnTheBatchSize) {
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) {
    events.push_back(event(i % 3 == 0 ? Kind::kKernel : Kind::kApi, i - 3, i, 1 + i % 2, 7));
    if (i % 10 == 0) events.push_back(events.back());
  }
  Job job{.scripts = {source("a", events)}, .kinds = Kind::kKernel, .batch = 1};
  Log one, many;
  const auto by_one = run(job, one);
  job.batch = 1024;
  const auto by_many = run(job, many);
  ASSERT_TRUE(by_one && by_many);
  EXPECT_EQ(by_one->document, by_many->document);
  EXPECT_EQ(problem(by_one->document, "duplicate")->count, 10);
  EXPECT_NE(problem(by_one->document, "queue_overlap"), nullptr);
  ASSERT_EQ(one.events.size(), many.events.size());
  EXPECT_EQ(0, std::memcmp(one.events.data(), many.events.data(), one.events.size() * 64));
  EXPECT_EQ(one.spans, std::vector<std::size_t>(one.events.size(), 1));
}

TEST(Session, AToolSeesTheSameAloneAndBesideOthers) {
  std::vector<Event> events;
  for (int i = 0; i < 50; ++i) {
    events.push_back(event(static_cast<Kind>(i % 11), i, i + 1, 1));
  }
  Log alone;
  ASSERT_TRUE(run({.scripts = {source("a", events)}, .kinds = Kind::kKernel | Kind::kCopy}, alone));
  EXPECT_EQ(alone.events.size(), 10u);
  for (const Event& e : alone.events) {
    EXPECT_TRUE(e.kind == Kind::kKernel || e.kind == Kind::kCopy);
  }

  Session session;
  session.add(std::make_unique<FakeAdapter>(source("a", events)));
  Log beside, same, all, none;
  session.add(entry_of(Kind::kKernel | Kind::kCopy), std::make_unique<LogTool>(beside));
  session.add(entry_of(KindSet::all()), std::make_unique<LogTool>(all));
  session.add(entry_of(Kind::kCopy | Kind::kKernel), std::make_unique<LogTool>(same));
  session.add(entry_of(KindSet()), std::make_unique<LogTool>(none));
  ASSERT_TRUE(session.start());
  while (session.pump().value()) {
  }
  ASSERT_TRUE(session.finish());
  EXPECT_EQ(starts(beside), starts(alone));
  EXPECT_EQ(starts(same), starts(alone));
  EXPECT_EQ(all.events.size(), events.size());
  EXPECT_TRUE(none.events.empty());
}

TEST(Session, LateEventsAreCountedAndDropped) {
  const std::vector<Event> events = {event(Kind::kApi, 1, 10), event(Kind::kApi, 2, 9),
                                     event(Kind::kApi, 3, 10), event(Kind::kApi, 4, 3),
                                     event(Kind::kApi, 5, 11)};
  for (const bool alone : {true, false}) {
    Job job{.scripts = {source("a", events)}};
    if (!alone) job.scripts.push_back(source("b", {}));
    Log log;
    const auto outcome = run(job, log);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(starts(log), (Values{1, 3, 5}));
    const auto* late = problem(outcome->document, "late");
    ASSERT_NE(late, nullptr);
    EXPECT_EQ(late->count, 2);
    EXPECT_EQ(late->source, "a");
    EXPECT_EQ(late->first, "api \"\" that ends at 9 ns");
    EXPECT_EQ(outcome->document.trace.lost, 2);
    EXPECT_EQ(outcome->worst, Severity::kDropped);
    EXPECT_EQ(outcome->document.trace.events,
              (std::vector<std::pair<std::string, std::int64_t>>{{"api", 3}}));
  }
}

TEST(Session, APromisedTimeMakesEarlierEventsLateAndLetsOthersPass) {
  Script quiet;
  quiet.info.path = "quiet";
  quiet.info.absolute_clock = true;
  quiet.steps = {[](EventSink& sink) -> Status {
                   sink.advance(15);
                   return {};
                 },
                 [](EventSink& sink) -> Status {
                   const Event e = event(Kind::kApi, 9, 14);
                   sink.push({&e, 1});
                   return {};
                 }};
  Log log;
  const auto outcome = run({.scripts = {quiet, source("a", {event(Kind::kApi, 1, 14)})}}, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{1}));
  EXPECT_EQ(problem(outcome->document, "late")->source, "quiet");
}

TEST(Session, ToolsThatNoSourceCanServeAreRefusedByName) {
  Session session;
  Script script = source("a", {});
  script.provides = Kind::kKernel | Kind::kCopy;
  session.add(std::make_unique<FakeAdapter>(script));
  Log log;
  session.add(entry_of(Kind::kKernel | Kind::kAlloc, "memory"), std::make_unique<LogTool>(log));
  const Status status = session.start();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message,
            "tool memory needs events of kind alloc, which cannot come from fake (kernel, copy)");
}

TEST(Session, AToolIsServedByAllSourcesTogether) {
  Session session;
  Script kernels = source("a", {}), copies = source("b", {});
  kernels.provides = Kind::kKernel;
  copies.provides = Kind::kCopy;
  session.add(std::make_unique<FakeAdapter>(kernels));
  session.add(std::make_unique<FakeAdapter>(copies));
  Log log;
  session.add(entry_of(Kind::kKernel | Kind::kCopy), std::make_unique<LogTool>(log));
  EXPECT_TRUE(session.start());
}

TEST(Session, SameRankIsRefusedUnlessLabelled) {
  Job job{.scripts = {source("x/a.json", {event(Kind::kApi, 1, 2)}, 0),
                      source("x/b.json", {event(Kind::kApi, 1, 2)}, 0)}};
  Log log;
  const auto refused = run(job, log);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message,
            "x/a.json and x/b.json both say they are rank 0; if they are different runs, tell them "
            "apart with one --label for each file");
  EXPECT_TRUE(log.events.empty());

  job.labels = {"before", "after"};
  const auto told_apart = run(job, log);
  ASSERT_TRUE(told_apart);
  EXPECT_EQ(told_apart->document.trace.sources[0].label, "before");
  EXPECT_EQ(told_apart->document.trace.sources[1].label, "after");
  EXPECT_EQ(log.events.size(), 2u);

  job.labels = {"same", "same"};
  EXPECT_FALSE(run(job, log));
}

// A file that others were merged into: the events of `parts` in turns.
Script merged(std::string path, const std::vector<Script>& parts,
              const std::vector<std::pair<std::size_t, Event>>& events) {
  Script script = source(path + ":" + parts[0].info.path, {});
  script.info = parts[0].info;
  script.steps = {[parts, events](EventSink& sink) -> Status {
    std::vector<EventSink*> sinks = {&sink};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      sinks.push_back(&sink.add_source(parts[i].info));
    }
    const std::string bytes = "patched";
    for (const auto& [part, event] : events) {
      if (event.kind == Kind::kDevice) {
        sinks[part]->push(event, std::as_bytes(std::span(bytes)));
      } else {
        sinks[part]->push({&event, 1});
      }
    }
    return {};
  }};
  return script;
}

TEST(Session, AFileOfSeveralSourcesIsSeveralSources) {
  const std::vector<Event> e = {event(Kind::kApi, 1, 2), event(Kind::kApi, 3, 4),
                                event(Kind::kDevice, 5, 6), event(Kind::kApi, 7, 8)};
  const std::vector<Script> parts = {source("a", {e[1]}, 0), source("b", {e[0]}, 1)};
  const Script file = merged("m", parts, {{1, e[0]}, {0, e[1]}, {1, e[2]}, {0, e[3]}});
  Log log;
  const auto alone = run({.scripts = {file}}, log);
  ASSERT_TRUE(alone);
  EXPECT_EQ(starts(log), (Values{1, 3, 5, 7}));
  EXPECT_EQ(log.blobs, (std::vector<std::string>{"patched"}));
  const auto& sources = alone->document.trace.sources;
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].label, "rank 0");
  EXPECT_EQ(sources[1].label, "rank 1");
  EXPECT_EQ(sources[1].events.size(), 2u) << "api and device";

  Log both;
  const auto beside = run({.scripts = {file, source("c", {event(Kind::kApi, 4, 5)}, 2)}}, both);
  ASSERT_TRUE(beside);
  EXPECT_EQ(starts(both), (Values{1, 3, 4, 5, 7}));
  ASSERT_EQ(beside->document.trace.sources.size(), 3u);
  EXPECT_EQ(beside->document.trace.sources[1].label, "rank 1") << "files keep their order";

  const auto labelled = run({.scripts = {file, source("c", {}, 1)}, .labels = {"x", "y"}}, both);
  ASSERT_TRUE(labelled);
  EXPECT_EQ(labelled->document.trace.sources[1].label, "x rank 1");
  EXPECT_EQ(labelled->document.trace.sources[2].label, "y");
  EXPECT_FALSE(run({.scripts = {file, source("c", {}, 1)}}, both)) << "rank 1 twice";
}

TEST(Session, ARankThatOnlyTheNameTellsCountsWhereThereAreSeveral) {
  Job job{.scripts = {source("x/rank7.json", {event(Kind::kApi, 1, 2)}),
                      source("x/rank8.json", {event(Kind::kApi, 3, 4)})}};
  job.filter.ranks = {8};
  Log log;
  const auto outcome = run(job, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{3}));
  EXPECT_EQ(outcome->document.trace.sources[0].label, "rank 7");
  Log one;
  const auto alone = run({.scripts = {source("x/rank7.json", {})}}, one);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->document.trace.sources[0].rank, Cell{});
}

TEST(Session, TheSameFileTwiceIsRefused) {
  Log log;
  const auto outcome = run({.scripts = {source("a", {}), source("a", {})}}, log);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "a is given twice; give each file once");
}

TEST(Session, SourcesAreLabelledByRankOrFileNameOrPath) {
  Log log;
  const auto outcome = run({.scripts = {source("x/t.json", {}), source("y/t.json", {}),
                                        source("x/u.json", {}), source("x/v.json", {}, 3)}},
                           log);
  ASSERT_TRUE(outcome);
  std::vector<std::string> labels = {};
  for (const auto& s : outcome->document.trace.sources) labels.push_back(s.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"x/t.json", "y/t.json", "u.json", "rank 3"}));
}

TEST(Session, ASourceWithoutAbsoluteClockIsNotedAndTheSpanUnknown) {
  Script relative = source("r", {event(Kind::kApi, 100, 200)});
  relative.info.absolute_clock = false;
  const Script absolute = source("a", {event(Kind::kApi, 1'000'000, 1'000'100)});
  Log log;
  const auto both = run({.scripts = {relative, absolute}}, log);
  ASSERT_TRUE(both);
  const auto* note = problem(both->document, "clock_unaligned");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->source, "r");
  EXPECT_EQ(note->severity, "note");
  EXPECT_EQ(both->document.trace.span_ns, Cell{});

  const auto one = run({.scripts = {relative}}, log);
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->document.trace.problems.empty());
  EXPECT_EQ(one->document.trace.span_ns, Cell{std::int64_t{100}});
}

TEST(Session, RelativeTimesCountFromEachStartWhereClocksDisagree) {
  Script relative = source("r", {event(Kind::kApi, 100, 101), event(Kind::kApi, 150, 151)});
  relative.info.absolute_clock = false;
  const Script absolute =
      source("a", {event(Kind::kApi, 9000, 9001), event(Kind::kApi, 9050, 9051)});
  Job job{.scripts = {relative, absolute}};
  job.filter.from_ns = 50;
  Log log;
  ASSERT_TRUE(run(job, log));
  EXPECT_EQ(starts(log), (Values{150, 9050}));
}

TEST(Session, TimeFilterIsHalfOpenAndByStart) {
  Event untimed = event(Kind::kApi, kNoTime, kNoTime);
  untimed.flags = kUntimed;
  Job job{.scripts = {
              source("a", {untimed, event(Kind::kApi, 1000, 1005), event(Kind::kApi, 1010, 1011),
                           event(Kind::kApi, 1020, 1021), event(Kind::kApi, 1009, 1030)})}};
  job.filter.from_ns = 10;
  job.filter.to_ns = 20;
  Log log;
  const auto outcome = run(job, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{1010}));
  EXPECT_EQ(log.origin, 1000);
  EXPECT_EQ(outcome->document.trace.filter,
            "events that start from 10 ns before 20 ns after the start");
  EXPECT_EQ(outcome->document.trace.events,
            (std::vector<std::pair<std::string, std::int64_t>>{{"api", 5}}))
      << "the quality of a trace does not depend on what one looks at";

  job.filter.relative = false;
  job.filter.from_ns = 1009;
  job.filter.to_ns = 1010;
  Log absolute;
  ASSERT_TRUE(run(job, absolute));
  EXPECT_EQ(starts(absolute), (Values{1009}));
}

// Two processes (ranks when `ranked`) with a device 0 each, one kernel on each, one call on a
// thread of the first.
Script two_devices(bool ranked, DeviceId (*device_of)(Dictionary&, ProcessId, int)) {
  Script script = source("a", {event(Kind::kApi, 0, 1)});
  script.steps = {[=](EventSink& sink) -> Status {
    Dictionary& names = sink.dictionary();
    std::vector<Event> events;
    for (int i = 0; i < 2; ++i) {
      const ProcessId process = names.process({.native_id = 100u + static_cast<unsigned>(i)});
      if (ranked) names.update(process, {.rank = i});
      const DeviceId device = device_of(names, process, i);
      const LaneId thread = names.lane({.process = process, .native_id = 1});
      const LaneId queue = names.lane(
          {.type = LaneType::kQueue, .process = process, .device = device, .native_id = 7});
      if (i == 0) events.push_back(event(Kind::kApi, 1, 2, thread.value));
      events.push_back(event(Kind::kKernel, 10 + i, 11 + i, queue.value));
      Event alloc = event(Kind::kAlloc, 20 + i, 20 + i, thread.value);
      alloc.memory.device = device;
      events.push_back(alloc);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.end_ns < b.end_ns; });
    sink.push(events);
    return {};
  }};
  return script;
}
DeviceId own_device(Dictionary& names, ProcessId process, int) {
  return names.device({.process = process, .ordinal = 0, .type = DeviceType::kGpu});
}
DeviceId shared_numbering(Dictionary& names, ProcessId, int i) {
  return names.device(
      {.ordinal = static_cast<std::uint32_t>(i), .uuid = names.string(i == 0 ? "GPU-a" : "GPU-b")});
}

std::vector<std::string> device_labels(const Outcome& outcome) {
  std::vector<std::string> labels = {};
  for (const auto& device : outcome.document.trace.devices) labels.push_back(device.id);
  std::vector<std::string> in_tool;
  for (const auto& row : std::get<Table>(outcome.document.reports[0].parts[0]).rows) {
    in_tool.push_back(std::get<std::string>(row[0]));
  }
  EXPECT_EQ(labels, in_tool);
  return labels;
}

TEST(Session, DevicesAreLabelledByProcessOnlyWhereSeveralHaveSome) {
  using Labels = std::vector<std::string>;
  Log log;
  EXPECT_EQ(device_labels(*run({.scripts = {two_devices(true, own_device)}}, log)),
            (Labels{"rank 0 gpu 0", "rank 1 gpu 0"}));
  EXPECT_EQ(device_labels(*run({.scripts = {two_devices(false, own_device)}}, log)),
            (Labels{"process 100 gpu 0", "process 101 gpu 0"}));

  Script one = source("b", {});
  one.steps = {[](EventSink& sink) -> Status {
    Dictionary& names = sink.dictionary();
    const ProcessId process = names.process({.native_id = 1});
    const DeviceId device = names.device({.process = process, .ordinal = 3});
    const Event e =
        event(Kind::kKernel, 1, 2,
              names.lane({.type = LaneType::kQueue, .process = process, .device = device}).value);
    sink.push({&e, 1});
    return {};
  }};
  EXPECT_EQ(device_labels(*run({.scripts = {one}}, log)), (Labels{"3"}));
  Job beside{.scripts = {one, source("c", {event(Kind::kApi, 1, 2)})}};
  EXPECT_EQ(device_labels(*run(beside, log)), (Labels{"3"}));

  // A CPU has numbers of its own, and takes none from a GPU.
  one.steps.insert(one.steps.begin(), [](EventSink& sink) -> Status {
    sink.dictionary().device({.ordinal = 3, .type = DeviceType::kCpu});
    return {};
  });
  const auto outcome = run({.scripts = {one}}, log);
  const auto& rows = std::get<Table>(outcome->document.reports[0].parts[0]).rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(std::get<std::string>(rows[0][0]), "cpu 3");
  EXPECT_EQ(std::get<std::string>(rows[1][0]), "3");
}

TEST(Session, DeviceFilterLeavesOutTheWorkOfOthersAndKeepsTheHost) {
  Job job{.scripts = {two_devices(true, own_device)}};
  job.filter.devices = {"rank 1 gpu 0"};
  Log log;
  const auto outcome = run(job, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(starts(log), (Values{1, 11, 21}));
  EXPECT_EQ(outcome->document.trace.filter, "device rank 1 gpu 0");

  job.filter.devices = {"0"};
  Log both;
  ASSERT_TRUE(run(job, both));
  EXPECT_EQ(starts(both), (Values{1, 10, 11, 20, 21}));

  job.scripts = {two_devices(true, shared_numbering)};
  job.filter.devices = {"GPU-b"};
  Log by_uuid;
  ASSERT_TRUE(run(job, by_uuid));
  EXPECT_EQ(starts(by_uuid), (Values{1, 11, 21}));
}

TEST(Session, AFilterForWhatIsNotThereIsRefused) {
  Job job{.scripts = {two_devices(true, own_device)}};
  job.filter.devices = {"0", "7"};
  Log log;
  auto outcome = run(job, log);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kUsage);
  EXPECT_NE(outcome.error().message.find("no work of device \"7\""), std::string::npos);

  job.filter.devices.clear();
  job.filter.ranks = {5};
  outcome = run(job, log);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "no events of rank 5; ranks with events: 0, 1");
}

TEST(Session, RankFilterUsesTheProcessElseTheSource) {
  Job job{.scripts = {two_devices(true, own_device)}};
  job.filter.ranks = {1};
  Log log;
  ASSERT_TRUE(run(job, log));
  EXPECT_EQ(starts(log), (Values{11, 21}));

  job.scripts = {source("a", {event(Kind::kApi, 1, 2)}, 0),
                 source("b", {event(Kind::kApi, 3, 4)}, 1)};
  Log by_source;
  ASSERT_TRUE(run(job, by_source));
  EXPECT_EQ(starts(by_source), (Values{3}));

  job.scripts = {source("a", {event(Kind::kApi, 1, 2)})};
  job.filter.ranks = {0};
  Log unsaid;
  EXPECT_TRUE(run(job, unsaid));
}

TEST(Session, AnErrorKeepsWhatWasReadAndOtherSourcesGoOn) {
  const auto broken = [] {
    Script script = source("broken", {event(Kind::kApi, 1, 2)});
    script.steps.push_back(
        [](EventSink&) -> Status { return fail(ErrorCode::kIo, "broken: read failed"); });
    return script;
  }();
  for (const bool alone : {true, false}) {
    Job job{.scripts = {broken}};
    if (!alone) {
      job.scripts.push_back(source("whole", {event(Kind::kApi, 3, 4), event(Kind::kApi, 5, 6)}));
    }
    Log log;
    const auto outcome = run(job, log);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->errors, std::vector<std::string>{"broken: read failed"});
    EXPECT_EQ(starts(log), alone ? (Values{1}) : (Values{1, 3, 5}));
    const auto* cut = problem(outcome->document, "truncated");
    ASSERT_NE(cut, nullptr);
    EXPECT_EQ(cut->first, "broken: read failed");
    EXPECT_EQ(outcome->worst, Severity::kDropped);
  }
}

class FailingTool final : public Tool {
 public:
  explicit FailingTool(int* calls) : calls_(calls) {}
  Status consume(std::span<const Event>, const Context&) override {
    ++*calls_;
    return fail(ErrorCode::kUnsupported, "too much");
  }
  Result<Report> finish(const Context&) override { return Report{}; }

 private:
  int* calls_;
};

TEST(Session, AToolThatFailsFailsTheAnswerByNameAndIsNotAskedAgain) {
  for (const int sources : {1, 2}) {
    Session session;
    for (int i = 0; i < sources; ++i) {
      session.add(std::make_unique<FakeAdapter>(
          source(std::to_string(i), {event(Kind::kApi, 1, 2), event(Kind::kApi, 3, 4)})));
    }
    int calls = 0;
    session.add(entry_of(KindSet::all(), "picky"), std::make_unique<FailingTool>(&calls));
    session.batch_size(1);
    ASSERT_TRUE(session.start());
    std::vector<std::string> errors;
    for (;;) {
      const auto more = session.pump();
      if (!more) errors.push_back(more.error().message);
      if (more && !*more) break;
    }
    EXPECT_EQ(errors, std::vector<std::string>{"tool picky: too much"});
    EXPECT_EQ(calls, 1);
    const auto document = session.finish();
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().message, "tool picky: too much");
  }
}

TEST(Session, BlobsAreThereWhileTheirEventIs) {
  Script script = source("a", {});
  script.steps = {[](EventSink& sink) -> Status {
    for (const std::string text : {"first", "second"}) {
      sink.push(event(Kind::kDevice, 1, 1), std::as_bytes(std::span(text)));
    }
    return {};
  }};
  for (const bool alone : {true, false}) {
    Job job{.scripts = {script}};
    if (!alone) job.scripts.push_back(source("b", {}));
    Log log;
    ASSERT_TRUE(run(job, log));
    EXPECT_EQ(log.blobs, (std::vector<std::string>{"first", "second"}));
  }
}

TEST(Session, WithoutEventsNothingIsKnown) {
  Log log;
  const auto outcome = run({.scripts = {source("a", {})}}, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->document.trace.span_ns, Cell{});
  EXPECT_EQ(outcome->document.trace.kernels_linked, Cell{});
  EXPECT_EQ(outcome->document.trace.sources.size(), 1u);
  EXPECT_TRUE(outcome->document.trace.events.empty());
  EXPECT_EQ(outcome->worst, Severity::kNote);
}

TEST(Session, DeviceAnnotationsDoNotStretchTheSpan) {
  Event annotation = event(Kind::kScope, 0, 1000);
  annotation.flags = kAnnotation;
  Log log;
  const auto outcome =
      run({.scripts = {source("a", {event(Kind::kKernel, 10, 40), annotation})}}, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->document.trace.span_ns, Cell{std::int64_t{30}});
}

TEST(Session, LinkedShareIsOfAllKernels) {
  Event linked = event(Kind::kKernel, 1, 2);
  linked.flags = kLinked;
  Log log;
  const auto outcome =
      run({.scripts = {source("a", {linked, event(Kind::kKernel, 3, 4), event(Kind::kApi, 4, 5)})}},
          log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->document.trace.kernels_linked, Cell{0.5});
}

TEST(Session, WhatTheCollectorDroppedIsLost) {
  Event gap = event(Kind::kGap, 5, 6);
  gap.gap.lost = 40;
  Log log;
  const auto outcome = run({.scripts = {source("a", {gap})}}, log);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->document.trace.lost, 40);
  EXPECT_EQ(outcome->worst, Severity::kDropped);
}

TEST(Session, ProblemsComeWorstFirstThenMostFirst) {
  Script script = source("a", {});
  script.steps = {[](EventSink& sink) -> Status {
    sink.report({Reason::kQueueOverlap, 9, ""});
    sink.report({Reason::kCommaRepaired, 1, ""});
    sink.report({Reason::kRecordSkipped, 1, "byte 3"});
    sink.report({Reason::kUntimed, 12, ""});
    sink.report({Reason::kRecordSkipped, 1, "byte 9"});
    return {};
  }};
  Log log;
  const auto outcome = run({.scripts = {script}}, log);
  ASSERT_TRUE(outcome);
  std::vector<std::string> reasons;
  for (const auto& row : outcome->document.trace.problems) reasons.push_back(row.reason);
  EXPECT_EQ(reasons, (std::vector<std::string>{"record_skipped", "comma_repaired", "untimed",
                                               "queue_overlap"}));
  EXPECT_EQ(outcome->document.trace.problems[0].count, 2);
  EXPECT_EQ(outcome->document.trace.problems[0].first, "byte 3");
}

class LogRecorder final : public Recorder {
 public:
  explicit LogRecorder(std::vector<std::string>& log) : log_(&log) {}
  Status begin(const Dictionary&) override { return note("begin"); }
  Status record(std::span<const Event> events) override {
    for (const Event& e : events) log_->push_back("event " + std::to_string(e.start_ns));
    return {};
  }
  Status record_blob(BlobId, std::span<const std::byte> bytes) override {
    return note("blob of " + std::to_string(bytes.size()));
  }
  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> problems) override {
    return note("end of " + sources[0].path + " with " + std::to_string(problems[0].size()));
  }

 private:
  Status note(std::string text) {
    log_->push_back(std::move(text));
    return {};
  }
  std::vector<std::string>* log_;
};

TEST(Session, RecordersGetEverythingOrWhatPasses) {
  Script script = source("a", {event(Kind::kApi, 1, 2), event(Kind::kApi, 3, 4)});
  script.steps.push_back([](EventSink& sink) -> Status {
    sink.push(event(Kind::kDevice, 5, 6), std::as_bytes(std::span("abc", 3)));
    sink.report({Reason::kUntimed, 1, ""});
    return {};
  });
  Session session;
  session.add(std::make_unique<FakeAdapter>(script));
  std::vector<std::string> all, passing;
  session.add(std::make_unique<LogRecorder>(all));
  session.add(std::make_unique<LogRecorder>(passing), true);
  Filter filter = {};
  filter.from_ns = 3;
  filter.relative = false;
  session.filter(filter);
  ASSERT_TRUE(session.start());
  while (session.pump().value()) {
  }
  ASSERT_TRUE(session.finish());
  EXPECT_EQ(all, (std::vector<std::string>{"begin", "event 1", "event 3", "blob of 3", "event 5",
                                           "end of a with 1"}));
  EXPECT_EQ(passing, (std::vector<std::string>{"begin", "event 3", "blob of 3", "event 5",
                                               "end of a with 1"}));
}

// A live source pushes from threads of its own; nothing is lost or torn.
TEST(Session, LiveSourcesMayPushFromTheirOwnThreads) {
  constexpr int kEvents = 20'000;
  Script script = source("a", {});
  script.live = true;
  auto thread = std::make_shared<std::thread>();
  script.steps = {[=](EventSink& sink) -> Status {
                    *thread = std::thread([&sink] {
                      for (int i = 0; i < kEvents; ++i) {
                        const Event e = event(Kind::kApi, i, i);
                        sink.push({&e, 1});
                      }
                    });
                    return {};
                  },
                  [=](EventSink&) -> Status {
                    thread->join();
                    return {};
                  }};
  Log log;
  ASSERT_TRUE(run({.scripts = {script}}, log));
  ASSERT_EQ(log.events.size(), static_cast<std::size_t>(kEvents));
  for (int i = 0; i < kEvents; ++i) ASSERT_EQ(log.events[static_cast<std::size_t>(i)].start_ns, i);
}

}  // namespace
}  // namespace pasta
