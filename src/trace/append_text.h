// Texts put together without the heap. Needs no libstdc++: this header is for the collector.
#pragma once

#include <cstdint>

namespace pasta::trace {

// Both write at `to`, with a zero byte behind, and give where that is. There must be room.
inline char* append(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  *to = '\0';
  return to;
}

inline char* append(char* to, std::uint64_t number) {
  char digits[20];
  int count = 0;
  do digits[count++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *to++ = digits[--count];
  *to = '\0';
  return to;
}

}  // namespace pasta::trace
