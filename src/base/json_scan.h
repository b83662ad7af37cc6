// The inner loops of the JSON reader. All of them read whole blocks and rely on the window's
// promise: past its last byte lie kPadding bytes of NUL, at which every one of them stops.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pasta::base::scan {

inline constexpr std::size_t kPadding = 64;

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

// Indexed by the unsigned byte: true for what may stand behind a number or a bare word.
inline constexpr std::array<bool, 256> kEndsScalar = [] {
  std::array<bool, 256> table{};
  for (const char c : {',', '}', ']', ' ', '\n', '\r', '\t'}) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();
inline bool ends_scalar(char c) { return kEndsScalar[static_cast<unsigned char>(c)]; }

#if defined(__SSE2__)

inline __m128i load(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline unsigned mask(__m128i v) { return static_cast<unsigned>(_mm_movemask_epi8(v)); }

// The first byte that is a quote, a backslash, a control character or not ASCII. As signed bytes
// the last two are one comparison.
inline const char* plain_end(const char* p) {
  for (;; p += 16) {
    const __m128i v = load(p);
    const unsigned hits = mask(_mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
        _mm_cmplt_epi8(v, _mm_set1_epi8(0x20))));
    if (hits != 0) return p + std::countr_zero(hits);
  }
}

// The end of digits, or of digits with a point and digits behind it; null when it is neither or
// too long for one look.
inline const char* plain_number_end(const char* p) {
  const auto digits_at = [p](int i) {
    const __m128i v = _mm_sub_epi8(load(p + i), _mm_set1_epi8('0'));
    return mask(_mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(9)), v));
  };
  // Both runs of digits come from one look, as looking again would wait for the first.
  const std::uint32_t digits = digits_at(0) | digits_at(16) << 16;
  const int whole = std::countr_one(digits);
  if (whole == 0 || whole == 32) return nullptr;
  if (p[whole] != '.') return p + whole;
  const int fraction = std::countr_one(digits >> whole >> 1);
  if (fraction == 0 || whole + 1 + fraction == 32) return nullptr;
  return p + whole + 1 + fraction;
}

// The first byte that is not white space.
inline const char* blank_end(const char* p) {
  if (static_cast<unsigned char>(*p) > ' ') return p;
  for (;; p += 16) {
    const __m128i v = load(p);
    const unsigned blanks = mask(_mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'))),
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\r')),
                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\t')))));
    if (blanks != 0xffff) return p + std::countr_one(blanks);
  }
}

#else

inline const char* plain_end(const char* p) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = kOnes << 7;
  for (;; p += 8) {
    std::uint64_t w;
    std::memcpy(&w, p, sizeof w);
    const std::uint64_t quotes = w ^ (kOnes * '"');
    const std::uint64_t slashes = w ^ (kOnes * '\\');
    if (((w | (w - kOnes * 0x20) | (quotes - kOnes) | (slashes - kOnes)) & kHighs) != 0) break;
  }
  while (!is_control(*p) && *p != '"' && *p != '\\' && static_cast<signed char>(*p) >= 0) ++p;
  return p;
}

inline const char* plain_number_end(const char* p) {
  const char* whole = p;
  while (is_digit(*whole)) ++whole;
  if (whole == p) return nullptr;
  if (*whole != '.') return whole;
  const char* fraction = whole + 1;
  while (is_digit(*fraction)) ++fraction;
  return fraction == whole + 1 ? nullptr : fraction;
}

inline const char* blank_end(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

#endif

// blank_end() where there mostly is one blank or none. Written as branches, which are guessed
// right nearly always: the next byte can then be looked at before this one has arrived.
inline const char* short_blank_end(const char* p) {
  if (static_cast<unsigned char>(p[0]) > ' ') return p;
  if (p[0] == ' ' && static_cast<unsigned char>(p[1]) > ' ') return p + 1;
  return blank_end(p);
}

}  // namespace pasta::base::scan
