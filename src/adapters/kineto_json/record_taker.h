// Records become events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/kineto_json/dialect.h"
#include "adapters/kineto_json/places.h"
#include "adapters/kineto_json/range_pairing.h"
#include "adapters/kineto_json/record.h"
#include "adapters/kineto_json/vocabulary.h"
#include "correlate/assembler.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::adapters::kineto_json {

// Makes events of the records of one file, in file order.
class RecordTaker {
 public:
  RecordTaker(Dictionary& dictionary, Problems& problems, Places& places,
              correlate::Assembler& assembler, bool strict)
      : dictionary_(dictionary),
        problems_(problems),
        places_(places),
        assembler_(assembler),
        strict_(strict) {}

  // `offset`: where the record stands, for messages. In strict mode a fault of the record is an
  // error; the message says the place but not the file. `record` may be rewritten.
  Status take(Record& record, std::uint64_t offset);
  // After the last record: ends what is open.
  Status finish();

  [[nodiscard]] bool any_phase() const { return records_ != 0; }
  [[nodiscard]] bool any_events() const { return records_ > metadata_records_; }
  [[nodiscard]] std::uint64_t other_records() const { return other_records_; }
  // What the first of them begins with: the name of a member.
  [[nodiscard]] const std::string& other_begins() const { return other_begins_; }

 private:
  struct Times {
    std::int64_t start_ns = kNoTime;
    std::int64_t end_ns = kNoTime;
    [[nodiscard]] bool usable() const { return start_ns != kNoTime; }
  };

  Status take_phase(const Record& record);
  Status take_complete(const Record& record);
  Status take_begin(const Record& record);
  Status take_end(const Record& record);
  Status take_async(const Record& record);
  Status take_instant(const Record& record);
  Status take_memory(const Record& record);
  Status take_counters(const Record& record);
  Status take_metadata(const Record& record);
  Status take_flow(const Record& record);

  Result<std::int64_t> time(std::string_view text, std::string_view what);  // kNoTime: none
  Result<Times> range(const Record& record);
  Result<Times> instant(const Record& record);
  void place(Event& event, const Times& times);
  Status add_closed(RangePairing::Closed closed, bool first_ended);
  // Moved or set; kUnknownBytes when the record does not say.
  Result<std::uint64_t> bytes(const Record& record);
  Result<std::uint64_t> correlation(const Record& record);
  void fill_kernel(Event& event, const Record& record);
  Status set_path_of_xla(Event& event, const Record& record);
  void fill_scope(Event& event, const Record& record);
  StringId arguments(const Record& record);
  const Category& category(const Record& record);

  // Counts a problem of the record at hand; `detail` makes its text.
  template <class Detail>
  Status note(Reason reason, Detail&& detail);

  Dictionary& dictionary_;
  Problems& problems_;
  Places& places_;
  correlate::Assembler& assembler_;
  bool strict_;
  std::uint64_t offset_ = 0;
  std::uint64_t records_ = 0;  // with a phase
  std::uint64_t metadata_records_ = 0;
  std::uint64_t other_records_ = 0;
  std::string other_begins_;
  std::int64_t last_end_ns_ = kNoTime;
  bool launch_flows_wanted_ = true;
  RangePairing open_;
  Dialect dialect_;
  Dialect::Verdict verdict_ = Dialect::Verdict::kTake;
  std::vector<std::pair<std::string, Event>> undecided_;
  std::unordered_map<std::string, std::uint64_t> unknown_categories_;
  std::string scratch_;
};

}  // namespace pasta::adapters::kineto_json
