// Each way in which a program can get memory that its kernels reach: memory. One kernel for each;
// what is to be told of it is in known_accesses.py.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "known_kernels.cuh"

extern char** environ;

namespace {
__device__ float variable[300];
}

// Each item reads the word that has its number, `last` also the word with that number.
#define READS(name)                                                                         \
  extern "C" __global__ void name(const float* in, float* out) {                            \
    out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x]; \
  }
READS(in_pitched)
READS(in_pool)
READS(in_pool_again)
READS(in_own_pool)
READS(in_managed)
READS(in_virtual)
READS(in_virtual_again)
READS(in_other_process)
READS(in_variable)
READS(in_pinned)
READS(in_mapped)
READS(in_registered)
READS(in_peer)

extern "C" {
__global__ void to_graph_memory(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void from_graph_memory(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
}
// From the heap of the device, which kernels ask for memory themselves.
__global__ void in_heap(float* out) {
  auto* own = static_cast<volatile float*>(malloc(4096));
  own[threadIdx.x] = 1;
  out[threadIdx.x] = own[threadIdx.x];
  free(const_cast<float*>(own));
}
}

namespace {

template <class Kernel>
void launch(Kernel kernel, const void* in, int number) {
  kernel<<<1, 32>>>(static_cast<const float*>(in), buffer<float>(1024 + 16 * number));
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

// Two pieces of 2 MiB side by side: one warp reads of both.
void virtual_memory() {
  const auto granularity =
      driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity", 10020);
  const auto reserve = driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve", 10020);
  const auto create = driver<decltype(&cuMemCreate)>("cuMemCreate", 10020);
  const auto map = driver<decltype(&cuMemMap)>("cuMemMap", 10020);
  const auto access = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess", 10020);
  const auto unmap = driver<decltype(&cuMemUnmap)>("cuMemUnmap", 10020);
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t bytes = 0;
  if (granularity(&bytes, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != 0) std::exit(5);
  CUdeviceptr begin = 0;
  CUmemGenericAllocationHandle pieces[2];
  if (reserve(&begin, 2 * bytes, 0, 0, 0) != 0) std::exit(5);
  CUmemAccessDesc how{};
  how.location = what.location;
  how.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (int i = 0; i < 2; ++i) {
    if (create(&pieces[i], bytes, &what, 0) != 0) std::exit(5);
    if (map(begin + i * bytes, bytes, 0, pieces[i], 0) != 0) std::exit(5);
  }
  if (access(begin, 2 * bytes, &how, 1) != 0) std::exit(5);
  const auto at = [&](std::size_t from) { return reinterpret_cast<const float*>(begin + from); };
  in_virtual<<<2, 32>>>(at(bytes - 64), buffer<float>(1024 + 16 * 5));
  CHECK(cudaDeviceSynchronize());
  // The second where the first was.
  if (unmap(begin, bytes) != 0 || unmap(begin + bytes, bytes) != 0) std::exit(5);
  if (map(begin, bytes, 0, pieces[1], 0) != 0 || access(begin, bytes, &how, 1) != 0) std::exit(5);
  launch(in_virtual_again, at(0), 6);
}

// A child that opens what this process has.
void other_process(const char* program) {
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, buffer(1 << 21)));
  std::string text;
  for (const char byte : handle.reserved) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  char* arguments[] = {const_cast<char*>(program), text.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    std::exit(6);
  }
}
int as_other_process(const std::string& text) {
  cudaIpcMemHandle_t handle;
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  void* opened = nullptr;
  CHECK(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  launch(in_other_process, opened, 7);
  CHECK(cudaIpcCloseMemHandle(opened));
  return 0;
}

// Memory that a graph has while it runs.
void graph_memory(const float* in) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  auto* out = buffer<float>(1024 + 16 * 13);
  float* own = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t made;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&own, 6144, stream));
  to_graph_memory<<<1, 32, 0, stream>>>(in, own);
  from_graph_memory<<<1, 32, 0, stream>>>(own, out);
  CHECK(cudaFreeAsync(own, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&made, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(made, stream));
  CHECK(cudaStreamSynchronize(stream));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return as_other_process(argv[1]);
  void* made = nullptr;
  std::size_t pitch = 0;
  CHECK(cudaMallocPitch(&made, &pitch, 100, 10));  // 512 bytes a row
  launch(in_pitched, made, 0);
  CHECK(cudaMallocAsync(&made, 4096, nullptr));
  launch(in_pool, made, 1);
  CHECK(cudaFreeAsync(made, nullptr));
  CHECK(cudaDeviceSynchronize());
  // Where that was, and less of it.
  CHECK(cudaMallocAsync(&made, 1536, nullptr));
  launch(in_pool_again, made, 2);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaMallocFromPoolAsync(&made, 2560, pool, nullptr));
  launch(in_own_pool, made, 3);
  CHECK(cudaMallocManaged(&made, 8192));
  launch(in_managed, made, 4);
  virtual_memory();
  other_process("/proc/self/exe");
  CHECK(cudaGetSymbolAddress(&made, variable));
  launch(in_variable, made, 8);
  CHECK(cudaMallocHost(&made, 4608));
  launch(in_pinned, made, 9);
  void* there = nullptr;
  CHECK(cudaHostAlloc(&made, 5120, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&there, made, 0));
  launch(in_mapped, there, 10);
  made = std::aligned_alloc(4096, 12288);
  CHECK(cudaHostRegister(made, 12288, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&there, made, 0));
  launch(in_registered, there, 11);
  graph_memory(buffer<float>(1024 + 16 * 12));
  in_heap<<<1, 32>>>(buffer<float>(1024 + 16 * 14));
  CHECK(cudaDeviceSynchronize());
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices > 1) {
    CHECK(cudaSetDevice(1));
    made = buffer(7168);
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    launch(in_peer, made, 15);
  }
  std::printf("%d\n", devices);
  return 0;
}
