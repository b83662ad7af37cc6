#include "base/csv_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/input.h"

namespace pasta::base {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr std::uint64_t repeated(char c) {
  return 0x0101010101010101u * static_cast<unsigned char>(c);
}

// The highest bit of each zero byte, and perhaps of bytes above one: the lowest is right.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - repeated('\1')) & ~word & repeated('\x80');
}

// The first comma or line end. There is one, and a word may be read beyond it.
char* find_delimiter(char* at) {
  static_assert(std::endian::native == std::endian::little);
  for (;; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, kWord);
    const std::uint64_t found =
        zero_bytes(word ^ repeated(',')) | zero_bytes(word ^ repeated('\n'));
    if (found != 0) return at + std::countr_zero(found) / 8;
  }
}

// Null when there is none before `end`. Most quoted fields are numbers, for which a call of
// memchr() would be most of the work.
char* find_quote(char* at, char* end) {
  constexpr int kWords = 2;
  for (int i = 0; i < kWords && end - at >= static_cast<std::ptrdiff_t>(kWord); ++i, at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, kWord);
    const std::uint64_t found = zero_bytes(word ^ repeated('"'));
    if (found != 0) return at + std::countr_zero(found) / 8;
  }
  return static_cast<char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
}

char* without_return(const char* begin, char* end) {
  return end > begin && end[-1] == '\r' ? end - 1 : end;
}

std::string_view view(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// In place: the text is not longer afterwards.
std::string_view undouble(char* begin, std::size_t size) {
  char* to = begin;
  for (std::size_t i = 0; i < size; ++i) {
    *to++ = begin[i];
    if (begin[i] == '"') ++i;
  }
  return view(begin, to);
}

}  // namespace

CsvReader::CsvReader(ByteStream& stream, Options options)
    : stream_(stream), options_(std::move(options)) {
  options_.window_bytes = std::max<std::size_t>(options_.window_bytes, 16);
  options_.max_row_bytes = std::max(options_.max_row_bytes, options_.window_bytes);
  window_.resize(options_.window_bytes + kWord);
}

void CsvReader::problem(Reason reason, std::uint64_t line, std::string_view text) const {
  if (options_.on_problem) options_.on_problem({reason, line, text});
}

// Moves what is left to the front and reads behind it.
Status CsvReader::fill() {
  const std::size_t kept = end_ - begin_;
  if (begin_ > 0) {
    std::memmove(window_.data(), window_.data() + begin_, kept);
  } else if (kept + kWord == window_.size()) {
    window_.resize(std::min(2 * kept, options_.max_row_bytes) + kWord);
  }
  begin_ = 0;
  end_ = kept;
  const std::size_t room = window_.size() - kWord - kept;
  auto got = stream_.read(std::as_writable_bytes(std::span(window_).subspan(kept, room)));
  if (!got) return tl::unexpected(std::move(got).error());
  // Of the few files that have any, each row is asked.
  zeros_ = zeros_ || std::memchr(window_.data() + end_, 0, *got) != nullptr;
  end_ += *got;
  ended_ = *got < room;
  window_[end_] = '\n';  // where find_delimiter() stops
  if (!started_ && view(window_.data(), window_.data() + end_).starts_with(kByteOrderMark)) {
    begin_ = kByteOrderMark.size();
  }
  started_ = true;
  return {};
}

CsvReader::Row CsvReader::scan(char* from) {
  char* const end = window_.data() + end_;
  fields_.clear();
  doubled_.clear();
  quoted_ = ragged_ = false;
  char* at = from;
  for (;;) {
    char* const begin = at;
    char* stop = nullptr;
    if (*at == '"' && at < end) {
      quoted_ = true;
      bool doubled = false;
      char* quote = find_quote(at + 1, end);
      while (quote != nullptr && quote + 1 < end && quote[1] == '"') {
        doubled = true;
        quote = find_quote(quote + 2, end);
      }
      if (quote == nullptr) return Row::kOpenQuote;
      // The sentinel behind the window is a line end, which the file need not have.
      if (quote + 1 == end && !ended_) return Row::kOpen;
      stop = quote[1] == ',' ? quote + 1 : find_delimiter(quote + 1);
      if (stop == quote + 1 || (*stop == '\n' && without_return(quote + 1, stop) == quote + 1)) {
        if (doubled) doubled_.push_back(fields_.size());
        fields_.push_back(view(begin + 1, quote));
      } else {
        ragged_ = true;
        fields_.push_back(view(begin, *stop == '\n' ? without_return(begin, stop) : stop));
      }
    } else {
      stop = find_delimiter(at);
      fields_.push_back(view(begin, *stop == '\n' ? without_return(begin, stop) : stop));
    }
    if (stop >= end && !ended_) return Row::kOpen;
    at = stop + 1;
    if (*stop == '\n') {
      row_end_ = std::min(at, end);
      return Row::kWhole;
    }
  }
}

void CsvReader::close_row(char* from) {
  row_line_ = line_;
  begin_ = static_cast<std::size_t>(row_end_ - window_.data());
  const std::string_view row = view(from, row_end_);
  // The last byte is the line end of the row; where it is not, nothing follows.
  ++line_;
  for (std::size_t at = row.find('\n'); at < row.size() - 1; at = row.find('\n', at + 1)) ++line_;
  if (zeros_ && std::memchr(row.data(), 0, row.size()) != nullptr) {
    problem(Reason::kControlCharacter, row_line_, "a zero byte");
  }
  if (ragged_) problem(Reason::kEscapeKept, row_line_, "text behind a closing quote");
  for (const std::size_t i : doubled_) {
    char* const begin = window_.data() + (fields_[i].data() - window_.data());
    fields_[i] = undouble(begin, fields_[i].size());
  }
}

// `from` is where a line begins, whose end is in the window or is that of the file.
void CsvReader::skip_line(char* from, Reason reason, std::string_view why) {
  char* const end = window_.data() + end_;
  char* const stop =
      static_cast<char*>(std::memchr(from, '\n', static_cast<std::size_t>(end - from)));
  problem(reason, line_, why);
  ++line_;
  begin_ = stop == nullptr ? end_ : static_cast<std::size_t>(stop + 1 - window_.data());
}

// The line that fills the whole window, and what follows of it.
Status CsvReader::skip_long_line() {
  problem(Reason::kRecordSkipped, line_, "a line that is too long");
  for (;;) {
    char* const from = window_.data() + begin_;
    if (std::memchr(from, '\n', end_ - begin_) != nullptr || ended_) break;
    begin_ = end_;
    PASTA_TRY(fill());
  }
  const auto stop = std::find(window_.begin() + static_cast<std::ptrdiff_t>(begin_),
                              window_.begin() + static_cast<std::ptrdiff_t>(end_), '\n');
  begin_ = std::min(end_, static_cast<std::size_t>(stop - window_.begin()) + 1);
  ++line_;
  return {};
}

Result<bool> CsvReader::next() {
  for (;;) {
    if (begin_ == end_ && !ended_) PASTA_TRY(fill());
    if (begin_ == end_) {
      if (const std::string_view damage = stream_.damage(); !damage.empty() && !damage_told_) {
        damage_told_ = true;
        problem(Reason::kTruncated, line_, damage);
      }
      return false;
    }
    char* const from = window_.data() + begin_;
    const std::size_t left = end_ - begin_;
    const bool full = left == options_.max_row_bytes;
    const std::string_view text = view(from, from + left);
    if (!options_.comment.empty() && left < options_.comment.size() && !ended_) {
      PASTA_TRY(fill());
      continue;
    }
    if (!options_.comment.empty() && text.starts_with(options_.comment)) {
      const std::size_t stop = text.find('\n');
      if (stop == text.npos && !ended_) {
        PASTA_TRY(full ? skip_long_line() : fill());
        continue;
      }
      if (options_.on_comment) {
        options_.on_comment(view(from, without_return(from, from + std::min(stop, left))));
      }
      begin_ = stop == text.npos ? end_ : begin_ + stop + 1;
      ++line_;
      continue;
    }
    const Row row = scan(from);
    if (row == Row::kWhole) {
      if (fields_.size() == 1 && fields_[0].empty() && !quoted_) {  // a blank line
        begin_ = static_cast<std::size_t>(row_end_ - window_.data());
        ++line_;
        continue;
      }
      const bool cut = ended_ && row_end_ == window_.data() + end_ && row_end_[-1] != '\n' &&
                       !stream_.damage().empty();
      if (cut) {  // its last field may lack its last digits
        begin_ = end_;
        continue;
      }
      close_row(from);
      return true;
    }
    if (!ended_ && !full) {
      PASTA_TRY(fill());
      continue;
    }
    const bool has_line_end = text.find('\n') != text.npos;
    if (row == Row::kOpenQuote && has_line_end) {
      skip_line(from, Reason::kRecordSkipped, "a quote that is never closed");
    } else if (ended_) {
      skip_line(from, Reason::kTruncated, "the file ends inside a quoted field");
    } else {
      PASTA_TRY(skip_long_line());
    }
  }
}

std::vector<std::vector<std::string>> csv_head(std::span<const std::byte> head, std::size_t rows,
                                               std::string_view comment) {
  std::vector<std::vector<std::string>> found;
  const auto stream = memory_stream(head);
  CsvReader::Options options;
  options.comment = comment;
  CsvReader reader(*stream, std::move(options));
  while (found.size() < rows) {
    if (const auto more = reader.next(); !more || !*more) break;
    found.emplace_back(reader.fields().begin(), reader.fields().end());
  }
  return found;
}

}  // namespace pasta::base
