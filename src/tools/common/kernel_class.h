// What sort of work a kernel does, told from its name.
#pragma once

#include <cstdint>
#include <string_view>

namespace pasta::tools {

enum class KernelClass : std::uint8_t {
  kGemm,
  kConvolution,
  kAttention,
  kNormalisation,
  kElementwise,
  kReduction,
  kCommunication,
  kCopy,
  kEmbedding,
  kOptimiser,
  kSortScan,
  kOther,
};
inline constexpr unsigned kKernelClassCount = 12;

// The name in reports: "gemm", "sort/scan", ...
std::string_view class_name(KernelClass type);

// Whether a kernel exchanges data with other devices: decided on the source's own name, in any
// case, and the same everywhere.
bool is_communication(std::string_view name);

// The class of a kernel by its source's name, mangled or not. kOther when no rule knows it. Takes
// some microseconds: ask once per distinct name.
KernelClass classify_kernel(std::string_view name);

}  // namespace pasta::tools
