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
#include "adapters/common/json_adapter.h"
#include "adapters/kineto_json/document.h"
#include "adapters/kineto_json/places.h"
#include "adapters/kineto_json/record.h"
#include "adapters/kineto_json/record_taker.h"
#include "base/json_reader.h"

namespace pasta::adapters::kineto_json {
namespace {

using base::JsonType;
using base::RecordOutcome;

class KinetoJson final : public common::JsonAdapter {
 public:
  explicit KinetoJson(Input input) : JsonAdapter(kInfo, std::move(input)) {}

 private:
  void prepare() override;
  Status begin(JsonType type) override;
  Result<bool> read() override { return in_events_ ? read_events() : read_members(); }
  Result<std::int64_t> document_end() override;
  void complete(SourceInfo& info) override;

  Result<bool> read_members();
  Result<bool> read_events();
  Status refuse_other_json(std::span<const std::string> members) const;

  std::unique_ptr<Places> places_;
  std::unique_ptr<RecordTaker> taker_;
  DocumentFacts facts_;
  Record record_;
  bool array_form_ = false;
  bool in_events_ = false;
  bool events_seen_ = false;  // the member traceEvents, or the array itself
};

void KinetoJson::prepare() {
  places_ = std::make_unique<Places>(dictionary(), path());
  taker_ =
      std::make_unique<RecordTaker>(dictionary(), problems(), *places_, assembler(), plan().strict);
}

Status KinetoJson::begin(JsonType type) {
  if (type != JsonType::kObject && type != JsonType::kArray) {
    return fail(ErrorCode::kBadInput, "not a trace: this JSON is neither an object nor an array");
  }
  array_form_ = events_seen_ = in_events_ = type == JsonType::kArray;
  return {};
}

Result<bool> KinetoJson::read_members() {
  std::string key;
  for (;;) {
    auto more = reader().next_member(key);
    if (!more || !*more) return more;
    if (key != "traceEvents") {
      PASTA_TRY(read_member(reader(), key, dictionary(), *places_, facts_));
      continue;
    }
    auto type = reader().type();
    if (!type) return tl::unexpected(std::move(type).error());
    if (*type != JsonType::kArray) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("byte {}: traceEvents is not an array", reader().offset()));
    }
    PASTA_TRY(reader().enter());
    events_seen_ = in_events_ = true;
    return true;
  }
}

Result<bool> KinetoJson::read_events() {
  constexpr int kRecordsAtOnce = 4096;
  for (int i = 0; i < kRecordsAtOnce; ++i) {
    auto more = reader().next_element();
    if (!more) return more;
    if (!*more) {
      in_events_ = false;
      return !array_form_;
    }
    const std::uint64_t offset = reader().offset();
    auto outcome =
        reader().record([this](base::JsonCursor& cursor) { read_record(cursor, record_); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (*outcome == RecordOutcome::kRead) PASTA_TRY(taker_->take(record_, offset));
  }
  return true;
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

Result<std::int64_t> KinetoJson::document_end() {
  if (!events_seen_) {
    if (reader().truncated()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("ends at byte {}, before any trace event", reader().offset()));
    }
    return tl::unexpected(refuse_other_json(facts_.members).error());
  }
  if (!taker_->any_phase() && taker_->other_records() > 0) {
    return tl::unexpected(refuse_other_json({&taker_->other_begins(), 1}).error());
  }
  if (!facts_.unreadable_base.empty()) {
    problems().add(Reason::kUnreadableNumber, 1,
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
    problems().add(Reason::kRankUnknown, 1, "no rank in distributedInfo");
  }
  return facts_.base_ns.value_or(0);
}

void KinetoJson::complete(SourceInfo& info) {
  info.rank = facts_.rank;
  info.world_size = facts_.world_size;
  // Before baseTimeNanoseconds, times were since 1970 themselves.
  info.absolute_clock |= facts_.base_ns.has_value();
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
