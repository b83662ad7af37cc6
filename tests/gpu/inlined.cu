// What the same analysis would cost if it were part of a kernel's code, as instrumentation of PTX
// when it is compiled (Triton, NVRTC) would make it, instead of a function that Compute Sanitizer
// calls: inlined [FORM...], of a copy of 64 MiB whose warps ask for 128 bytes at a time. FORM is
// `bare`, or of `count`, `hotpages`, `reuse`, `access` the patch in the kernel, with `-called` as a
// function that the compiler calls. Prints ns for each access of a warp, of the whole GPU, and what
// was counted. `bare` run under pastaprof is what Compute Sanitizer makes of it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "adapters/sanitizer/patches.h"
#include "device/access.h"
#include "device/gpu_patch.h"
#include "device/hotpages.h"
#include "device/reuse.h"
#include "known_kernels.cuh"

#pragma nv_diag_suppress 20011, 20014  // what is for both is also made for the host alone

namespace {

using namespace pasta::device;

constexpr std::size_t kItems = std::size_t{16} << 20;
constexpr int kPasses = 4, kBlocks = 132 * 8, kThreads = 256, kTimes = 7;
constexpr double kAccesses = 2.0 * kPasses * kItems / 32;

struct Bare {
  __device__ static void at(void*, std::uint64_t, const void*, std::uint32_t) {}
};
// The least that anything could do: one number.
struct Count {
  __device__ static void at(void* given, std::uint64_t, const void*, std::uint32_t) {
    const std::uint32_t lanes = __activemask();
    std::uint32_t own, before;
    asm("mov.u32 %0, %%laneid;" : "=r"(own));
    asm("mov.u32 %0, %%smid;" : "=r"(before));
    if (own == __ffs(lanes) - 1) {
      atomicAdd(static_cast<unsigned long long*>(given) + before % 64 * 16, 1ULL);
    }
    __syncwarp(lanes);
  }
};
// Lanes that come together go on together: otherwise the next access finds them in parts.
template <class Patch>
struct Inlined {
  __device__ static void at(void* given, std::uint64_t pc, const void* address,
                            std::uint32_t flags) {
    const std::uint32_t lanes = __activemask();
    on_flagged<Patch>(given, pc, Space::kGlobal, reinterpret_cast<std::uint64_t>(address), 4,
                      flags);
    __syncwarp(lanes);
  }
};
template <class Patch>
struct Called {
  __device__ __noinline__ static void at(void* given, std::uint64_t pc, const void* address,
                                         std::uint32_t flags) {
    on_flagged<Patch>(given, pc, Space::kGlobal, reinterpret_cast<std::uint64_t>(address), 4,
                      flags);
  }
};

template <class Form>
__global__ void copy(void* given, const float* in, float* out, std::size_t items) {
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < items;
         i += std::size_t{gridDim.x} * blockDim.x) {
      Form::at(given, 0x100, in + i, kReads);
      const float value = in[i];
      Form::at(given, 0x200, out + i, kWrites);
      out[i] = value + 1;
    }
  }
}

float *in, *out;

template <class Form>
void measure(const char* form, const char* patch_name) {
  using namespace pasta::adapters::sanitizer;
  const PatchKind* patch = find_patch(patch_name);
  std::vector<MemoryObject> objects = {
      {reinterpret_cast<std::uint64_t>(in), kItems * sizeof *in, 1},
      {reinterpret_cast<std::uint64_t>(out), kItems * sizeof *out, 2}};
  std::ranges::sort(objects, {}, &MemoryObject::address);
  Launch launch;
  launch.grid[0] = kBlocks;
  launch.block[0] = kThreads;
  launch.global_only = 1;
  std::unique_ptr<PatchOfObjects> of;
  std::byte *given = nullptr, *table = nullptr;
  std::size_t bytes = 1 << 20, header = 0;
  if (patch != nullptr) {
    of = patch->of(objects);
    CHECK(cudaMalloc(&table, of->table().size()));
    CHECK(cudaMemcpy(table, of->table().data(), of->table().size(), cudaMemcpyHostToDevice));
    of->put_table(reinterpret_cast<std::uintptr_t>(table));
    const Block sizes = of->block(launch, 0, 0);
    bytes = sizes.bytes;
    header = sizes.header;
  }
  CHECK(cudaMalloc(&given, bytes));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  std::string counted;
  for (int i = 0; i < kTimes; ++i) {
    CHECK(cudaMemset(given, 0, bytes));
    if (patch != nullptr) {
      const Block block = of->block(launch, 0, reinterpret_cast<std::uintptr_t>(given + header));
      CHECK(cudaMemcpy(given + header, block.image.data(), block.image.size(),
                       cudaMemcpyHostToDevice));
    }
    CHECK(cudaEventRecord(begin));
    copy<Form><<<kBlocks, kThreads>>>(given + header, in, out, kItems);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    times.push_back(ms);
  }
  if (patch != nullptr) {
    const Block block = of->block(launch, 0, reinterpret_cast<std::uintptr_t>(given + header));
    std::vector<std::byte> result(block.result_end - block.result_begin);
    CHECK(cudaMemcpy(result.data(), given + block.result_begin, result.size(),
                     cudaMemcpyDeviceToHost));
    const Names names = {.object = [](const MemoryObject&) { return std::string("object"); },
                         .site = [](std::uint64_t) { return std::string("site"); }};
    for (const auto& table_of : of->result(launch, result, names).tables) {
      counted += " table " + std::to_string(static_cast<int>(table_of.id)) + ":";
      for (std::size_t k = 0; k < std::min<std::size_t>(table_of.numbers.size(), 14); ++k) {
        counted += " " + std::to_string(table_of.numbers[k]);
      }
    }
  }
  std::ranges::sort(times);
  cudaFuncAttributes attributes{};
  CHECK(cudaFuncGetAttributes(&attributes, copy<Form>));
  std::printf("%s: least %.3f, median %.3f ns an access, %d registers, %zu bytes of stack %s\n",
              form, times.front() * 1e6 / kAccesses, times[kTimes / 2] * 1e6 / kAccesses,
              attributes.numRegs, attributes.localSizeBytes, counted.c_str());
  std::fflush(stdout);
  cudaFree(table);
  cudaFree(given);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(cudaMalloc(&in, kItems * sizeof *in));
  CHECK(cudaMalloc(&out, kItems * sizeof *out));
  CHECK(cudaMemset(in, 0, kItems * sizeof *in));
  std::vector<std::string> forms(argv + 1, argv + argc);
  if (forms.empty()) {
    forms = {"bare",   "count",           "hotpages",     "reuse",
             "access", "hotpages-called", "reuse-called", "access-called"};
  }
  for (const std::string& form : forms) {
    if (form == "bare") measure<Bare>("bare", "");
    if (form == "count") measure<Count>("count", "");
    if (form == "hotpages") measure<Inlined<HotpagesPatch>>("hotpages", "hotpages");
    if (form == "reuse") measure<Inlined<ReusePatch>>("reuse", "reuse");
    if (form == "access") measure<Inlined<AccessPatch>>("access", "access");
    if (form == "hotpages-called") measure<Called<HotpagesPatch>>("hotpages-called", "hotpages");
    if (form == "reuse-called") measure<Called<ReusePatch>>("reuse-called", "reuse");
    if (form == "access-called") measure<Called<AccessPatch>>("access-called", "access");
  }
  return 0;
}
