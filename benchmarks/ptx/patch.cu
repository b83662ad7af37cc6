// What is put before each access of a kernel's PTX (instrument.py): the patches that Compute
// Sanitizer calls, as an ordinary function of the device.
//   nvcc -std=c++20 -ptx -rdc=true -arch=compute_90 -DPASTA_PATCH=reuse
// PASTA_PATCH is `hotpages`, `reuse` or `access`, or one of those that only cost:
// `nothing`, and `count`, the least that anything could do.
#include <cstdint>

#include "device/access.h"
#include "device/gpu_patch.h"
#include "device/hotpages.h"
#include "device/reuse.h"

#pragma nv_diag_suppress 20011, 20014  // what is for both is also made for the host alone

namespace {

using namespace pasta::device;

// As a patch looks whether it is called at all; never true of an address.
struct Nothing {
  __device__ static void at(void* given, std::uint64_t, std::uint64_t address, std::uint32_t,
                            std::uint32_t) {
    if (reinterpret_cast<std::uint64_t>(given) == 1) *static_cast<std::uint64_t*>(given) = address;
  }
};
// One number, in one of 64 lines.
struct Count {
  __device__ static void at(void* given, std::uint64_t, std::uint64_t, std::uint32_t,
                            std::uint32_t) {
    const std::uint32_t lanes = __activemask();
    std::uint32_t own, multiprocessor;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(own));
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    if ((lanes & own) == 0) add(static_cast<std::uint64_t*>(given)[multiprocessor % 64 * 16], 1);
    __syncwarp(lanes);
  }
};
// Lanes that come together go on together: otherwise the next access finds them in parts.
template <class Patch>
struct Counted {
  __device__ static void at(void* given, std::uint64_t place, std::uint64_t address,
                            std::uint32_t width, std::uint32_t flags) {
    const std::uint32_t lanes = __activemask();
    on_flagged<Patch>(given, place, Space::kGlobal, address, width, flags);
    __syncwarp(lanes);
  }
};
using nothing = Nothing;
using count = Count;
using hotpages = Counted<HotpagesPatch>;
using reuse = Counted<ReusePatch>;
using access = Counted<AccessPatch>;

}  // namespace

extern "C" __device__ __noinline__ void pasta_at(void* given, std::uint64_t place,
                                                 std::uint64_t address, std::uint32_t width,
                                                 std::uint32_t flags) {
  PASTA_PATCH::at(given, place, address, width, flags);
}
