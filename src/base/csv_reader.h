// Reads comma-separated values (RFC 4180) row by row, in bounded memory.
//
// Quoted fields may hold commas, doubled quotes and line ends; rows end with LF or CRLF. What is
// malformed costs as little as possible and is reported with its line: after a quote that is never
// closed, reading goes on in the line below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::base {

struct CsvProblem {
  Reason reason;
  std::uint64_t line;     // counted from 1
  std::string_view text;  // valid during the call
};

class CsvReader {
 public:
  struct Options {
    std::size_t window_bytes = std::size_t{256} << 10;
    // A longer row is skipped. A quote still open at this length counts as never closed.
    std::size_t max_row_bytes = std::size_t{1} << 20;
    // Lines that begin with this text, where a row could, are no rows.
    std::string_view comment = {};
    std::function<void(std::string_view line)> on_comment = {};
    std::function<void(const CsvProblem&)> on_problem = {};
  };
  // `stream` outlives the reader.
  explicit CsvReader(ByteStream& stream, Options options);

  // Goes to the next row; false at the end. Blank lines are passed over. Errors: those of `stream`.
  Result<bool> next();
  // The fields of the row, valid until next(). Never empty after next() gave true.
  [[nodiscard]] std::span<const std::string_view> fields() const { return fields_; }
  // Where the row begins, counted from 1.
  [[nodiscard]] std::uint64_t line() const { return row_line_; }

 private:
  enum class Row : std::uint8_t { kWhole, kOpen, kOpenQuote };  // kOpen: the window ends in it

  Status fill();
  Row scan(char* from);
  void close_row(char* from);
  void skip_line(char* from, Reason reason, std::string_view why);
  Status skip_long_line();
  void problem(Reason reason, std::uint64_t line, std::string_view text) const;

  ByteStream& stream_;
  Options options_;
  std::vector<char> window_;  // of which [begin_, end_) is filled, and a line end follows
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;  // nothing comes after what is in the window
  bool started_ = false;
  bool damage_told_ = false;
  bool zeros_ = false;      // some byte up to here is 0
  std::uint64_t line_ = 1;  // at begin_
  std::uint64_t row_line_ = 1;
  char* row_end_ = nullptr;  // behind the line end of the row that scan() has seen
  bool quoted_ = false;      // the row has quoted fields
  bool ragged_ = false;      // text behind a closing quote
  std::vector<std::string_view> fields_;
  std::vector<std::size_t> doubled_;  // fields with doubled quotes
};

// Up to `rows` rows from the front of a file, for telling formats apart. The last may be cut.
std::vector<std::vector<std::string>> csv_head(std::span<const std::byte> head, std::size_t rows,
                                               std::string_view comment = {});

}  // namespace pasta::base
