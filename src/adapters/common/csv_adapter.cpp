#include "adapters/common/csv_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "adapters/common/emit.h"
#include "base/decimal.h"
#include "base/utf8.h"

namespace pasta::adapters::common {
namespace {

constexpr int kRowsAtOnce = 4096;  // bounded: several files are read in turns

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

void make_untimed(Event& event) {
  event.start_ns = event.end_ns = kNoTime;
  event.flags |= kUntimed;
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

void CsvColumns::set_header(std::span<const std::string_view> header) {
  size_ = header.size();
  places_.assign(known_.size(), kNone);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const auto at = std::find_if(header.begin(), header.end(), [&](std::string_view name) {
      return same_letters(name, known_[i]);
    });
    if (at != header.end()) places_[i] = static_cast<std::size_t>(at - header.begin());
  }
}

CsvAdapter::CsvAdapter(const AdapterInfo& info, std::string path, std::vector<Input> inputs,
                       std::string_view comment)
    : info_(info), path_(std::move(path)), inputs_(std::move(inputs)), comment_(comment) {
  for (Input& input : inputs_) input.head = {};  // valid only while opening
}

std::string CsvAdapter::where(std::uint64_t line) const {
  return inputs_.size() == 1
             ? fmt::format("line {}: ", line)
             : fmt::format("{} line {}: ",
                           std::filesystem::path(inputs_[file_].path).filename().string(), line);
}

void CsvAdapter::refuse(Reason reason, const std::string& place) {
  if (!refused_) return;  // the first
  refused_ = fail(ErrorCode::kBadInput, fmt::format("{}: {}", place, reason_info(reason).help));
}

Status CsvAdapter::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  strict_ = plan.strict;
  assembler_ = std::make_unique<correlate::Assembler>(
      sink.dictionary(), problems_,
      correlate::Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes,
                                    .scratch = plan.scratch});
  assembler_->drop_launch_flows();
  prepare();
  return {};
}

Result<bool> CsvAdapter::pump() {
  if (Status status = step(); !status) {
    Error& error = status.error();
    return fail(error.code, fmt::format("{}: {}", path_, error.message));
  }
  return step_ != Step::kEnded;
}

Status CsvAdapter::step() {
  switch (step_) {
    case Step::kOpen: {
      base::CsvReader::Options options;
      options.comment = comment_;
      options.on_comment = [this](std::string_view line) { take_comment(line); };
      options.on_problem = [this](const base::CsvProblem& problem) {
        const auto place = [&] { return where(problem.line) + std::string(problem.text); };
        problems_.add(problem.reason, place);
        if (strict_ && reason_info(problem.reason).severity > Severity::kNote) {
          refuse(problem.reason, place());
        }
      };
      reader_ = std::make_unique<base::CsvReader>(*inputs_[file_].stream, std::move(options));
      step_ = Step::kRows;
      return open_file(file_);
    }
    case Step::kRows:
      return read_rows();
    case Step::kEmit:
      return emit();
    case Step::kEnded:
      break;
  }
  return {};
}

Status CsvAdapter::read_rows() {
  for (int i = 0; i < kRowsAtOnce; ++i) {
    auto more = reader_->next();
    if (!more) return tl::unexpected(std::move(more).error());
    if (*more) PASTA_TRY(take(reader_->fields()));
    if (!refused_) return refused_;
    if (*more) continue;
    PASTA_TRY(close_file());
    step_ = Step::kOpen;
    return ++file_ < inputs_.size() ? Status() : finish();
  }
  return {};
}

Status CsvAdapter::finish() {
  file_ = inputs_.size() - 1;
  SourceInfo source;
  source.path = path_;
  source.format = info_.name;
  PASTA_TRY(complete(source));
  PASTA_TRY(assembler_->finish());
  source.first_ns = assembler_->first_ns();
  source.absolute_clock = since_1970(source.first_ns);
  sink_->describe(source);
  step_ = Step::kEmit;
  return {};
}

Status CsvAdapter::emit() {
  auto more = emit_events(*assembler_, problems_, *sink_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) step_ = Step::kEnded;
  return {};
}

// --- of the row at hand

bool CsvAdapter::fits(Row row, const CsvColumns& columns) {
  if (row.size() == columns.size()) return true;
  note(Reason::kRecordSkipped, [&] {
    return fmt::format("{} fields where the header has {}", row.size(), columns.size());
  });
  return false;
}

void CsvAdapter::set_times(Event& event, std::string_view start, std::string_view end) {
  const auto detail = [&] {
    return fmt::format("\"{}\" from \"{}\" to \"{}\"", dictionary().text(event.name),
                       start.substr(0, 40), end.substr(0, 40));
  };
  const auto untimed = [&](Reason reason) {
    make_untimed(event);
    note(reason, detail);
  };
  const auto status = std::max(base::parse_decimal(start, 0, event.start_ns),
                               base::parse_decimal(end, 0, event.end_ns));
  if (start.empty() || end.empty()) return untimed(Reason::kUntimed);
  if (status == base::DecimalStatus::kOutOfRange) return untimed(Reason::kTimeOutOfRange);
  if (status == base::DecimalStatus::kInvalid) return untimed(Reason::kUnreadableNumber);
  if (status == base::DecimalStatus::kCut) note(Reason::kSubNanosecond, detail);
  // A profiler that lost a time writes 0.
  if (event.start_ns == 0 || event.end_ns == 0) return untimed(Reason::kUntimed);
  if (event.end_ns < event.start_ns) return untimed(Reason::kNegativeDuration);
}

std::optional<std::uint64_t> CsvAdapter::number(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  if (base::parse_unsigned(text, value)) return value;
  if (!text.empty()) {
    note(Reason::kUnreadableNumber,
         [&] { return fmt::format("{} is \"{}\"", what, text.substr(0, 40)); });
  }
  return std::nullopt;
}

std::uint32_t CsvAdapter::small(std::string_view text, std::string_view what) {
  const std::uint64_t known = number(text, what).value_or(0);
  return known <= 0xFFFFFFFF ? static_cast<std::uint32_t>(known) : 0;
}

std::uint64_t CsvAdapter::correlation(ProcessId process, std::string_view text) {
  const std::uint64_t id = number(text, "the correlation").value_or(0);
  if (id > kMaxVendorCorrelation) {
    note(Reason::kCorrelationRange, [&] { return fmt::format("correlation {}", id); });
    return 0;
  }
  return make_correlation(process, id);
}

void CsvAdapter::not_recorded(std::string_view kinds) {
  if (kinds.empty()) return;
  const auto count = static_cast<std::uint64_t>(std::count(kinds.begin(), kinds.end(), ',')) + 1;
  problems_.add(Reason::kNotRecorded, count, kinds);
}

StringId CsvAdapter::text(std::string_view text) {
  const StringId id = dictionary().string(text);
  if (id.value >= checked_texts_.size()) checked_texts_.resize(2 * std::size_t{id.value} + 1);
  if (!checked_texts_[id.value] && base::utf8_valid_prefix(text) != text.size()) {
    problems_.add(Reason::kInvalidUtf8,
                  [&] { return where(reader_->line()) + "a name that is not UTF-8"; });
  }
  checked_texts_[id.value] = true;
  return id;
}

}  // namespace pasta::adapters::common
