#include "adapters/kineto_json/kineto_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/common/foreign_json.h"
#include "adapters/kineto_json/document.h"
#include "adapters/kineto_json/places.h"
#include "adapters/kineto_json/record.h"
#include "adapters/kineto_json/record_taker.h"
#include "base/json_reader.h"
#include "correlate/assembler.h"

namespace pasta::adapters::kineto_json {
namespace {

using base::JsonReader;
using base::JsonType;
using base::RecordOutcome;
using correlate::Assembler;

// Reads the document and hands its records on.
class KinetoJson final : public Adapter {
 public:
  explicit KinetoJson(Input input)
      : path_(std::move(input.path)), stream_(std::move(input.stream)) {}

  [[nodiscard]] const AdapterInfo& info() const override { return kInfo; }
  Status start(const Plan& plan, EventSink& sink) override;
  Result<bool> pump() override;
  Status stop() override { return {}; }

 private:
  enum class Step : std::uint8_t { kOpen, kMembers, kEvents, kEmit, kEnded };

  Status open_document();
  Status read_members();
  Status read_events();
  Status finish_reading();
  Status refuse_other_json(std::span<const std::string> members) const;
  Status emit();
  Error in_file(Error error) const {
    return {error.code, fmt::format("{}: {}", path_, error.message)};
  }

  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  EventSink* sink_ = nullptr;
  Problems problems_;
  std::unique_ptr<JsonReader> reader_;
  std::unique_ptr<Assembler> assembler_;
  std::unique_ptr<Places> places_;
  std::unique_ptr<RecordTaker> taker_;
  DocumentFacts facts_;
  Record record_;
  Step step_ = Step::kOpen;
  bool array_form_ = false;
  bool events_seen_ = false;  // the member traceEvents, or the array itself
};

Status KinetoJson::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  JsonReader::Options options;
  options.strict = plan.strict;
  options.on_problem = [this](const base::JsonProblem& problem) {
    problems_.add(problem.reason,
                  [&] { return fmt::format("byte {}: {}", problem.offset, problem.text); });
  };
  reader_ = std::make_unique<JsonReader>(*stream_, std::move(options));
  assembler_ = std::make_unique<Assembler>(
      sink.dictionary(), problems_,
      Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes, .scratch = plan.scratch});
  places_ = std::make_unique<Places>(sink.dictionary(), path_);
  taker_ = std::make_unique<RecordTaker>(sink.dictionary(), problems_, *places_, *assembler_,
                                         plan.strict);
  return {};
}

Result<bool> KinetoJson::pump() {
  Status status;
  switch (step_) {
    case Step::kOpen:
      status = open_document();
      break;
    case Step::kMembers:
      status = read_members();
      break;
    case Step::kEvents:
      status = read_events();
      break;
    case Step::kEmit:
      status = emit();
      break;
    case Step::kEnded:
      break;
  }
  if (!status) return tl::unexpected(in_file(std::move(status).error()));
  return step_ != Step::kEnded;
}

Status KinetoJson::open_document() {
  auto type = reader_->open();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type != JsonType::kObject && *type != JsonType::kArray) {
    return fail(ErrorCode::kBadInput, "not a trace: this JSON is neither an object nor an array");
  }
  array_form_ = events_seen_ = *type == JsonType::kArray;
  step_ = array_form_ ? Step::kEvents : Step::kMembers;
  return {};
}

Status KinetoJson::read_members() {
  std::string key;
  for (;;) {
    auto more = reader_->next_member(key);
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) return finish_reading();
    if (key != "traceEvents") {
      PASTA_TRY(read_member(*reader_, key, sink_->dictionary(), *places_, facts_));
      continue;
    }
    auto type = reader_->type();
    if (!type) return tl::unexpected(std::move(type).error());
    if (*type != JsonType::kArray) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("byte {}: traceEvents is not an array", reader_->offset()));
    }
    PASTA_TRY(reader_->enter());
    events_seen_ = true;
    step_ = Step::kEvents;
    return {};
  }
}

Status KinetoJson::read_events() {
  constexpr int kRecordsAtOnce = 4096;  // bounded, so that several files can be read in turns
  for (int i = 0; i < kRecordsAtOnce; ++i) {
    auto more = reader_->next_element();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) {
      if (array_form_) return finish_reading();
      step_ = Step::kMembers;
      return {};
    }
    const std::uint64_t offset = reader_->offset();
    auto outcome =
        reader_->record([this](base::JsonCursor& cursor) { read_record(cursor, record_); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (*outcome == RecordOutcome::kRead) PASTA_TRY(taker_->take(record_, offset));
  }
  return {};
}

Status KinetoJson::refuse_other_json(std::span<const std::string> members) const {
  if (const auto kind = recognise_foreign_json(members)) {
    return fail(ErrorCode::kUnsupported, fmt::format("this is {}", *kind));
  }
  if (taker_->other_records() > 0) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("JSON, but not a trace: none of its {} records has a phase (\"ph\")",
                            taker_->other_records()));
  }
  constexpr std::size_t kShown = 3;
  const auto shown = members.first(std::min(members.size(), kShown));
  return fail(ErrorCode::kUnsupported,
              fmt::format("JSON, but not a trace: there is no \"traceEvents\" in it{}",
                          shown.empty() ? std::string()
                                        : fmt::format(", but \"{}\"", fmt::join(shown, "\", \""))));
}

Status KinetoJson::finish_reading() {
  if (!events_seen_) {
    if (reader_->truncated()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("ends at byte {}, before any trace event", reader_->offset()));
    }
    return refuse_other_json(facts_.members);
  }
  if (!taker_->any_phase() && taker_->other_records() > 0) {
    return refuse_other_json({&taker_->other_begins(), 1});
  }
  if (!facts_.unreadable_base.empty()) {
    problems_.add(Reason::kUnreadableNumber, 1,
                  fmt::format("baseTimeNanoseconds is \"{}\"",
                              std::string_view(facts_.unreadable_base).substr(0, 40)));
  }
  PASTA_TRY(taker_->finish());
  places_->apply_names(taker_->any_events());
  if (facts_.rank == kUnknownRank && facts_.launcher_rank != kUnknownRank) {
    facts_.rank = facts_.launcher_rank;
    if (facts_.world_size == 0) facts_.world_size = facts_.launcher_size;
  }
  if (facts_.rank != kUnknownRank) {
    places_->set_rank(facts_.rank, facts_.world_size);
  } else if (facts_.has_devices && places_->any_queue()) {
    problems_.add(Reason::kRankUnknown, 1, "no rank in distributedInfo");
  }
  PASTA_TRY(assembler_->finish(facts_.base_ns.value_or(0)));

  // Before baseTimeNanoseconds, times were since 1970 themselves; times of uptime are smaller.
  constexpr std::int64_t kYear2001Ns = 1'000'000'000'000'000'000;
  SourceInfo info;
  info.path = path_;
  info.format = kInfo.name;
  info.rank = facts_.rank;
  info.world_size = facts_.world_size;
  info.first_ns = assembler_->first_ns();
  info.absolute_clock = facts_.base_ns.has_value() || info.first_ns >= kYear2001Ns;
  sink_->describe(info);
  step_ = Step::kEmit;
  return {};
}

Status KinetoJson::emit() {
  auto more = assembler_->emit(*sink_, std::size_t{1} << 16);
  if (!more) return tl::unexpected(std::move(more).error());
  if (*more) return {};
  for (const Problem& problem : problems_.list()) sink_->report(problem);
  step_ = Step::kEnded;
  return {};
}

// Whether the quoted `name` stands before a colon.
bool has_member(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
    at += name.size();
    const std::size_t next = text.find_first_not_of(" \t\r\n", at);
    if (next != text.npos && text[next] == ':') return true;
  }
  return false;
}

}  // namespace

bool sniff(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

bool confirm(ByteStream& stream) {
  constexpr std::size_t kStep = std::size_t{64} << 10;
  constexpr std::size_t kLimit = std::size_t{16} << 20;
  // A word may lie across two steps, and begins anew with the end of the step before.
  constexpr std::size_t kOverlap = 64;
  std::string text;
  bool is_array = false;
  for (std::size_t read = 0; read < kLimit;) {
    text.erase(0, text.size() - std::min(text.size(), kOverlap));
    const std::size_t kept = text.size();
    text.resize(kept + kStep);
    const auto got = stream.read(std::as_writable_bytes(std::span(text)).subspan(kept));
    if (!got) return true;  // that it cannot be read is said by who reads it
    text.resize(kept + *got);
    if (read == 0) {
      const std::size_t first = text.find_first_of("{[");
      is_array = first != text.npos && text[first] == '[';
    }
    if (has_member(text, "\"traceEvents\"")) return true;
    if (is_array && has_member(text, "\"ph\"")) return true;
    if (*got < kStep) return false;
    read += *got;
  }
  return false;
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  return std::make_unique<KinetoJson>(std::move(input));
}

}  // namespace pasta::adapters::kineto_json
