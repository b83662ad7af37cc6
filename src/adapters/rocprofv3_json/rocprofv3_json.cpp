#include "adapters/rocprofv3_json/rocprofv3_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/common/json_adapter.h"
#include "adapters/rocprofv3_json/names.h"
#include "adapters/rocprofv3_json/process_taker.h"
#include "adapters/rocprofv3_json/record.h"
#include "base/json_reader.h"

namespace pasta::adapters::rocprofv3_json {
namespace {

using base::JsonType;
using base::RecordOutcome;

constexpr std::string_view kTopKey = "rocprofiler-sdk-tool";

// Walks the document, each container on its own Level:
//   {"rocprofiler-sdk-tool": [ {"agents": [...], "buffer_records": {"hip_api": [...]}} ]}
//   kDocument                  kProcess          kGroup              kTable
class Rocprofv3Json final : public common::JsonAdapter {
 public:
  explicit Rocprofv3Json(Input input) : JsonAdapter(kInfo, std::move(input)) {}

 private:
  enum class Level : std::uint8_t { kDocument, kProcesses, kProcess, kGroup, kTable };

  Status begin(JsonType /*type*/) override { return {}; }
  Result<bool> read() override;
  Result<std::int64_t> document_end() override;
  void complete(SourceInfo& info) override;

  Result<bool> read_document();
  Status read_processes();
  Status read_process();
  Status read_group();
  Status read_table();
  Status enter_process();
  Status enter_table(std::string_view key);

  std::unique_ptr<ProcessTaker> process_;
  std::uint64_t processes_ = 0;
  bool one_process_ = false;  // there is no array around it
  std::string group_;         // the member of the process that is being read; empty: none
  Table table_ = Table::kOther;
  std::string table_name_;
  std::string key_;
  Record record_{};
  std::vector<CounterSum> counters_;
  Level level_ = Level::kDocument;
};

Result<bool> Rocprofv3Json::read() {
  switch (level_) {
    case Level::kDocument:
      return read_document();
    case Level::kProcesses:
      PASTA_TRY(read_processes());
      break;
    case Level::kProcess:
      PASTA_TRY(read_process());
      break;
    case Level::kGroup:
      PASTA_TRY(read_group());
      break;
    case Level::kTable:
      PASTA_TRY(read_table());
      break;
  }
  return true;
}

Result<bool> Rocprofv3Json::read_document() {
  auto more = reader().next_member(key_);
  if (!more || !*more) return more;
  if (key_ != kTopKey) {
    PASTA_TRY(reader().skip());
    return true;
  }
  auto type = reader().type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject) {
    one_process_ = true;
    PASTA_TRY(enter_process());
  } else if (*type == JsonType::kArray) {
    level_ = Level::kProcesses;
    PASTA_TRY(reader().enter());
  } else {
    PASTA_TRY(reader().skip());
  }
  return true;
}

Status Rocprofv3Json::read_processes() {
  auto more = reader().next_element();
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    level_ = Level::kDocument;
    return {};
  }
  auto type = reader().type();
  if (!type) return tl::unexpected(std::move(type).error());
  return *type == JsonType::kObject ? enter_process() : reader().skip();
}

Status Rocprofv3Json::enter_process() {
  process_ =
      std::make_unique<ProcessTaker>(ProcessTaker::Shared{.dictionary = dictionary(),
                                                          .problems = problems(),
                                                          .assembler = assembler(),
                                                          .source = dictionary().string(path()),
                                                          .strict = plan().strict,
                                                          .scratch = plan().scratch},
                                     ++processes_);
  level_ = Level::kProcess;
  return reader().enter();
}

Status Rocprofv3Json::read_process() {
  auto more = reader().next_member(key_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    PASTA_TRY(process_->finish());
    process_.reset();
    level_ = one_process_ ? Level::kDocument : Level::kProcesses;
    return {};
  }
  group_.clear();
  if (key_ == "metadata") {
    Metadata metadata;
    auto outcome =
        reader().record([&](base::JsonCursor& cursor) { metadata = read_metadata(cursor); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    process_->add(metadata);
    return {};
  }
  auto type = reader().type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject &&
      (key_ == "strings" || key_ == "buffer_records" || key_ == "callback_records")) {
    group_ = key_;
    level_ = Level::kGroup;
    return reader().enter();
  }
  return find_table(group_, key_) != Table::kOther ? enter_table(key_) : reader().skip();
}

Status Rocprofv3Json::read_group() {
  auto more = reader().next_member(key_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) {
    level_ = Level::kProcess;
    return {};
  }
  const bool of_records = group_ != "strings";
  return of_records || find_table(group_, key_) != Table::kOther ? enter_table(key_)
                                                                 : reader().skip();
}

Status Rocprofv3Json::enter_table(std::string_view key) {
  table_ = find_table(group_, key);
  table_name_ = key;
  process_->met(table_);
  auto type = reader().type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type != JsonType::kArray) return reader().skip();
  level_ = Level::kTable;
  return reader().enter();
}

Status Rocprofv3Json::read_table() {
  constexpr int kRecordsAtOnce = 4096;
  for (int i = 0; i < kRecordsAtOnce; ++i) {
    auto more = reader().next_element();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) {
      level_ = group_.empty() ? Level::kProcess : Level::kGroup;
      return {};
    }
    const std::uint64_t offset = reader().offset();
    if (table_ == Table::kOther) {
      problems().add(Reason::kNotAnEvent, [&] {
        return fmt::format("byte {}: a record of \"{}\", which is not read", offset, table_name_);
      });
      PASTA_TRY(reader().skip());
      continue;
    }
    if (table_ <= Table::kKernelSymbols) {
      Name name;
      auto outcome =
          reader().record([&](base::JsonCursor& cursor) { name = read_name(cursor, table_); });
      if (!outcome) return tl::unexpected(std::move(outcome).error());
      // Also of a damaged one: the others are numbered by their places.
      process_->add(table_, name);
      continue;
    }
    auto outcome = reader().record(
        [this](base::JsonCursor& cursor) { read_record(cursor, record_, counters_); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (*outcome != RecordOutcome::kRead) continue;
    record_.table = table_;
    record_.offset = offset;
    PASTA_TRY(process_->take(record_, counters_));
  }
  return {};
}

Result<std::int64_t> Rocprofv3Json::document_end() {
  if (processes_ == 0) {
    return fail(ErrorCode::kBadInput, fmt::format("ends at byte {}, before any process in \"{}\"",
                                                  reader().offset(), kTopKey));
  }
  return 0;
}

// Times are since the machine was started.
void Rocprofv3Json::complete(SourceInfo& info) { info.absolute_clock = false; }

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
