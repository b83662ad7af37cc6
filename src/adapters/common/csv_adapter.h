// What readers of CSV tables share: from rows to the event stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/common/recent_attributes.h"
#include "base/csv_reader.h"
#include "correlate/assembler.h"
#include "pasta/adapter.h"

namespace pasta::adapters::common {

// The columns of a table by the name that they have in its header, in any case of letters.
class CsvColumns {
 public:
  // `known` outlives this object: a column is asked for by its number there.
  explicit CsvColumns(std::span<const std::string_view> known) : known_(known) {}
  void set_header(std::span<const std::string_view> header);
  [[nodiscard]] bool has(std::size_t column) const { return places_[column] != kNone; }
  // "" where the table does not have it. `row` has as many fields as the header.
  [[nodiscard]] std::string_view get(std::span<const std::string_view> row,
                                     std::size_t column) const {
    return has(column) ? row[places_[column]] : std::string_view();
  }
  [[nodiscard]] std::size_t size() const { return size_; }  // of the header

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::span<const std::string_view> known_;
  std::vector<std::size_t> places_;
  std::size_t size_ = 0;
};
bool same_letters(std::string_view a, std::string_view b);  // but for their case

// Reads its inputs one after the other and hands what their rows make on in order. A reader says
// what a row is; this class steps, counts what is wrong with a row, and links.
class CsvAdapter : public Adapter {
 public:
  [[nodiscard]] const AdapterInfo& info() const final { return info_; }
  Status start(const Plan& plan, EventSink& sink) final;
  Result<bool> pump() final;
  Status stop() final { return {}; }

 protected:
  using Row = std::span<const std::string_view>;

  // `path` stands for all inputs in messages and reports. See CsvReader for `comment`.
  CsvAdapter(const AdapterInfo& info, std::string path, std::vector<Input> inputs,
             std::string_view comment = {});

  virtual void prepare() {}                            // before the first row
  virtual Status open_file(std::size_t index) = 0;     // before each file's first row
  virtual Status take(Row row) = 0;                    // each row, the header too
  virtual void take_comment(std::string_view) {}       // the line
  virtual Status close_file() { return {}; }           // after each file's last row
  virtual Status complete(SourceInfo&) { return {}; }  // after the last file

  // --- of the row at hand

  // Counts a problem of it; `detail` makes its text. In strict mode, reading fails after the row.
  template <class Detail>
  void note(Reason reason, Detail&& detail) {
    const auto place = [&] { return where(reader_->line()) + std::string(detail()); };
    problems_.add(reason, place);
    if (strict_ && reason_info(reason).severity > Severity::kNote) refuse(reason, place());
  }
  // Whether it has as many fields as the header; counted when not.
  bool fits(Row row, const CsvColumns& columns);
  // Both times in whole ns, or the event untimed and why counted.
  void set_times(Event& event, std::string_view start, std::string_view end);
  // 0 when there is none, or when it is too large, which is counted.
  std::uint64_t correlation(ProcessId process, std::string_view text);
  // A whole number; nothing when it is "", or none, which is counted.
  std::optional<std::uint64_t> number(std::string_view text, std::string_view what);
  // 0 when unknown or when 32 bits cannot hold it.
  std::uint32_t small(std::string_view text, std::string_view what);
  // The string's id; text that is not UTF-8 is counted when it comes up first.
  StringId text(std::string_view text);
  AttributesId attributes(const LaunchAttributes& a) { return attributes_.id(dictionary(), a); }

  // Of the whole source: kinds of events, separated by ", ", that it leaves out.
  void not_recorded(std::string_view kinds);

  Status add(const Event& event) { return assembler_->add(event); }
  [[nodiscard]] Dictionary& dictionary() const { return sink_->dictionary(); }
  [[nodiscard]] Problems& problems() { return problems_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  enum class Step : std::uint8_t { kOpen, kRows, kEmit, kEnded };

  Status step();
  Status read_rows();
  Status finish();
  Status emit();
  void refuse(Reason reason, const std::string& place);
  [[nodiscard]] std::string where(std::uint64_t line) const;

  const AdapterInfo& info_;
  std::string path_;
  std::vector<Input> inputs_;
  std::string comment_;
  std::size_t file_ = 0;
  EventSink* sink_ = nullptr;
  bool strict_ = false;
  Problems problems_;
  Status refused_;
  std::unique_ptr<base::CsvReader> reader_;
  std::unique_ptr<correlate::Assembler> assembler_;
  Step step_ = Step::kOpen;

  std::vector<bool> checked_texts_;  // by id: whether it was looked at
  RecentAttributes attributes_;
};

}  // namespace pasta::adapters::common
