#include "adapters/rocprofv3_json/rocprofv3_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/rocprofv3_json/names.h"
#include "adapters/rocprofv3_json/process_taker.h"
#include "adapters/rocprofv3_json/record.h"
#include "base/json_reader.h"
#include "correlate/assembler.h"

namespace pasta::adapters::rocprofv3_json {
namespace {

using base::JsonReader;
using base::JsonType;
using base::RecordOutcome;
using correlate::Assembler;

constexpr std::string_view kTopKey = "rocprofiler-sdk-tool";

// Walks the document, each container on its own level of Step:
//   {"rocprofiler-sdk-tool": [ {"agents": [...], "buffer_records": {"hip_api": [...]}} ]}
//   kDocument                  kProcess          kGroup              kTable
class Rocprofv3Json final : public Adapter {
 public:
  explicit Rocprofv3Json(Input input)
      : path_(std::move(input.path)), stream_(std::move(input.stream)) {}

  [[nodiscard]] const AdapterInfo& info() const override { return kInfo; }
  Status start(const Plan& plan, EventSink& sink) override;
  Result<bool> pump() override;
  Status stop() override { return {}; }

 private:
  enum class Step : std::uint8_t {
    kOpen,
    kDocument,
    kProcesses,
    kProcess,
    kGroup,
    kTable,
    kEmit,
    kEnded
  };

  Status open_document();
  Status read_document();
  Status read_processes();
  Status read_process();
  Status read_group();
  Status read_table();
  Status enter_process();
  Status enter_table(std::string_view key);
  Status finish_reading();
  Status emit();

  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  EventSink* sink_ = nullptr;
  Plan plan_;
  Problems problems_;
  std::unique_ptr<JsonReader> reader_;
  std::unique_ptr<Assembler> assembler_;
  std::unique_ptr<ProcessTaker> process_;
  std::uint64_t processes_ = 0;
  bool one_process_ = false;  // there is no array around it
  std::string group_;         // the member of the process that is being read; empty: none
  Table table_ = Table::kOther;
  std::string table_name_;
  std::string key_;
  Record record_{};
  std::vector<CounterSum> counters_;
  Step step_ = Step::kOpen;
};

Status Rocprofv3Json::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  plan_ = plan;
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
  return {};
}

Result<bool> Rocprofv3Json::pump() {
  Status status;
  switch (step_) {
    case Step::kOpen:
      status = open_document();
      break;
    case Step::kDocument:
      status = read_document();
      break;
    case Step::kProcesses:
      status = read_processes();
      break;
    case Step::kProcess:
      status = read_process();
      break;
    case Step::kGroup:
      status = read_group();
      break;
    case Step::kTable:
      status = read_table();
      break;
    case Step::kEmit:
      status = emit();
      break;
    case Step::kEnded:
      break;
  }
  if (!status) {
    return fail(status.error().code, fmt::format("{}: {}", path_, status.error().message));
  }
  return step_ != Step::kEnded;
}

Status Rocprofv3Json::open_document() {
  auto type = reader_->open();
  if (!type) return tl::unexpected(std::move(type).error());
  step_ = Step::kDocument;
  return {};
}

Status Rocprofv3Json::read_document() {
  auto more = reader_->next_member(key_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) return finish_reading();
  if (key_ != kTopKey) return reader_->skip();
  auto type = reader_->type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject) {
    one_process_ = true;
    return enter_process();
  }
  if (*type != JsonType::kArray) return reader_->skip();
  step_ = Step::kProcesses;
  return reader_->enter();
}

Status Rocprofv3Json::read_processes() {
  auto more = reader_->next_element();
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    step_ = Step::kDocument;
    return {};
  }
  auto type = reader_->type();
  if (!type) return tl::unexpected(std::move(type).error());
  return *type == JsonType::kObject ? enter_process() : reader_->skip();
}

Status Rocprofv3Json::enter_process() {
  process_ = std::make_unique<ProcessTaker>(
      ProcessTaker::Shared{.dictionary = sink_->dictionary(),
                           .problems = problems_,
                           .assembler = *assembler_,
                           .source = sink_->dictionary().string(path_),
                           .strict = plan_.strict,
                           .scratch = plan_.scratch},
      ++processes_);
  step_ = Step::kProcess;
  return reader_->enter();
}

Status Rocprofv3Json::read_process() {
  auto more = reader_->next_member(key_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    PASTA_TRY(process_->finish());
    process_.reset();
    step_ = one_process_ ? Step::kDocument : Step::kProcesses;
    return {};
  }
  group_.clear();
  if (key_ == "metadata") {
    Metadata metadata;
    auto outcome =
        reader_->record([&](base::JsonCursor& cursor) { metadata = read_metadata(cursor); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    process_->add(metadata);
    return {};
  }
  auto type = reader_->type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject &&
      (key_ == "strings" || key_ == "buffer_records" || key_ == "callback_records")) {
    group_ = key_;
    step_ = Step::kGroup;
    return reader_->enter();
  }
  return find_table(group_, key_) != Table::kOther ? enter_table(key_) : reader_->skip();
}

Status Rocprofv3Json::read_group() {
  auto more = reader_->next_member(key_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    step_ = Step::kProcess;
    return {};
  }
  const bool of_records = group_ != "strings";
  return of_records || find_table(group_, key_) != Table::kOther ? enter_table(key_)
                                                                 : reader_->skip();
}

Status Rocprofv3Json::enter_table(std::string_view key) {
  table_ = find_table(group_, key);
  table_name_ = key;
  process_->met(table_);
  auto type = reader_->type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type != JsonType::kArray) return reader_->skip();
  step_ = Step::kTable;
  return reader_->enter();
}

Status Rocprofv3Json::read_table() {
  constexpr int kRecordsAtOnce = 4096;  // bounded, so that several files can be read in turns
  for (int i = 0; i < kRecordsAtOnce; ++i) {
    auto more = reader_->next_element();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) {
      step_ = group_.empty() ? Step::kProcess : Step::kGroup;
      return {};
    }
    const std::uint64_t offset = reader_->offset();
    if (table_ == Table::kOther) {
      problems_.add(Reason::kNotAnEvent, [&] {
        return fmt::format("byte {}: a record of \"{}\", which is not read", offset, table_name_);
      });
      PASTA_TRY(reader_->skip());
      continue;
    }
    if (table_ <= Table::kKernelSymbols) {
      Name name;
      auto outcome =
          reader_->record([&](base::JsonCursor& cursor) { name = read_name(cursor, table_); });
      if (!outcome) return tl::unexpected(std::move(outcome).error());
      // Also of a damaged one: the others are numbered by their places.
      process_->add(table_, name);
      continue;
    }
    auto outcome = reader_->record(
        [this](base::JsonCursor& cursor) { read_record(cursor, record_, counters_); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (*outcome != RecordOutcome::kRead) continue;
    record_.table = table_;
    record_.offset = offset;
    PASTA_TRY(process_->take(record_, counters_));
  }
  return {};
}

Status Rocprofv3Json::finish_reading() {
  if (processes_ == 0) {
    return fail(ErrorCode::kBadInput, fmt::format("ends at byte {}, before any process in \"{}\"",
                                                  reader_->offset(), kTopKey));
  }
  PASTA_TRY(assembler_->finish());
  SourceInfo info;
  info.path = path_;
  info.format = kInfo.name;
  info.first_ns = assembler_->first_ns();
  info.absolute_clock = false;  // times are since the machine was started
  sink_->describe(info);
  step_ = Step::kEmit;
  return {};
}

Status Rocprofv3Json::emit() {
  auto more = assembler_->emit(*sink_, std::size_t{1} << 16);
  if (!more) return tl::unexpected(std::move(more).error());
  if (*more) return {};
  for (const Problem& problem : problems_.list()) sink_->report(problem);
  step_ = Step::kEnded;
  return {};
}

}  // namespace

bool sniff(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  };
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  skip_blanks();
  if (!text.starts_with('{')) return false;
  text.remove_prefix(1);
  skip_blanks();
  return text.starts_with('"') && text.substr(1).starts_with(kTopKey) &&
         text.substr(1 + kTopKey.size()).starts_with('"');
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  return std::make_unique<Rocprofv3Json>(std::move(input));
}

}  // namespace pasta::adapters::rocprofv3_json
