#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/json_resync.h"
#include "base/json_window.h"
#include "base/utf8.h"

namespace pasta::base {
namespace {

constexpr char kNothing[scan::kPadding] = {};
constexpr std::size_t kExcerptBytes = 32;
// skip() enters the document's value and what lies directly in it, and reads what is deeper as
// records: so a member of any size is passed in little memory.
constexpr std::size_t kStreamedLevels = 2;

// Looks like a number, though perhaps not like one of JSON.
bool begins_like_number(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (!text.empty() && text.front() == '.') text.remove_prefix(1);
  return !text.empty() && scan::is_digit(text.front());
}

bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && scan::is_digit(text[at])) ++at;
    return at - from;
  };
  const auto next_is = [&](char a, char b) {
    if (at == text.size() || (text[at] != a && text[at] != b)) return false;
    ++at;
    return true;
  };
  next_is('-', '-');
  const std::size_t whole = at;
  const std::size_t count = digits();
  if (count == 0 || (count > 1 && text[whole] == '0')) return false;
  if (next_is('.', '.') && digits() == 0) return false;
  if (next_is('e', 'E')) {
    next_is('+', '-');
    if (digits() == 0) return false;
  }
  return at == text.size();
}

bool is_readable_number(std::string_view text) {
  std::int64_t value = 0;
  return parse_decimal(text, 0, value) != DecimalStatus::kInvalid;
}

JsonType word_type(std::string_view word) {
  if (word == "true") return JsonType::kTrue;
  if (word == "false") return JsonType::kFalse;
  if (word == "null") return JsonType::kNull;
  return begins_like_number(word) ? JsonType::kNumber : JsonType::kAbsent;
}

// The end of a number or of a bare word.
const char* word_end(const char* p) {
  while (!scan::ends_scalar(*p) && !scan::is_control(*p) && *p != '"' && *p != ':' && *p != '{' &&
         *p != '[') {
    ++p;
  }
  return p;
}

// Whether two elements without a comma between them are just that, and not the two sides of an
// unescaped quote.
bool only_comma_missing(const char* behind, const char* next) {
  if (*next == '{' || *next == '[' || behind[-1] == '}' || behind[-1] == ']') return true;
  return next != behind && (behind[-1] != '"' || *next == '"');
}

int hex_value(char c) {
  if (scan::is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The four digits of a \u escape; -1 when they are not.
std::int32_t hex4(std::string_view text) {
  if (text.size() < 4) return -1;
  std::int32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

struct JsonReader::Impl {
  struct Pending {
    Reason reason;
    std::uint64_t offset;
    const char* what;
  };

  Impl(JsonReader& owner, ByteStream& input, Options given)
      : reader(owner),
        stream(input),
        options(std::move(given)),
        window(input, options.window_bytes) {}

  void begin(JsonCursor& cursor);
  bool again(JsonCursor& cursor);
  bool too_large(const char* at) const {
    return static_cast<std::size_t>(at - window.pos) > options.max_record_bytes;
  }
  Status deliver(const JsonCursor& cursor);
  Status report(Reason reason, std::uint64_t offset, std::string_view what);
  Result<Step> settle(JsonCursor& cursor);
  Status resync();
  bool reads_at(std::size_t i);
  template <class Walk>
  Result<bool> advance(char bracket, Walk&& walk);
  Status leave();
  Status finish();
  Status input_ends(std::string_view where);
  Status failed() const;
  char* scratch_room();

  JsonReader& reader;
  ByteStream& stream;
  Options options;
  JsonWindow window;
  std::string open;          // brackets of the document's containers entered
  bool at_value = false;     // window.pos is at a value that was not read yet
  bool fresh = false;        // no comma is due before the next member or element
  bool any_element = false;  // the document's array had one
  bool ended = false;
  bool truncated = false;
  std::optional<Error> error;

  std::vector<Pending> pending;  // problems of the value being read
  // Decoded strings of the record. They are never longer than what they are written as, so room
  // for the window is room for all of them, and none moves.
  std::unique_ptr<char[]> scratch;
  std::size_t scratch_size = 0;
  std::size_t scratch_used = 0;
};

// --- The cursor ---

std::uint64_t JsonCursor::offset() const {
  return reader_->impl_->window.offset_of(state_ == State::kGood ? p_ : stopped_at_);
}

void JsonCursor::problem(Reason reason, const char* at, const char* what) {
  reader_->impl_->pending.push_back({reason, reader_->impl_->window.offset_of(at), what});
}

void JsonCursor::stop(State state, const char* at) {
  state_ = state;
  stopped_at_ = at;
  p_ = end_ = kNothing;
  unread_ = nullptr;
  depth_ = 0;
}

bool JsonCursor::out_of_data() {
  stop(reader_->impl_->window.at_end() ? State::kCut : State::kNeedsMore, end_);
  return false;
}

bool JsonCursor::fault(const char* at, const char* what) {
  what_ = what;
  stop(State::kFault, at);
  return false;
}

JsonType JsonCursor::type_slow() {
  if (state_ != State::kGood || p_ != unread_) return JsonType::kEnd;
  const char* const end = word_end(p_);
  // A word that touches the window's end may go on behind it.
  if (end == end_ && !reader_->impl_->window.at_end()) {
    out_of_data();
    return JsonType::kEnd;
  }
  return word_type({p_, static_cast<std::size_t>(end - p_)});
}

bool JsonCursor::enter_slow(char bracket) {
  if (*p_ == bracket) return fault(p_, "nested too deeply");
  skip();
  return false;
}

bool JsonCursor::next_member_slow(std::string_view& key) {
  if (p_ == unread_) skip();
  if (state_ != State::kGood) return false;
  const char* due = nullptr;  // the comma that separates two members, if it was seen
  for (;;) {
    p_ = scan::blank_end(p_);
    if (*p_ == ',') {
      if (fresh_ || due != nullptr) {
        problem(Reason::kCommaRepaired, p_, "a comma too many");
      } else {
        due = p_;
      }
      ++p_;
    } else if (*p_ == '}') {
      if (due != nullptr) problem(Reason::kCommaRepaired, due, "a comma before '}'");
      leave(p_ + 1);
      return false;
    } else {
      break;
    }
  }
  if (p_ == end_) return out_of_data();
  if (*p_ != '"') return fault(p_, "a key in quotes, ',' or '}' was expected");
  if (!fresh_ && due == nullptr) problem(Reason::kCommaRepaired, p_, "a comma is missing");
  key = quoted();
  if (state_ != State::kGood) return false;
  p_ = scan::blank_end(p_);
  if (p_ == end_) return out_of_data();
  if (*p_ != ':') return fault(p_, "':' was expected");
  p_ = unread_ = scan::blank_end(p_ + 1);
  fresh_ = false;
  return true;
}

bool JsonCursor::next_element_slow() {
  if (p_ == unread_) skip();
  if (state_ != State::kGood) return false;
  const char* const behind = p_;
  const char* due = nullptr;
  for (;;) {
    p_ = scan::blank_end(p_);
    if (*p_ == ',') {
      if (fresh_ || due != nullptr) {
        problem(Reason::kCommaRepaired, p_, "a comma too many");
      } else {
        due = p_;
      }
      ++p_;
    } else if (*p_ == ']') {
      if (due != nullptr) problem(Reason::kCommaRepaired, due, "a comma before ']'");
      leave(p_ + 1);
      return false;
    } else {
      break;
    }
  }
  if (p_ == end_) return out_of_data();
  if (*p_ == '}' || *p_ == ':' || scan::is_control(*p_)) {
    return fault(p_, "a value, ',' or ']' was expected");
  }
  if (!fresh_ && due == nullptr) {
    if (!only_comma_missing(behind, p_)) return fault(p_, "',' or ']' was expected");
    problem(Reason::kCommaRepaired, p_, "a comma is missing");
  }
  unread_ = p_;
  fresh_ = false;
  return true;
}

// Passes a string that is more than plain ASCII; the cursor is at its opening quote.
std::string_view JsonCursor::quoted() {
  const char* const first = p_ + 1;
  const char* q = first;
  const char* wide = nullptr;
  bool escaped = false;
  for (;;) {
    q = scan::plain_end(q);
    if (*q == '"') break;
    if (*q == '\\') {
      escaped = true;
      // Only these two change where the string ends; all else is looked at on its own.
      q += q[1] == '"' || q[1] == '\\' ? 2 : 1;
    } else if (static_cast<signed char>(*q) < 0) {
      if (wide == nullptr) wide = q;
      while (static_cast<signed char>(*q) < 0) ++q;
    } else if (q >= end_) {
      out_of_data();
      return {};
    } else {
      problem(Reason::kControlCharacter, q, "a raw control character in a string");
      ++q;
    }
  }
  p_ = q + 1;
  const std::string_view raw(first, static_cast<std::size_t>(q - first));
  if (wide != nullptr) {
    const std::string_view rest(wide, static_cast<std::size_t>(q - wide));
    const std::size_t valid = utf8_valid_prefix(rest);
    if (valid < rest.size()) {
      problem(Reason::kInvalidUtf8, wide + valid, "a string that is not UTF-8");
    }
  }
  std::string_view text = raw;
  if (escaped) {
    if (const char* bad = decode(raw, text)) {
      problem(Reason::kEscapeKept, bad, "an invalid escape; the string is kept as written");
      text = raw;
    }
  }
  return text;
}

// Resolves the escapes of `raw`. Returns where the first invalid one is, or null.
const char* JsonCursor::decode(std::string_view raw, std::string_view& decoded) {
  JsonReader::Impl& impl = *reader_->impl_;
  char* const to = impl.scratch_room();
  char* out = to;
  const char* p = raw.data();
  const char* const end = p + raw.size();
  const auto rest = [&] { return std::string_view(p, static_cast<std::size_t>(end - p)); };
  while (p != end) {
    const auto* const slash = static_cast<const char*>(std::memchr(p, '\\', rest().size()));
    const char* const plain_end = slash == nullptr ? end : slash;
    out = std::copy(p, plain_end, out);
    p = plain_end;
    if (p == end) break;
    p += 2;  // the slash is never last: it would have escaped the quote
    switch (p[-1]) {
      case '"':
        *out++ = '"';
        break;
      case '\\':
        *out++ = '\\';
        break;
      case '/':
        *out++ = '/';
        break;
      case 'b':
        *out++ = '\b';
        break;
      case 'f':
        *out++ = '\f';
        break;
      case 'n':
        *out++ = '\n';
        break;
      case 'r':
        *out++ = '\r';
        break;
      case 't':
        *out++ = '\t';
        break;
      case 'u': {
        std::int32_t code = hex4(rest());
        if (code < 0) return slash;
        p += 4;
        // Half of a pair alone has no UTF-8 form.
        if (code >= 0xdc00 && code <= 0xdfff) return slash;
        if (code >= 0xd800 && code <= 0xdbff) {
          const std::string_view low_text = rest();
          const std::int32_t low =
              low_text.starts_with("\\u") ? hex4(low_text.substr(2)) : std::int32_t{-1};
          if (low < 0xdc00 || low > 0xdfff) return slash;
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          p += 6;
        }
        out += utf8_encode(static_cast<std::uint32_t>(code), out);
        break;
      }
      default:
        return slash;
    }
  }
  const auto size = static_cast<std::size_t>(out - to);
  impl.scratch_used += size;
  decoded = {to, size};
  return nullptr;
}

// Passes the value at hand, which is no container. Type kEnd when there is none.
JsonCursor::Scalar JsonCursor::scalar() {
  if (*p_ == '"') return {JsonType::kString, quoted()};
  if (state_ != State::kGood || p_ != unread_) return {};
  const char* const first = p_;
  const char* const end = word_end(first);
  JsonReader::Impl& impl = *reader_->impl_;
  // Behind the end a word may go on; only a document that is one word ends there.
  if (end == end_ && !(impl.window.at_end() && end != first && impl.open.empty() && depth_ == 0)) {
    out_of_data();
    return {};
  }
  const std::string_view word(first, static_cast<std::size_t>(end - first));
  unread_ = nullptr;
  p_ = end;
  if (word.empty() && *end != ',' && *end != '}' && *end != ']') {
    fault(end, "a value was expected");
    return {};
  }
  const JsonType type = word_type(word);
  if (type == JsonType::kAbsent) {
    problem(Reason::kBareToken, first,
            word.empty() ? "a value is missing" : "a bare word in place of a value");
  } else if (type == JsonType::kNumber && !is_json_number(word) &&
             (impl.options.strict || !is_readable_number(word))) {
    problem(Reason::kUnreadableNumber, first, "a number that cannot be one");
  }
  return {type, word};
}

// Passes what is left of the containers deeper than `depth`.
void JsonCursor::pass_rest(std::uint32_t depth) {
  std::string_view key;
  while (depth_ > depth) {
    if (stack_[depth_ - 1] == '{' ? !next_member(key) : !next_element()) continue;
    switch (*p_) {
      case '{':
      case '[':
        enter(*p_);
        break;
      case '"':
        string();
        break;
      default:
        if (scan::type_of(*p_) == JsonType::kNumber) {
          number();
        } else {
          scalar();
        }
    }
  }
}

std::string_view JsonCursor::string_slow() {
  if (*p_ == '{' || *p_ == '[') {
    skip();
    return {};
  }
  return scalar().text;
}

std::string_view JsonCursor::number_slow() {
  if (*p_ == '{' || *p_ == '[') {
    skip();
    return {};
  }
  const Scalar value = scalar();
  if (value.type == JsonType::kNumber) return value.text;
  if (value.type == JsonType::kString && is_readable_number(value.text)) return value.text;
  return {};
}

std::string_view JsonCursor::skip_slow() {
  const char* const first = p_;
  if (*p_ == '{' || *p_ == '[') {
    const std::uint32_t depth = depth_;
    if (enter(*p_)) pass_rest(depth);
  } else {
    scalar();
  }
  if (state_ != State::kGood) return {};
  return {first, static_cast<std::size_t>(p_ - first)};
}

// Passes what the callable left unread.
void JsonCursor::finish() {
  if (depth_ == 0 && p_ == unread_) skip();
  pass_rest(0);
}

// --- One value in the window ---

void JsonReader::Impl::begin(JsonCursor& cursor) {
  pending.clear();
  scratch_used = 0;
  cursor.p_ = cursor.unread_ = window.pos;
  cursor.end_ = window.end;
  cursor.depth_ = 0;
  cursor.fresh_ = false;
  cursor.state_ = JsonCursor::State::kGood;
}

// Reads on when that is what the walk lacked. True: walk again.
bool JsonReader::Impl::again(JsonCursor& cursor) {
  if (cursor.state_ != JsonCursor::State::kNeedsMore || too_large(window.end)) return false;
  window.more();
  return true;
}

char* JsonReader::Impl::scratch_room() {
  if (scratch_size < window.capacity()) {
    scratch_size = window.capacity();
    scratch = std::make_unique_for_overwrite<char[]>(scratch_size);
  }
  return scratch.get() + scratch_used;
}

// --- Problems ---

Status JsonReader::Impl::failed() const {
  if (error) return tl::unexpected<Error>(*error);
  if (window.error()) return tl::unexpected<Error>(*window.error());
  return {};
}

Status JsonReader::Impl::report(Reason reason, std::uint64_t offset, std::string_view what) {
  if (options.strict) {
    error = Error{ErrorCode::kBadInput, fmt::format("byte {}: {}", offset, what)};
    return tl::unexpected<Error>(*error);
  }
  if (options.on_problem) options.on_problem({reason, offset, what});
  return {};
}

// Reports the problems met on the way, and the fault that ended it.
Status JsonReader::Impl::deliver(const JsonCursor& cursor) {
  if (pending.empty() && cursor.state_ != JsonCursor::State::kFault) return {};
  const std::uint64_t start = window.offset_of(window.pos);
  std::vector<Pending> problems = std::exchange(pending, {});
  if (cursor.state_ == JsonCursor::State::kFault) {
    problems.push_back(
        {Reason::kRecordSkipped, window.offset_of(cursor.stopped_at_), cursor.what_});
  }
  for (const Pending& problem : problems) {
    // Read as far as the excerpt reaches, so that its text does not depend on the window.
    const auto at = static_cast<std::size_t>(problem.offset - start);
    window.peek(at + kExcerptBytes);
    const auto there = static_cast<std::size_t>(window.end - window.pos);
    std::string excerpt(window.pos + std::min(at, there),
                        std::min(kExcerptBytes, there - std::min(at, there)));
    excerpt.resize(utf8_valid_prefix(excerpt));
    std::replace_if(excerpt.begin(), excerpt.end(), scan::is_control, ' ');
    PASTA_TRY(report(problem.reason, problem.offset, fmt::format("{}: {}", problem.what, excerpt)));
  }
  return {};
}

Status JsonReader::Impl::input_ends(std::string_view where) {
  window.pos = window.end;
  ended = true;
  at_value = false;
  if (truncated) return {};
  PASTA_TRY(failed());
  truncated = true;
  const std::string_view damage = stream.damage();
  return report(Reason::kTruncated, window.offset_of(window.end),
                damage.empty() ? fmt::format("the input ends {}", where)
                               : fmt::format("the input ends {}: {}", where, damage));
}

// --- The document ---

// Passes a value that cannot be read.
Status JsonReader::Impl::resync() {
  at_value = false;
  fresh = false;
  const char container = open.empty() ? '[' : open.back();
  JsonResync way_back(window, container, [this](std::size_t i) { return reads_at(i); });
  switch (way_back.run()) {
    case JsonResync::End::kBehindValue:
      break;
    case JsonResync::End::kAtElement:
      fresh = true;
      break;
    case JsonResync::End::kInputEnds:
      return input_ends("inside a record");
  }
  return failed();
}

bool JsonReader::Impl::reads_at(std::size_t i) {
  JsonCursor cursor(reader);
  do {
    begin(cursor);
    cursor.p_ = cursor.unread_ = window.pos + i;
    cursor.finish();
  } while (again(cursor));
  pending.clear();
  return cursor.state_ == JsonCursor::State::kGood;
}

// After a walk over the value at window.pos: reports, and moves behind it.
Result<JsonReader::Step> JsonReader::Impl::settle(JsonCursor& cursor) {
  using State = JsonCursor::State;
  PASTA_TRY(failed());
  const char* const reached = cursor.state_ == State::kGood ? cursor.p_ : cursor.stopped_at_;
  if (too_large(reached)) {
    pending.clear();
    PASTA_TRY(report(Reason::kRecordSkipped, window.offset_of(window.pos),
                     fmt::format("a record of more than {} bytes", options.max_record_bytes)));
    PASTA_TRY(resync());
    return Step::kSkipped;
  }
  const std::uint64_t start = window.offset_of(window.pos);
  const std::uint64_t stop = window.offset_of(reached);
  PASTA_TRY(deliver(cursor));
  switch (cursor.state_) {
    case State::kGood:
      window.pos += stop - start;
      return Step::kRead;
    case State::kFault:
      PASTA_TRY(resync());
      return Step::kSkipped;
    default:
      PASTA_TRY(input_ends("inside a record"));
      return Step::kTruncated;
  }
}

// Moves to the next member or element of the innermost container.
template <class Walk>
Result<bool> JsonReader::Impl::advance(char bracket, Walk&& walk) {
  using State = JsonCursor::State;
  if (at_value) PASTA_TRY(reader.skip());
  for (;;) {
    PASTA_TRY(failed());
    if (ended || open.empty() || open.back() != bracket) return false;
    JsonCursor cursor(reader);
    bool found = false;
    do {
      if (!window.skip_blank() && !window.error()) {
        // Chrome's array of events need not be closed.
        if (bracket == '[' && open.size() == 1 && any_element) {
          open.clear();
          PASTA_TRY(finish());
        } else {
          PASTA_TRY(input_ends("inside the document"));
        }
        return false;
      }
      begin(cursor);
      cursor.unread_ = nullptr;
      cursor.stack_[0] = bracket;
      cursor.depth_ = 1;
      cursor.fresh_ = fresh;
      found = walk(cursor);
    } while (again(cursor));
    PASTA_TRY(failed());
    const char* const reached = cursor.state_ == State::kGood ? cursor.p_ : cursor.stopped_at_;
    const std::uint64_t distance = window.offset_of(reached) - window.offset_of(window.pos);
    PASTA_TRY(deliver(cursor));
    if (cursor.state_ == State::kGood) {
      window.pos += distance;
      fresh = false;
      at_value = found;
      any_element |= found && open.size() == 1;
      if (!found) PASTA_TRY(leave());
      if (found) window.skip_blank();  // the window may have ended behind the colon
      return found;
    }
    window.pos += distance;
    if (cursor.state_ == State::kCut) continue;
    if (cursor.state_ == State::kNeedsMore) {
      PASTA_TRY(report(Reason::kRecordSkipped, window.offset_of(window.pos), "no value for long"));
    } else {
      ++window.pos;
    }
    PASTA_TRY(resync());
  }
}

Status JsonReader::Impl::leave() {
  open.pop_back();
  at_value = false;
  fresh = false;
  return open.empty() ? finish() : Status{};
}

// Behind the document's value there may be white space and zeros.
Status JsonReader::Impl::finish() {
  ended = true;
  while (window.skip_blank() && *window.pos == '\0') ++window.pos;
  PASTA_TRY(failed());
  if (window.pos != window.end) {
    PASTA_TRY(report(Reason::kTrailingData, window.offset_of(window.pos),
                     "bytes after the end of the document"));
    return {};
  }
  if (!stream.damage().empty()) return input_ends("early");
  return {};
}

JsonReader::JsonReader(ByteStream& stream, Options options)
    : impl_(std::make_unique<Impl>(*this, stream, std::move(options))) {}

JsonReader::~JsonReader() = default;

Result<JsonType> JsonReader::open() {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  JsonWindow& window = impl_->window;
  std::size_t same = 0;
  while (same < kMark.size() && window.peek(same) == static_cast<unsigned char>(kMark[same])) {
    ++same;
  }
  if (same == kMark.size()) window.pos += same;
  if (!window.skip_blank()) {
    PASTA_TRY(impl_->failed());
    PASTA_TRY(impl_->input_ends("before a value"));
    return JsonType::kEnd;
  }
  impl_->at_value = true;
  auto found = type();
  if (found && (*found == JsonType::kObject || *found == JsonType::kArray)) PASTA_TRY(enter());
  return found;
}

Result<bool> JsonReader::next_member(std::string& key) {
  return impl_->advance('{', [&](JsonCursor& cursor) {
    std::string_view found;
    if (!cursor.next_member(found)) return false;
    key.assign(found);
    return true;
  });
}

Result<bool> JsonReader::next_element() {
  return impl_->advance('[', [](JsonCursor& cursor) { return cursor.next_element(); });
}

Result<JsonType> JsonReader::type() {
  PASTA_TRY(impl_->failed());
  if (!impl_->at_value) return JsonType::kEnd;
  JsonCursor cursor(*this);
  JsonType found = JsonType::kEnd;
  do {
    impl_->begin(cursor);
    found = cursor.type();
  } while (impl_->again(cursor));
  PASTA_TRY(impl_->failed());
  return found;
}

Status JsonReader::enter() {
  PASTA_TRY(impl_->failed());
  const int bracket = impl_->at_value ? impl_->window.peek(0) : -1;
  if (bracket != '{' && bracket != '[') {
    PASTA_TRY(impl_->failed());
    return fail(ErrorCode::kUsage, "there is no object or array to enter here");
  }
  impl_->open.push_back(static_cast<char>(bracket));
  impl_->fresh = true;
  impl_->at_value = false;
  ++impl_->window.pos;
  return {};
}

Status JsonReader::skip() {
  auto found = type();
  if (!found) return tl::unexpected<Error>(std::move(found).error());
  const bool container = *found == JsonType::kObject || *found == JsonType::kArray;
  if (!container || impl_->open.size() >= kStreamedLevels) {
    auto outcome = record([](JsonCursor&) {});
    if (!outcome) return tl::unexpected<Error>(std::move(outcome).error());
    return {};
  }
  PASTA_TRY(enter());
  std::string key;
  for (;;) {
    auto more = *found == JsonType::kObject ? next_member(key) : next_element();
    if (!more) return tl::unexpected<Error>(std::move(more).error());
    if (!*more) return {};
    PASTA_TRY(skip());
  }
}

void JsonReader::begin_record(JsonCursor& cursor) {
  impl_->begin(cursor);
  if (!impl_->at_value) cursor.stop(JsonCursor::State::kCut, impl_->window.end);
}

Result<JsonReader::Step> JsonReader::end_record(JsonCursor& cursor) {
  PASTA_TRY(impl_->failed());
  if (!impl_->at_value) return fail(ErrorCode::kUsage, "there is no value to read here");
  if (cursor.state_ == JsonCursor::State::kGood) cursor.finish();
  if (impl_->again(cursor)) return Step::kAgain;
  auto step = impl_->settle(cursor);
  impl_->at_value = false;
  if (step && *step == Step::kRead && impl_->open.empty()) PASTA_TRY(impl_->finish());
  return step;
}

std::uint64_t JsonReader::offset() const { return impl_->window.offset_of(impl_->window.pos); }

bool JsonReader::truncated() const { return impl_->truncated; }

}  // namespace pasta::base
