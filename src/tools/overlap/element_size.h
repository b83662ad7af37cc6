// How large one element of a collective's data type is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pasta::tools::overlap {

// Of a type as PyTorch or NCCL write it ("Float", "BFloat16", "ncclInt8", ...); none when unknown.
std::optional<std::uint64_t> element_bytes(std::string_view type);

}  // namespace pasta::tools::overlap
