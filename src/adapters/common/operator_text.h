// What PyTorch writes into the name of an NVTX range (torch.autograd.profiler.emit_nvtx):
// "aten::mul, seq = 45328, op_id = 990726, sizes = [[2, 3], []]".
//
// Needs no libstdc++: this header is for the collector too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::adapters::common {

struct OperatorText {
  std::string_view name;
  std::uint64_t sequence = 0;  // + 1; 0 = none
  std::string_view sizes;      // "[[2, 3], []]"
  bool is_operator = false;
};

namespace operator_text {

inline std::string_view from(std::string_view text, std::size_t at) {
  return {text.data() + at, text.size() - at};
}

// A number up to a comma or the end, + 1; 0 when it is none.
inline std::uint64_t sequence(std::string_view text) {
  constexpr std::uint64_t kLargest = ~std::uint64_t{0} / 10 - 1;
  std::uint64_t value = 0;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != ','; ++at) {
    if (text[at] < '0' || text[at] > '9' || value > kLargest) return 0;
    value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return at == 0 ? 0 : value + 1;
}

// A list up to where its brackets end; anything but numbers in it is not kept.
inline std::string_view sizes(std::string_view text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    const bool number = (c >= '0' && c <= '9') || c == ',' || c == ' ' || c == '[' || c == ']';
    if (depth <= 0 || !number) {
      return at > 0 && depth == 0 && c == ']' ? std::string_view{text.data(), at + 1}
                                              : std::string_view();
    }
  }
  return {};
}

}  // namespace operator_text

inline OperatorText read_operator(std::string_view text) {
  constexpr std::string_view kSequence = ", seq = ";
  constexpr std::string_view kOperatorId = ", op_id = ";
  constexpr std::string_view kSizes = ", sizes = ";
  OperatorText out{.name = text, .sizes = {}};
  std::size_t end = text.npos;
  for (const std::string_view key : {kSequence, kOperatorId, kSizes}) {
    const std::size_t at = text.find(key);
    end = at < end ? at : end;
  }
  if (end == text.npos) return out;
  out.is_operator = true;
  out.name = {text.data(), end};
  const std::string_view rest = operator_text::from(text, end);
  if (const std::size_t at = rest.find(kSequence); at != rest.npos) {
    out.sequence = operator_text::sequence(operator_text::from(rest, at + kSequence.size()));
  }
  if (const std::size_t at = rest.find(kSizes); at != rest.npos) {
    out.sizes = operator_text::sizes(operator_text::from(rest, at + kSizes.size()));
  }
  return out;
}

}  // namespace pasta::adapters::common
