#include "adapters/common/python/source_locations.h"

#include <cstdint>
#include <cstring>

#include "adapters/common/python/places.h"
#include "trace/append_text.h"

namespace pasta::adapters::common::python {
namespace {

struct Frame {
  std::string_view file;
  std::string_view function;
  std::uint64_t line = 0;
  std::uint32_t depth = 0;  // 0: it has no dashes, and is in the one before
};

constexpr std::uint32_t kDeepest = 64;
constexpr std::uint32_t kMostFrames = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view from(std::string_view text, std::size_t at) {
  return {text.data() + at, text.size() - at};
}

// "-- /model.py:12:8[forward] dot_general"; a file may have blanks and colons in its name.
bool read_frame(std::string_view text, Frame& frame) {
  frame = {};
  while (frame.depth < text.size() && text[frame.depth] == '-') ++frame.depth;
  text = from(text, frame.depth);
  if (frame.depth > 0 && !text.empty() && text[0] == ' ') text = from(text, 1);
  for (std::size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1)) {
    std::size_t end = at + 1;
    std::uint64_t line = 0;
    while (end < text.size() && is_digit(text[end]) && line < (1u << 30)) {
      line = line * 10 + static_cast<std::uint64_t>(text[end++] - '0');
    }
    const bool over =
        end == text.size() || text[end] == ':' || text[end] == '[' || text[end] == ' ';
    if (end == at + 1 || !over) continue;
    frame.file = {text.data(), at};
    frame.line = line;
    if (end < text.size() && text[end] == ':') {
      ++end;
      while (end < text.size() && is_digit(text[end])) ++end;
    }
    const std::size_t last =
        end < text.size() && text[end] == '[' ? text.find(']', end) : text.npos;
    if (last != text.npos) frame.function = {text.data() + end + 1, last - end - 1};
    return !frame.file.empty();
  }
  return false;
}

// Text that ends where there is no room.
class Writer {
 public:
  Writer(char* to, std::size_t room) : begin_(to), at_(to), end_(to + room) {}
  [[nodiscard]] std::string_view text() const {
    return {begin_, static_cast<std::size_t>(at_ - begin_)};
  }
  [[nodiscard]] bool full() const { return full_; }
  void add(std::string_view text) {
    if (text.size() > static_cast<std::size_t>(end_ - at_)) full_ = true;
    if (full_ || text.empty()) return;
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void add(std::uint64_t number) {
    char digits[24];
    add({digits, static_cast<std::size_t>(trace::append(digits, number) - digits)});
  }
  // "&lt;lambda&gt;", as it is made for a reader of HTML.
  void add_unescaped(std::string_view text) {
    constexpr std::string_view kLess = "&lt;", kGreater = "&gt;";
    while (!text.empty()) {
      const bool less = text.substr(0, kLess.size()) == kLess;
      const bool escaped = less || text.substr(0, kGreater.size()) == kGreater;
      add(escaped ? (less ? "<" : ">") : std::string_view{text.data(), 1});
      text = from(text, escaped ? kLess.size() : 1);
    }
  }
  void back_to(std::string_view text) { at_ = begin_ + text.size(); }

 private:
  char* begin_;
  char* at_;
  char* end_;
  bool full_ = false;
};

// Of stacks, the frame of each that is nearest to the user; each function and line once.
class Nearest {
 public:
  void add_stack(const Frame* frames, std::uint32_t count) {
    const Frame* best = nullptr;
    for (std::uint32_t i = count; i > 0; --i) {
      const Frame& frame = frames[i - 1];
      if (best == nullptr || nearness(frame.file) > nearness(best->file)) best = &frame;
    }
    if (best == nullptr || count_ == kMostFrames) return;
    std::uint32_t after = count_;  // behind the last of the same function
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (found_[i].file != best->file || found_[i].function != best->function) continue;
      if (found_[i].line == best->line) return;
      after = i + 1;
    }
    for (std::uint32_t i = count_; i > after; --i) found_[i] = found_[i - 1];
    found_[after] = *best;
    ++count_;
  }
  std::string_view write(Writer& to) const {
    for (std::uint32_t i = 0, next = 0; i < count_; i = next) {
      const std::string_view before = to.text();
      if (i > 0) to.add(" + ");
      to.add(short_path(found_[i].file));
      for (next = i; next < count_ && found_[next].file == found_[i].file &&
                     found_[next].function == found_[i].function;
           ++next) {
        to.add(next == i ? "(" : ", ");
        to.add(found_[next].line);
      }
      to.add(")");
      if (!found_[i].function.empty()) to.add(": ");
      to.add_unescaped(found_[i].function);
      if (!to.full()) continue;
      to.back_to(before);
      break;
    }
    return to.text();
  }

 private:
  Frame found_[kMostFrames];
  std::uint32_t count_ = 0;
};

}  // namespace

std::string_view place_of_locations(std::string_view locations, char* to,
                                    std::size_t room) noexcept {
  Nearest nearest;
  Frame stack[kDeepest];
  std::uint32_t count = 0;
  while (!locations.empty()) {
    const std::size_t end = locations.find('\n');
    const std::string_view line{locations.data(), end == locations.npos ? locations.size() : end};
    locations = from(locations, end == locations.npos ? locations.size() : end + 1);
    Frame frame;
    if (!read_frame(line, frame)) continue;
    if (frame.depth == 0) frame.depth = count + 1;
    // What is no deeper begins where the stack before is left.
    if (frame.depth <= count) {
      nearest.add_stack(stack, count);
      count = frame.depth - 1;
    }
    if (count < kDeepest) stack[count++] = frame;
  }
  nearest.add_stack(stack, count);
  Writer writer(to, room);
  return nearest.write(writer);
}

}  // namespace pasta::adapters::common::python
