// A short text, put together without the heap; what does not fit is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pasta::adapters::opencl {

class Words {
 public:
  Words& operator<<(std::string_view text) noexcept {
    text = text.substr(0, sizeof text_ - size_);
    if (!text.empty()) std::memcpy(text_ + size_, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  Words& operator<<(std::int64_t number) noexcept {
    if (number < 0) *this << "-";
    std::uint64_t rest = static_cast<std::uint64_t>(number);
    if (number < 0) rest = 0 - rest;
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    return *this << std::string_view(digits + at, sizeof digits - at);
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_, size_}; }

 private:
  char text_[256];
  std::size_t size_ = 0;
};

}  // namespace pasta::adapters::opencl
