// What frameworks write into the name of an NVTX range. PyTorch, by emit_nvtx of its profiler:
// "aten::mul, seq = 45328, op_id = 990726, sizes = [[2, 3], []]".
// XLA, for JAX and others:
// "Thunk:#name=jit(f)/dot_general,hlo_op=gemm_fusion_dot.3,unique_hlo_op_id=8589934597#", and
// around all of what it has compiled together "XlaModule:#hlo_module=jit_f,program_id=12#".
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
  std::string_view hlo;        // XLA's name of the operation, where it is not the name
  bool is_operator = false;
  bool is_module = false;
};

namespace operator_text {

inline std::string_view from(std::string_view text, std::size_t at) {
  return {text.data() + at, text.size() - at};
}

// How many it begins with.
inline std::size_t digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
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

// The value of the key that ends with '=', up to `end`.
inline std::string_view value_of(std::string_view text, std::string_view key,
                                 std::string_view end) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  const std::string_view rest = from(text, at + key.size());
  const std::size_t over = rest.find(end);
  return {rest.data(), over == rest.npos ? rest.size() : over};
}

// What XLA has compiled, `text` being what stands between the two '#'. A name may have commas.
// False when it has no name.
inline bool read_xla(std::string_view text, OperatorText& to) {
  const std::string_view name = value_of(text, "name=", ",hlo_op=");
  const std::string_view hlo = value_of(text, "hlo_op=", ",");
  const bool has_name = text.substr(0, 5) == "name=" && !name.empty();
  if (!has_name && hlo.empty()) return false;
  to.is_operator = true;
  to.name = has_name ? name : hlo;
  if (has_name) to.hlo = hlo;
  return true;
}

}  // namespace operator_text

inline OperatorText read_operator(std::string_view text) {
  OperatorText out;
  constexpr std::string_view kSequence = ", seq = ";
  constexpr std::string_view kOperatorId = ", op_id = ";
  constexpr std::string_view kSizes = ", sizes = ";
  constexpr std::string_view kThunk = "Thunk:#";
  constexpr std::string_view kXlaModule = "XlaModule:#";
  if (text.size() > kThunk.size() && text.substr(0, kThunk.size()) == kThunk &&
      text.back() == '#') {
    const std::string_view said = operator_text::from(text, kThunk.size());
    if (operator_text::read_xla({said.data(), said.size() - 1}, out)) return out;
  }
  if (text.substr(0, kXlaModule.size()) == kXlaModule && text.back() == '#') {
    const std::string_view said{text.data(), text.size() - 1};
    const std::string_view module = operator_text::value_of(said, "hlo_module=", ",program_id=");
    // What it only tries, while it compiles, is no program.
    if (!module.empty() && module.data() + module.size() != said.data() + said.size()) {
      out.name = module;
      out.is_module = true;
      return out;
    }
  }
  // One look at the text for all keys: most have the first that comes, and many have none.
  std::size_t end = text.find(',');
  for (; end != text.npos; end = text.find(',', end + 1)) {
    const std::string_view rest = operator_text::from(text, end);
    if (rest.substr(0, kSequence.size()) == kSequence ||
        rest.substr(0, kOperatorId.size()) == kOperatorId ||
        rest.substr(0, kSizes.size()) == kSizes) {
      break;
    }
  }
  if (end == text.npos) {
    out.name = text;
    return out;
  }
  out.is_operator = true;
  out.name = {text.data(), end};
  std::string_view rest = operator_text::from(text, end);
  // As PyTorch writes them most have nothing but numbers: those are read where they stand.
  for (;;) {
    const bool numbered = rest.substr(0, kSequence.size()) == kSequence;
    if (!numbered && rest.substr(0, kOperatorId.size()) != kOperatorId) break;
    rest = operator_text::from(rest, numbered ? kSequence.size() : kOperatorId.size());
    if (numbered) out.sequence = operator_text::sequence(rest);
    rest = operator_text::from(rest, operator_text::digits(rest));
  }
  if (rest.empty()) return out;
  if (const std::size_t at = rest.find(kSequence); out.sequence == 0 && at != rest.npos) {
    out.sequence = operator_text::sequence(operator_text::from(rest, at + kSequence.size()));
  }
  if (const std::size_t at = rest.find(kSizes); at != rest.npos) {
    out.sizes = operator_text::sizes(operator_text::from(rest, at + kSizes.size()));
  }
  return out;
}

}  // namespace pasta::adapters::common
