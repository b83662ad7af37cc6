// What the analysis of accesses costs when it is part of a kernel's PTX, beside Compute Sanitizer:
// ptx_steps FOLDER TURNS SECONDS FORM... runs the kernels of FOLDER, KERNEL.FORM.cubin, with all
// FORMs in turns, at most so many seconds for each kernel. FORM is `bare`, PATCH-inline or
// PATCH-call of instrument.py, or under `pastaprof run --adapter sanitizer` also sanitizer:PATCH,
// which is `bare` with that patch; with `:off` behind it a launch of what is not analysed. A line
// of JSON for each kernel and form: its registers, stack, groups on a multiprocessor, ms of
// launches, whether it wrote what `bare` writes, and the first table that the patch made of the
// last launch.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "../../tests/gpu/known_kernels.cuh"
#include "adapters/sanitizer/patches.h"

namespace {

using namespace pasta::device;

constexpr std::size_t kMostBytes = std::size_t{512} << 20;

struct Argument {
  enum { kIn, kIn2, kOut, kNumber, kNone } kind;
  int number = 0;
};
struct Kernel {
  const char *file, *name;
  dim3 grid, block;
  unsigned shared;
  std::size_t written;  // bytes
  std::vector<Argument> arguments;
};
constexpr Argument kIn = {Argument::kIn}, kIn2 = {Argument::kIn2}, kOut = {Argument::kOut},
                   kNone = {Argument::kNone};
Argument number(int value) { return {Argument::kNumber, value}; }

std::vector<Kernel> kernels() {
  constexpr int kItems = 128 << 20, kColumns = 1008, kRows = 1 << 17, kWide = 4096, kLong = 1 << 15,
                kMatrix = 2048, kSide = 8192;
  return {
      {"vector_add",
       "vector_add",
       kItems / 1024,
       128,
       0,
       kMostBytes,
       {kIn, kIn2, kOut, number(kItems), kNone, kNone}},
      {"softmax",
       "softmax",
       kRows,
       128,
       16,
       std::size_t{kRows} * kColumns * 4,
       {kIn, kOut, number(kColumns), kNone, kNone}},
      {"layer_norm",
       "layer_norm",
       kLong,
       128,
       16,
       std::size_t{kLong} * kWide * 4,
       {kIn, kIn2, kIn2, kOut, number(kWide), kNone, kNone}},
      {"matmul",
       "matmul",
       {kMatrix / 64, kMatrix / 64},
       128,
       32768,
       std::size_t{kMatrix} * kMatrix * 4,
       {kIn, kIn2, kOut, number(kMatrix), number(kMatrix), number(kMatrix), kNone, kNone}},
      {"transpose",
       "transpose",
       kSide * kSide / 1024,
       128,
       2048,
       std::size_t{kSide} * kSide * 4,
       {kIn, kOut, number(kSide), number(kSide), kNone, kNone}},
      {"cuda", "copy", 132 * 8, 256, 0, kMostBytes, {kIn, kOut, number(kItems)}},
      {"cuda",
       "tiled",
       {kMatrix / 32, kMatrix / 32},
       {32, 8},
       0,
       std::size_t{kMatrix} * kMatrix * 4,
       {kIn, kIn2, kOut, number(kMatrix)}},
      {"cuda", "histogram", 132 * 8, 256, 0, 1024, {kIn, kOut, number(1 << 22)}},
  };
}

// What a launch writes, as one number.
__global__ void sum_up(const unsigned* words, std::size_t count, unsigned long long* sum) {
  unsigned long long own = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    own += (words[i] + 1ULL) * (2 * i + 1);
  }
  atomicAdd(sum, own);
}
__global__ void fill(float* values, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    values[i] = static_cast<float>(static_cast<unsigned>(i) * 2654435761u >> 16) / 65536 - 0.5f;
  }
}

float *in, *in2, *out;
unsigned long long* checksum;
int (*switch_patch)(const char*);

struct Form {
  std::string name;
  const char* sanitizer = nullptr;  // which of its patches
  std::unique_ptr<pasta::adapters::sanitizer::PatchOfObjects> patch;
  cudaKernel_t code = nullptr;
  bool takes_more = false, is_off = false;
  std::byte *given = nullptr, *table = nullptr;
  std::size_t bytes = 0;
  pasta::adapters::sanitizer::Block block;
  std::vector<float> ms;
  unsigned long long sum = 0;
};

std::vector<MemoryObject> objects() {
  std::vector<MemoryObject> all;
  for (float* of : {in, in2, out}) {
    all.push_back({reinterpret_cast<std::uint64_t>(of), kMostBytes, all.size() + 1});
  }
  std::ranges::sort(all, {}, &MemoryObject::address);
  return all;
}

Launch launch_of(const Kernel& kernel) {
  Launch launch;
  const dim3 sizes[] = {kernel.grid, kernel.block};
  for (int i = 0; i < 2; ++i) {
    std::uint32_t* to = i == 0 ? launch.grid : launch.block;
    to[0] = sizes[i].x, to[1] = sizes[i].y, to[2] = sizes[i].z;
  }
  launch.global_only = 1;
  return launch;
}

// `all` outlives the form.
bool load(Form& form, const Kernel& kernel, const std::string& folder,
          const std::vector<MemoryObject>& all) {
  const std::string bare = "sanitizer:";
  std::string file = form.name;
  if (file.starts_with(bare)) {
    form.sanitizer = form.name.c_str() + bare.size();
    file = "bare";
  }
  const std::string off = ":off";
  form.is_off = file.ends_with(off);
  if (form.is_off) file.resize(file.size() - off.size());
  cudaLibrary_t library;
  if (cudaLibraryLoadFromFile(&library,
                              (folder + "/" + kernel.file + "." + file + ".cubin").c_str(), nullptr,
                              nullptr, 0, nullptr, nullptr, 0) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  CHECK(cudaLibraryGetKernel(&form.code, library, kernel.name));
  form.takes_more = file != "bare";
  if (!form.takes_more) return true;
  form.bytes = std::size_t{1} << 20;
  const auto* kind = pasta::adapters::sanitizer::find_patch(file.substr(0, file.find('-')));
  if (kind != nullptr) {
    form.patch = kind->of(all);
    const auto table = form.patch->table();
    CHECK(cudaMalloc(&form.table, table.size()));
    CHECK(cudaMemcpy(form.table, table.data(), table.size(), cudaMemcpyHostToDevice));
    form.patch->put_table(reinterpret_cast<std::uintptr_t>(form.table));
    form.block = form.patch->block(launch_of(kernel), 0, 0);
    form.bytes = form.block.bytes;
  }
  CHECK(cudaMalloc(&form.given, form.bytes));
  if (form.patch != nullptr) {
    const auto header = reinterpret_cast<std::uintptr_t>(form.given + form.block.header);
    form.block = form.patch->block(launch_of(kernel), 0, header);
  }
  return true;
}

float launch_once(Form& form, const Kernel& kernel, cudaEvent_t begin, cudaEvent_t end) {
  CHECK(cudaMemset(out, 0, kernel.written));
  if (form.takes_more) {
    CHECK(cudaMemset(form.given, 0, form.bytes));
    if (form.patch != nullptr) {
      CHECK(cudaMemcpy(form.given + form.block.header, form.block.image.data(),
                       form.block.image.size(), cudaMemcpyHostToDevice));
    }
  }
  void* none = nullptr;
  std::byte* given = form.is_off ? nullptr : form.given + form.block.header;
  std::vector<Argument> arguments = kernel.arguments;
  std::vector<void*> places;
  for (Argument& of : arguments) {
    places.push_back(of.kind == Argument::kIn     ? static_cast<void*>(&in)
                     : of.kind == Argument::kIn2  ? static_cast<void*>(&in2)
                     : of.kind == Argument::kOut  ? static_cast<void*>(&out)
                     : of.kind == Argument::kNone ? static_cast<void*>(&none)
                                                  : static_cast<void*>(&of.number));
  }
  if (form.takes_more) places.push_back(&given);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventRecord(begin));
  CHECK(cudaLaunchKernel(form.code, kernel.grid, kernel.block, places.data(), kernel.shared,
                         nullptr));
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  return ms;
}

unsigned long long sum_of(const Kernel& kernel) {
  CHECK(cudaMemset(checksum, 0, sizeof *checksum));
  sum_up<<<1056, 256>>>(reinterpret_cast<const unsigned*>(out), kernel.written / 4, checksum);
  unsigned long long sum = 0;
  CHECK(cudaMemcpy(&sum, checksum, sizeof sum, cudaMemcpyDeviceToHost));
  return sum;
}

// The first table behind that of objects: object by object.
std::string counted(const Form& form, const Kernel& kernel) {
  if (form.patch == nullptr) return "null";
  std::vector<std::byte> bytes(form.block.result_end - form.block.result_begin);
  CHECK(cudaMemcpy(bytes.data(), form.given + form.block.result_begin, bytes.size(),
                   cudaMemcpyDeviceToHost));
  const Names names = {.object = [](const MemoryObject&) { return std::string("object"); },
                       .site = [](std::uint64_t) { return std::string("site"); }};
  std::string text = "[";
  const PatchResult result = form.patch->result(launch_of(kernel), bytes, names);
  if (result.tables.size() > 1) {
    for (const auto number_of : result.tables[1].numbers) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(static_cast<std::int64_t>(number_of));
    }
  }
  return text + "]";
}

void measure(const Kernel& kernel, const std::string& folder, int turns, double seconds,
             const std::vector<std::string>& names) {
  const std::vector<MemoryObject> all = objects();
  std::vector<Form> forms(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    forms[i].name = names[i];
    if (!load(forms[i], kernel, folder, all)) forms[i].code = nullptr;
  }
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const auto start = std::chrono::steady_clock::now();
  const auto time_left = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           seconds;
  };
  for (int turn = 0; turn < turns && (turn < 2 || time_left()); ++turn) {
    for (Form& form : forms) {
      if (form.code == nullptr) continue;
      if (form.sanitizer != nullptr &&
          (switch_patch == nullptr || switch_patch(form.sanitizer) == 0)) {
        continue;
      }
      launch_once(form, kernel, begin, end);
      for (int i = 0; i < 4; ++i) form.ms.push_back(launch_once(form, kernel, begin, end));
      form.sum = sum_of(kernel);
      if (form.sanitizer != nullptr) switch_patch("");
    }
  }
  for (Form& form : forms) {
    if (form.ms.empty()) continue;
    cudaFuncAttributes attributes{};
    CHECK(cudaFuncGetAttributes(&attributes, form.code));
    int groups = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &groups, form.code, static_cast<int>(kernel.block.x * kernel.block.y), kernel.shared));
    std::ranges::sort(form.ms);
    std::printf(
        "{\"kernel\": \"%s\", \"form\": \"%s\", \"registers\": %d, \"stack\": %zu, "
        "\"groups\": %d, \"least_ms\": %.4f, \"median_ms\": %.4f, \"launches\": %zu, "
        "\"same\": %s, \"counted\": %s}\n",
        kernel.name, form.name.c_str(), attributes.numRegs, attributes.localSizeBytes, groups,
        form.ms.front(), form.ms[form.ms.size() / 2], form.ms.size(),
        form.sum == forms[0].sum ? "true" : "false", counted(form, kernel).c_str());
    std::fflush(stdout);
    cudaFree(form.given);
    cudaFree(form.table);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: ptx_steps FOLDER TURNS SECONDS FORM...\n");
    return 2;
  }
  for (float** buffer : {&in, &in2, &out}) CHECK(cudaMalloc(buffer, kMostBytes));
  CHECK(cudaMalloc(&checksum, sizeof *checksum));
  for (float* buffer : {in, in2}) fill<<<1056, 256>>>(buffer, kMostBytes / sizeof(float));
  CHECK(cudaDeviceSynchronize());
  if (const char* adapter = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* library = dlopen(adapter, RTLD_NOW | RTLD_NOLOAD)) {
      switch_patch =
          reinterpret_cast<int (*)(const char*)>(dlsym(library, "pasta_sanitizer_patch"));
    }
    if (switch_patch != nullptr) switch_patch("");
  }
  const std::vector<std::string> forms(argv + 4, argv + argc);
  for (const Kernel& kernel : kernels()) {
    measure(kernel, argv[1], std::atoi(argv[2]), std::atof(argv[3]), forms);
  }
  return 0;
}
