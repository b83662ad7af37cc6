#include "base/json_resync.h"

#include <utility>

#include "base/json_scan.h"

namespace pasta::base {
namespace {

// How far to look ahead for what decides; what is farther away does not fit.
constexpr std::size_t kLookAhead = 4096;
// Brackets remembered; more are taken for noise.
constexpr std::size_t kMaxOpen = std::size_t{1} << 20;

}  // namespace

JsonResync::JsonResync(JsonWindow& window, char container,
                       std::function<bool(std::size_t)> reads_at)
    : window_(window), container_(container), reads_at_(std::move(reads_at)) {}

std::size_t JsonResync::blank_from(std::size_t i) {
  const std::size_t limit = i + kLookAhead;
  for (; i < limit; ++i) {
    const int c = window_.peek(i);
    if (c < 0 || !scan::is_blank(static_cast<char>(c))) break;
  }
  return i;
}

// A key and its colon stand at i.
bool JsonResync::key_at(std::size_t i) {
  if (window_.peek(i) != '"') return false;
  const std::size_t limit = i + kLookAhead;
  for (++i; i < limit; ++i) {
    const int c = window_.peek(i);
    if (c < 0x20 || c == '\\') return false;
    if (c == '"') return window_.peek(blank_from(i + 1)) == ':';
  }
  return false;
}

// A record stands at i: an object with a first member, that can be read whole.
bool JsonResync::element_at(std::size_t i) {
  return container_ == '[' && window_.peek(i) == '{' && key_at(blank_from(i + 1)) && reads_at_(i);
}

// The quote at window.pos ends the string it is in.
bool JsonResync::closes(bool key) {
  const std::size_t next = blank_from(1);
  const int c = window_.peek(next);
  if (key) return c == ':';
  if (c < 0 || c == '}') return innermost() == '{' || c < 0;
  if (innermost() == '[') return c == ']' || c == ',';
  if (c != ',') return key_at(next);
  const std::size_t member = blank_from(next + 1);
  const int m = window_.peek(member);
  return m < 0 || m == '}' || m == ',' || key_at(member);
}

// Passes the rest of a string. True when the next element was found instead: it is at window.pos.
bool JsonResync::in_string(bool key) {
  for (int c; (c = window_.peek(0)) >= 0; ++window_.pos) {
    if (c == '"') {
      if (closes(key)) {
        ++window_.pos;
        return false;
      }
    } else if (c == '\\') {
      // An escaped quote may be a path's last backslash and the true end: only what follows tells.
      if (window_.peek(1) == '"' || window_.peek(1) == '\\') ++window_.pos;
    } else if (c == ',' && innermost() == '{' && !key && key_at(blank_from(1))) {
      return false;  // the closing quote is missing
    } else if (c == '}') {
      const std::size_t comma = blank_from(1);
      if (window_.peek(comma) == ',') {
        const std::size_t element = blank_from(comma + 1);
        if (element_at(element)) {
          window_.pos += element;
          return true;
        }
      }
    }
  }
  return false;
}

// Closes the innermost container of that bracket, and those within that lack theirs.
void JsonResync::close(char bracket) {
  const char opening = bracket == '}' ? '{' : '[';
  const std::size_t at = open_.rfind(opening);
  open_.resize(at == std::string::npos ? 0 : at);
}

JsonResync::End JsonResync::run() {
  for (int next; (next = window_.peek(0)) >= 0;) {
    const char c = static_cast<char>(next);
    if (c == '"') {
      ++window_.pos;
      if (in_string(innermost() == '{' && key_next_)) return End::kAtElement;
      key_next_ = false;
      if (open_.empty()) return End::kBehindValue;
      continue;
    }
    if (open_.empty() && (c == ',' || c == '}' || c == ']')) return End::kBehindValue;
    if (c == '{' || c == '[') {
      // No object stands where a key should: the record before it is not finished.
      if (c == '{' && !open_.empty() && key_next_ && innermost() == '{' && element_at(0)) {
        return End::kAtElement;
      }
      if (open_.size() < kMaxOpen) open_.push_back(c);
      key_next_ = c == '{';
    } else if (c == '}' || c == ']') {
      const bool ours = open_.find(c == '}' ? '{' : '[') != std::string::npos;
      close(c);
      key_next_ = false;
      if (!ours) return End::kBehindValue;  // it ends the container around
      if (open_.empty()) {
        ++window_.pos;
        return End::kBehindValue;
      }
    } else if (c == ',') {
      key_next_ = innermost() == '{';
    } else if (c == ':') {
      key_next_ = false;
    }
    ++window_.pos;
  }
  return End::kInputEnds;
}

}  // namespace pasta::base
