#include "adapters/rpd/vocabulary.h"

#include <algorithm>
#include <array>

#include "base/decimal.h"

namespace pasta::adapters::rpd {
namespace {

constexpr ApiKind api(ApiDomain domain) { return {Kind::kApi, static_cast<std::uint16_t>(domain)}; }
constexpr ApiKind scope(ScopeDomain domain) {
  return {Kind::kScope, static_cast<std::uint16_t>(domain)};
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return text.starts_with(b); });
}

// The whole number that `text` begins with.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t value = 0;
  text = text.substr(0, text.find_first_not_of("0123456789abcdefABCDEFx"));
  if (!base::parse_unsigned(text, value)) return std::nullopt;
  return value;
}

}  // namespace

Kind op_kind(std::string_view type) {
  if (starts_with_any(type, {"Copy", "Memcpy", "MEMORY_COPY"})) return Kind::kCopy;
  if (starts_with_any(type, {"Fill", "Memset"})) return Kind::kFill;
  if (starts_with_any(type, {"Barrier", "Marker"})) return Kind::kSync;
  return Kind::kKernel;
}

bool is_cuda_op(std::string_view type) {
  return type == "Kernel" || type == "ConcurrentKernel" || type == "Memcpy" || type == "Memset";
}

ApiKind api_kind(std::string_view domain, std::string_view name) {
  if (name == kUserMarker) return scope(ScopeDomain::kAnnotation);
  if (domain == "hsa" || name.starts_with("hsa_")) return api(ApiDomain::kDriver);
  if (starts_with_any(name, {"hip", "__hip", "cuda"})) return api(ApiDomain::kRuntime);
  if (domain == "hip" || domain == "cuda") {
    return api(name.starts_with("cu") ? ApiDomain::kDriver : ApiDomain::kRuntime);
  }
  // The tracer times itself.
  if (name.find("::") != name.npos || name == "rpdflush" || name.ends_with("_activity_callback")) {
    return scope(ScopeDomain::kRuntime);
  }
  return scope(ScopeDomain::kAnnotation);
}

std::optional<Operator> as_operator(std::string_view marker) {
  constexpr std::array<std::string_view, 4> kDetails = {
      ", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "};
  std::size_t end = marker.npos;
  for (const std::string_view detail : kDetails) end = std::min(end, marker.find(detail));
  if (end == marker.npos && !marker.starts_with("aten::")) return std::nullopt;
  Operator found{.name = marker.substr(0, end)};
  if (const std::size_t at = marker.find(kDetails[0]); at != marker.npos) {
    if (const auto sequence = leading_number(marker.substr(at + kDetails[0].size()))) {
      found.sequence = *sequence + 1;
    }
  }
  return found;
}

std::optional<std::uint64_t> stream_argument(std::string_view arguments) {
  constexpr std::string_view kStream = "stream = ";
  const std::size_t at = arguments.find(kStream);
  if (at == arguments.npos) return std::nullopt;
  return leading_number(arguments.substr(at + kStream.size()));
}

std::string_view monitor_unit(std::string_view type) {
  if (type == "sclk" || type == "mclk") return "MHz";
  if (type == "power") return "W";
  if (type == "temp") return "C";
  return "";
}

}  // namespace pasta::adapters::rpd
