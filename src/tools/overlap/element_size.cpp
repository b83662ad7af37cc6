#include "tools/overlap/element_size.h"

#include <algorithm>
#include <string>

namespace pasta::tools::overlap {
namespace {

struct Type {
  std::string_view name;  // in lower case
  std::uint64_t bytes;
};
constexpr Type kTypes[] = {
    {"bool", 1},
    {"byte", 1},
    {"uint8", 1},
    {"char", 1},
    {"int8", 1},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"float8e4m3", 1},
    {"float8e5m2", 1},
    {"half", 2},
    {"float16", 2},
    {"fp16", 2},
    {"bfloat16", 2},
    {"bf16", 2},
    {"short", 2},
    {"int16", 2},
    {"uint16", 2},
    {"float", 4},
    {"float32", 4},
    {"fp32", 4},
    {"int", 4},
    {"int32", 4},
    {"uint32", 4},
    {"double", 8},
    {"float64", 8},
    {"fp64", 8},
    {"long", 8},
    {"int64", 8},
    {"uint64", 8},
    {"complexfloat", 8},
    {"complexdouble", 16},
};

}  // namespace

std::optional<std::uint64_t> element_bytes(std::string_view type) {
  std::string lower(type);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  std::string_view name = lower;
  if (name.starts_with("nccl")) name.remove_prefix(4);
  const auto* known = std::ranges::find(kTypes, name, &Type::name);
  return known == std::end(kTypes) ? std::nullopt : std::optional(known->bytes);
}

}  // namespace pasta::tools::overlap
