#include "base/json_window.h"

#include <algorithm>
#include <cstring>

#include "base/json_scan.h"

namespace pasta::base {
namespace {

std::unique_ptr<char[]> allocate(std::size_t capacity) {
  return std::make_unique_for_overwrite<char[]>(1 + capacity + scan::kPadding);
}

}  // namespace

JsonWindow::JsonWindow(ByteStream& stream, std::size_t bytes)
    : stream_(stream), capacity_(std::max<std::size_t>(bytes, 1)), memory_(allocate(capacity_)) {
  memory_[0] = '\n';
  begin_ = memory_.get() + 1;
  pos = end = begin_;
  std::memset(begin_, 0, scan::kPadding);
}

bool JsonWindow::more() {
  if (at_end_) return false;
  const auto kept = static_cast<std::size_t>(end - pos);
  base_ += static_cast<std::uint64_t>(pos - begin_);
  // Room for at least as much as is kept, so that walking a large record again and again costs no
  // more than twice its size.
  if (kept > capacity_ / 2) {
    capacity_ *= 2;
    auto larger = allocate(capacity_);
    std::memcpy(larger.get(), pos - 1, kept + 1);
    memory_ = std::move(larger);
    begin_ = memory_.get() + 1;
  } else {
    std::memmove(begin_ - 1, pos - 1, kept + 1);
  }
  const std::size_t room = capacity_ - kept;
  auto got = stream_.read(std::as_writable_bytes(std::span(begin_ + kept, room)));
  if (!got) error_ = got.error();
  const std::size_t fresh = error_ ? 0 : *got;
  at_end_ = fresh < room;
  pos = begin_;
  end = begin_ + kept + fresh;
  std::memset(begin_ + kept + fresh, 0, scan::kPadding);
  return fresh > 0;
}

int JsonWindow::peek(std::size_t i) {
  while (i >= static_cast<std::size_t>(end - pos)) {
    if (!more()) return -1;
  }
  return static_cast<unsigned char>(pos[i]);
}

bool JsonWindow::skip_blank() {
  do {
    pos = scan::blank_end(pos);
    if (pos != end) return true;
  } while (more());
  return false;
}

}  // namespace pasta::base
