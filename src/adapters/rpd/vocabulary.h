// The words of rpd_tracer, and what they mean here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pasta/event.h"

namespace pasta::adapters::rpd {

// What a row of rocpd_op is, by its type.
Kind op_kind(std::string_view type);
// CUPTI's rows have the context where HIP's have the queue, and the stream in sequenceId.
bool is_cuda_op(std::string_view type);

// What a row of rocpd_api is. `domain` is empty in files before schema 3.
struct ApiKind {
  Kind kind;
  std::uint16_t detail;
};
ApiKind api_kind(std::string_view domain, std::string_view name);
inline constexpr std::string_view kUserMarker = "UserMarker";

// "aten::mul, seq = 12, op_id = 5": PyTorch writes what it knows of an operator behind its name.
struct Operator {
  std::string_view name;
  std::uint64_t sequence = 0;  // number + 1, 0 = not told
};
std::optional<Operator> as_operator(std::string_view marker);

// The hexadecimal number behind "stream = " among the arguments of a call.
std::optional<std::uint64_t> stream_argument(std::string_view arguments);

// As the tracer counts: "MHz" for "sclk".
std::string_view monitor_unit(std::string_view type);

}  // namespace pasta::adapters::rpd
