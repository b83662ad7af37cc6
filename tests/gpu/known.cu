// CUDA programs whose traces are known beforehand: known MODE [NUMBER...]. What a trace must hold
// is in check.py, which runs them.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "known_kernels.cuh"
#include "pasta/pasta.h"
#include "timed_spin.cuh"

// Of cuda_profiler_api.h, which the packages of the toolkit leave out.
extern "C" cudaError_t CUDARTAPI cudaProfilerStart();
extern "C" cudaError_t CUDARTAPI cudaProfilerStop();

namespace {

int number(int argc, char** argv, int index, int otherwise) {
  return index < argc ? std::atoi(argv[index]) : otherwise;
}

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

// With C names, so that traces show them as they are here.
extern "C" {

__global__ void empty() {}
__global__ void add_one(float* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}
__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
// Reads the host's clock where the host writes it, and tells the GPU's own, `count` times; into
// `ahead` goes by how much the host's is ahead at least: what has arrived had been written before.
__global__ void compare_clocks(const volatile long long* host, volatile unsigned long long* told,
                               volatile long long* ahead, int count) {
  long long most = LLONG_MIN;
  for (int i = 0; i < count;) {
    const long long seen = *host;
    if (seen == 0) continue;  // and so the GPU's clock is read when that has arrived
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    const long long distance = seen - static_cast<long long>(now);
    most = distance > most ? distance : most;
    *told = now;
    ++i;
  }
  *ahead = most;
  __threadfence_system();
  *told = ~0ull;
}
__global__ void tell_clock(volatile unsigned long long* told) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *told = now;
}
__global__ void trap() { asm volatile("trap;"); }
__global__ void cooperative(int* count) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) atomicAdd(count, 1);
}
__global__ void __cluster_dims__(2, 1, 1) clustered() {}
}

namespace {

// `launches` of grid (i % 7 + 1, 2, 3) and block 32 on each of `streams`.
int launches(int count, int streams) {
  std::vector<cudaStream_t> all(static_cast<std::size_t>(streams));
  for (auto& stream : all) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < count; ++i) {
    for (auto stream : all) empty<<<dim3(i % 7 + 1, 2, 3), 32, 0, stream>>>();
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}

int copies(int count) {
  constexpr std::size_t kBytes = 3 << 20;
  void *one, *two, *pinned;
  CHECK(cudaMalloc(&one, kBytes));
  CHECK(cudaMalloc(&two, kBytes));
  CHECK(cudaMallocHost(&pinned, kBytes));
  std::vector<char> pageable(kBytes);
  for (int i = 0; i < count; ++i) {
    CHECK(cudaMemcpy(one, pageable.data(), kBytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(two, pinned, kBytes / 3, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(pageable.data(), one, kBytes / 2, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(pinned, two, kBytes / 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(two, one, kBytes - 4, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyPeerAsync(two, 0, one, 0, kBytes / 8));
    CHECK(cudaMemsetAsync(one, 7, kBytes / 16));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(one));
  CHECK(cudaFree(two));
  CHECK(cudaFreeHost(pinned));
  return 0;
}

// From and to memory that moves by itself: pages of the host's when they are copied first, of the
// device's when they are copied last.
int managed(int count) {
  constexpr std::size_t kBytes = 1 << 20;
  void *shared, *device;
  CHECK(cudaMallocManaged(&shared, kBytes));
  CHECK(cudaMalloc(&device, kBytes));
  std::memset(shared, 1, kBytes);
  for (int i = 0; i < count; ++i) {
    CHECK(cudaMemcpy(device, shared, kBytes, cudaMemcpyDefault));
    CHECK(cudaMemcpy(shared, device, kBytes / 2, cudaMemcpyDefault));
  }
  CHECK(cudaFree(device));
  CHECK(cudaFree(shared));
  return 0;
}

// A kernel on one stream, an event, and a kernel on another that waits for it; then the host waits.
int events(int count) {
  cudaStream_t first, second;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  cudaEvent_t event, last;
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventCreate(&last));
  for (int i = 0; i < count; ++i) {
    spin<<<1, 1, 0, first>>>(100'000);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    empty<<<1, 1, 0, second>>>();
    CHECK(cudaEventRecord(last, second));
    CHECK(cudaEventSynchronize(last));
    CHECK(cudaStreamSynchronize(first));
  }
  return 0;
}

// A graph of three kernels in a row and a fill, launched `count` times.
int graph(int count) {
  constexpr int kCount = 1 << 16;
  float* values;
  CHECK(cudaMalloc(&values, kCount * sizeof(float)));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemsetAsync(values, 0, kCount * sizeof(float), stream));
  for (int i = 0; i < 3; ++i) add_one<<<kCount / 256, 256, 0, stream>>>(values, kCount);
  cudaGraph_t made;
  CHECK(cudaStreamEndCapture(stream, &made));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, made, 0));
  for (int i = 0; i < count; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  float value = 0;
  CHECK(cudaMemcpy(&value, values, sizeof value, cudaMemcpyDeviceToHost));
  return value == 3 ? 0 : 4;
}

// One kernel three times in a row, then its graph is given another's numbers, of the same shape but
// for the grid; each is launched `count` times.
int updated_graph(int count) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto captured = [&](unsigned blocks) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; ++i) spin<<<blocks, 1, 0, stream>>>(1000);
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
  };
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, captured(1), 0));
  for (int i = 0; i < count; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  cudaGraphExecUpdateResultInfo result;
  CHECK(cudaGraphExecUpdate(exec, captured(2), &result));
  for (int i = 0; i < count; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  return 0;
}

// A graph that is made and launched before a range, and `count` times in it.
int late_range(int count) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t made;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 3; ++i) spin<<<1, 1, 0, stream>>>(1000);
  CHECK(cudaStreamEndCapture(stream, &made));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, made, 0));
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const uint64_t range = pasta_begin("inside");
  for (int i = 0; i < count; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  pasta_end(range);
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  return 0;
}

int threads(int count, int of_each) {
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([=] {
      cudaStream_t stream;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int k = 0; k < of_each; ++k) empty<<<k % 5 + 1, 64, 0, stream>>>();
      CHECK(cudaStreamSynchronize(stream));
    });
  }
  for (auto& thread : all) thread.join();
  return 0;
}

int special() {
  int* count;
  CHECK(cudaMalloc(&count, sizeof *count));
  CHECK(cudaMemset(count, 0, sizeof *count));
  void* arguments[] = {&count};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cooperative), dim3(8), dim3(64),
                                    arguments, 0, nullptr));
  clustered<<<16, 32>>>();
  CHECK(cudaDeviceSynchronize());
  return 0;
}

// The program's own error must stay what it is.
int trapping(int before) {
  for (int i = 0; i < before; ++i) empty<<<1, 32>>>();
  CHECK(cudaDeviceSynchronize());
  // What CUPTI has not yet read from the device goes with it.
  usleep(300'000);
  trap<<<1, 1>>>();
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%d\n", static_cast<int>(error));
  return error == cudaSuccess ? 1 : 5;
}

int reset(int of_each) {
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < of_each; ++i) empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    if (k < 2) CHECK(cudaDeviceReset());
  }
  return 0;
}

// Contexts of the driver's, each destroyed when what was launched in it is done.
int contexts(int of_each) {
  CUresult (*create)(CUcontext*, unsigned, CUdevice) = nullptr;
  CUresult (*destroy)(CUcontext) = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuCtxCreate", reinterpret_cast<void**>(&create), 11000,
                                         cudaEnableDefault, &found));
  CHECK(cudaGetDriverEntryPointByVersion("cuCtxDestroy", reinterpret_cast<void**>(&destroy), 11000,
                                         cudaEnableDefault, &found));
  for (int k = 0; k < 3; ++k) {
    CUcontext context;
    if (create(&context, 0, 0) != CUDA_SUCCESS) return 6;
    for (int i = 0; i < of_each; ++i) empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    if (destroy(context) != CUDA_SUCCESS) return 6;
  }
  return 0;
}

// Two devices of one process: `count` kernels on the first and twice as many on the second, as many
// copies from the first to the second, of 1 MiB, and back, of 256 KiB. 77 where there is but one.
int peers(int count) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return 77;
  constexpr std::size_t kBytes = 1 << 20;
  void* memory[2];
  cudaStream_t stream[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaMalloc(&memory[i], kBytes));
    CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    int can = 0;
    CHECK(cudaDeviceCanAccessPeer(&can, i, 1 - i));
    if (can != 0) CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
  }
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < 2; ++i) {
      CHECK(cudaSetDevice(i));
      for (int n = 0; n <= i; ++n) empty<<<1, 32, 0, stream[i]>>>();
      CHECK(cudaMemcpyPeerAsync(memory[1 - i], 1 - i, memory[i], i, kBytes >> 2 * i, stream[i]));
    }
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamSynchronize(stream[i]));
  }
  return 0;
}

// Two children, forked before CUDA begins, and the parent: each launches.
int forking(int of_each) {
  std::vector<pid_t> children;
  for (int k = 0; k < 2; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < of_each; ++i) empty<<<1, 32>>>();
      CHECK(cudaDeviceSynchronize());
      // One ends as programs do, the other as Python's forked workers do.
      if (k == 0) std::exit(0);
      _exit(0);
    }
    children.push_back(child);
  }
  for (int i = 0; i < of_each; ++i) empty<<<1, 32>>>();
  CHECK(cudaDeviceSynchronize());
  int bad = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  return bad;
}

long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

// By how much CLOCK_MONOTONIC is ahead of the GPU's own clock. Neither way is supposed to be as
// long as the other: a time of the host's that the GPU has seen had passed, and a time of the GPU's
// that the host has seen, too; and what the host reads from the GPU's timer is of after it began to
// read and of before it had it. In between lies the truth.
struct Clock {
  long long least_ns = 0;
  long long most_ns = 0;
};

// Its steps, on an H200.
constexpr long long kTickNs = 32;

// The registers of the timer, which programs may read where the driver maps them: TIME_0 and TIME_1
// of the class USERMODE in NVIDIA's open documentation. Of several GPUs' the one that was read just
// before a kernel read its own. None where they are not found.
const volatile unsigned* find_timer() {
  constexpr unsigned long kRegisters = 0x10000;
  unsigned long long* told = nullptr;
  CHECK(cudaMallocHost(&told, sizeof *told));
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  const volatile unsigned* timer = nullptr;
  unsigned long long nearest = 1'000'000'000;
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    const char* device = std::strstr(line, "/dev/nvidia");
    if (device == nullptr || device[11] < '0' || device[11] > '9' ||
        std::sscanf(line, "%lx-%lx", &begin, &end) != 2 || end - begin != kRegisters) {
      continue;
    }
    const auto* found = reinterpret_cast<const volatile unsigned*>(begin);
    const unsigned long long then =
        static_cast<unsigned long long>(found[0x84 / 4]) << 32 | found[0x80 / 4];
    tell_clock<<<1, 1>>>(told);
    CHECK(cudaDeviceSynchronize());
    if (*told > then && *told - then < nearest) {
      nearest = *told - then;
      timer = found;
    }
  }
  if (maps != nullptr) std::fclose(maps);
  return timer;
}

// From reading the timer.
Clock read_timer(const volatile unsigned* timer) {
  Clock clock{LLONG_MIN, LLONG_MAX};
  for (int i = 0; i < 2000; ++i) {
    const unsigned high = timer[0x84 / 4];
    const long long before = now_ns();
    const unsigned low = timer[0x80 / 4];
    const long long after = now_ns();
    if (timer[0x84 / 4] != high) continue;
    const auto told = static_cast<long long>(static_cast<unsigned long long>(high) << 32 | low);
    clock.least_ns = std::max(clock.least_ns, before - told - kTickNs);
    clock.most_ns = std::min(clock.most_ns, after - told);
  }
  return clock;
}

Clock read_clock() {
  constexpr int kCount = 2000;
  static long long* host = nullptr;  // host's clock, and the answer
  static unsigned long long* told = nullptr;
  if (host == nullptr) {
    CHECK(cudaMallocHost(&host, 256));
    CHECK(cudaMallocHost(&told, 256));
  }
  volatile long long* clock = host;
  volatile unsigned long long* answer = told;
  *clock = 0;
  *answer = 0;
  compare_clocks<<<1, 1>>>(host, told, host + 16, kCount);
  long long most_ns = LLONG_MAX;
  for (unsigned long long last = 0;;) {
    *clock = now_ns();
    const unsigned long long seen = *answer;
    if (seen == ~0ull) break;
    if (seen == last) continue;
    last = seen;
    const long long distance = now_ns() - static_cast<long long>(seen);
    most_ns = distance < most_ns ? distance : most_ns;
  }
  CHECK(cudaDeviceSynchronize());
  static const volatile unsigned* const timer = find_timer();
  Clock bounds{clock[16] - kTickNs, most_ns};
  if (timer != nullptr) {
    const Clock other = read_timer(timer);
    bounds.least_ns = std::max(bounds.least_ns, other.least_ns);
    bounds.most_ns = std::min(bounds.most_ns, other.most_ns);
  }
  return bounds;
}

// Kernels of known length by the GPU's own clock, and a pause before each: prints the first and the
// last reading of it, as times of CLOCK_MONOTONIC, what CUDA's events say of the length, how far
// apart the bounds are between which that clock lies, and how long the event after it comes after
// the one before, all in ns.
int timing(int count, int pause_us, int device) {
  CHECK(cudaSetDevice(device));
  constexpr int kBlocks = 132;
  unsigned long long* readings;
  std::vector<unsigned long long> read(2 * kBlocks);
  CHECK(cudaMalloc(&readings, read.size() * sizeof read[0]));
  cudaEvent_t before, after, last;
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventCreate(&after));
  CHECK(cudaEventCreate(&last));
  timed_spin<<<kBlocks, 32>>>(1000, readings);
  read_clock();
  for (int i = 0; i < count; ++i) {
    usleep(static_cast<unsigned>(pause_us));
    const Clock first = read_clock();
    CHECK(cudaEventRecord(before));
    timed_spin<<<kBlocks, 32>>>(200'000ull * static_cast<unsigned>(i % 10 + 1), readings);
    CHECK(cudaEventRecord(after));
    CHECK(cudaDeviceSynchronize());
    const Clock second = read_clock();
    CHECK(cudaMemcpy(read.data(), readings, read.size() * sizeof read[0], cudaMemcpyDeviceToHost));
    float ms = 0, since_last_ms = 0;
    CHECK(cudaEventElapsedTime(&ms, before, after));
    if (i > 0) CHECK(cudaEventElapsedTime(&since_last_ms, last, after));
    std::swap(last, after);
    unsigned long long begin = read[0], end = read[1];
    for (std::size_t k = 0; k < read.size(); k += 2) {
      begin = read[k] < begin ? read[k] : begin;
      end = read[k + 1] > end ? read[k + 1] : end;
    }
    // The clocks part by less than what is not known of either.
    const long long offset_ns =
        (first.least_ns + first.most_ns) / 4 + (second.least_ns + second.most_ns) / 4;
    const long long first_ns = first.most_ns - first.least_ns;
    const long long second_ns = second.most_ns - second.least_ns;
    std::printf("%lld %lld %.0f %lld %.0f\n", static_cast<long long>(begin) + offset_ns,
                static_cast<long long>(end) + offset_ns, static_cast<double>(ms) * 1e6,
                first_ns > second_ns ? first_ns : second_ns,
                static_cast<double>(since_last_ms) * 1e6);
  }
  return 0;
}

// Launches by the driver alone, as compilers of kernels make them: each second one by
// cuLaunchKernelEx(). The kernels are of this program's module; its handle comes by the runtime.
class ByDriver {
 public:
  ByDriver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) std::exit(4);
    const auto find = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::decay_t<decltype(to)>>(dlsym(library, name));
      if (to == nullptr) std::exit(4);
    };
    find(launch_, "cuLaunchKernel");
    find(launch_ex_, "cuLaunchKernelEx");
    find(wait_, "cuCtxSynchronize");
    CHECK(cudaGetFuncBySymbol(&empty_, reinterpret_cast<const void*>(empty)));
    CHECK(cudaGetFuncBySymbol(&spin_, reinterpret_cast<const void*>(spin)));
  }
  void empty_kernel() { launch(empty_, 32, nullptr); }
  void spin_kernel() {
    long long cycles = 1000;
    void* parameters[] = {&cycles};
    launch(spin_, 1, parameters);
  }
  void wait() {
    if (wait_() != CUDA_SUCCESS) std::exit(6);
  }

 private:
  void launch(CUfunction function, unsigned threads, void** parameters) {
    CUlaunchConfig config{};
    config.gridDimX = 2;
    config.blockDimX = threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    const CUresult result =
        launched_++ % 2 == 0
            ? launch_(function, 2, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr)
            : launch_ex_(&config, function, parameters, nullptr);
    if (result != CUDA_SUCCESS) std::exit(6);
  }
  decltype(&cuLaunchKernel) launch_;
  decltype(&cuLaunchKernelEx) launch_ex_;
  decltype(&cuCtxSynchronize) wait_;
  cudaFunction_t empty_, spin_;
  int launched_ = 0;
};

int driver(int count) {
  ByDriver by_driver;
  for (int i = 0; i < count; ++i) by_driver.empty_kernel();
  by_driver.wait();
  return 0;
}

// The same in steps that are told of: ten of "spin" in each of the third ten, around which are also
// a range, and start and stop of the profiler; before and after "empty".
int driver_steps(int count) {
  ByDriver by_driver;
  uint64_t range = 0;
  for (int i = 0; i < count; ++i) {
    pasta_step();
    if (i == 20) {
      CHECK(cudaProfilerStart());
      range = pasta_begin("inside");
    }
    for (int k = 0; k < 10; ++k) i / 10 == 2 ? by_driver.spin_kernel() : by_driver.empty_kernel();
    by_driver.wait();
    if (i == 29) {
      pasta_end(range);
      CHECK(cudaProfilerStop());
    }
  }
  pasta_step();
  return 0;
}

// As ranges() below.
int driver_ranges(int count) {
  ByDriver by_driver;
  for (int i = 0; i < count; ++i) {
    const uint64_t range = pasta_begin("inside");
    for (int k = 0; k < 10; ++k) by_driver.spin_kernel();
    pasta_end(range);
    for (int k = 0; k < 10; ++k) by_driver.empty_kernel();
  }
  by_driver.wait();
  return 0;
}

// Kernels inside of a range, and others outside.
int ranges(int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t range = pasta_begin("inside");
    for (int k = 0; k < 10; ++k) spin<<<1, 1>>>(1000);
    pasta_end(range);
    for (int k = 0; k < 10; ++k) empty<<<1, 32>>>();
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}

// Microseconds for a launch of 10,000 empty kernels.
double launch_us() {
  const double begin = seconds();
  for (int i = 0; i < 10'000; ++i) empty<<<1, 32>>>();
  CHECK(cudaDeviceSynchronize());
  return (seconds() - begin) * 100;
}

// `rounds` of them, by round, the warm-up left out.
int storm(int rounds) {
  launch_us();
  for (int k = 0; k < rounds; ++k) std::printf("%.4f\n", launch_us());
  std::fprintf(stderr, "end_ns %lld\n", now_ns());
  return 0;
}

// The same in turns with whatever watches it off and on: both, by round.
int storm_in_turns(int rounds) {
  CHECK(cudaFree(nullptr));
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  void (*floor)(int) = nullptr;
  if (library != nullptr) {
    floor = reinterpret_cast<void (*)(int)>(dlsym(library, "collect_nothing"));
  }
  const auto watch = [&](bool on) {
    if (floor != nullptr) {
      floor(on ? 1 : 0);
    } else if (on) {
      pasta_start();
    } else {
      pasta_stop();
    }
  };
  launch_us();
  for (int k = 0; k < rounds; ++k) {
    double us[2];
    // Each is first as often as the other.
    for (const bool on : {k % 2 == 1, k % 2 == 0}) {
      watch(on);
      for (int i = 0; i < 100; ++i) empty<<<1, 32>>>();
      CHECK(cudaDeviceSynchronize());
      us[on ? 1 : 0] = launch_us();
    }
    std::printf("%.4f %.4f\n", us[0], us[1]);
  }
  return 0;
}

// A graph that was captured inside of ranges: two kernels in "first" and one in "second"; launched
// `count` times in a range of its own.
int scoped_graph(int count) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t made;
  {
    const pasta::annotate capture("capture");
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    {
      const pasta::annotate first("first");
      for (int i = 0; i < 2; ++i) spin<<<1, 1, 0, stream>>>(1000);
    }
    {
      const pasta::annotate second("second");
      spin<<<1, 1, 0, stream>>>(1000);
    }
    CHECK(cudaStreamEndCapture(stream, &made));
  }
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, made, 0));
  {
    const pasta::annotate replay("replay");
    for (int i = 0; i < count; ++i) CHECK(cudaGraphLaunch(exec, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  return 0;
}

// Kernels between start and stop of the profiler, and others before and after.
int profiled(int count, bool by_driver) {
  CUresult (*start)() = nullptr;
  CUresult (*stop)() = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuProfilerStart", reinterpret_cast<void**>(&start), 12000,
                                         cudaEnableDefault, &found));
  CHECK(cudaGetDriverEntryPointByVersion("cuProfilerStop", reinterpret_cast<void**>(&stop), 12000,
                                         cudaEnableDefault, &found));
  const auto others = [&] {
    for (int i = 0; i < count; ++i) empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
  };
  others();
  if (by_driver ? start() != CUDA_SUCCESS : cudaProfilerStart() != cudaSuccess) return 6;
  for (int i = 0; i < count; ++i) spin<<<1, 1>>>(1000);
  CHECK(cudaDeviceSynchronize());
  if (by_driver ? stop() != CUDA_SUCCESS : cudaProfilerStop() != cudaSuccess) return 6;
  others();
  return 0;
}

// Steps that are told of, ten kernels in each: "spin" in the third ten of them, else "empty".
int steps(int count) {
  for (int i = 0; i < count; ++i) {
    pasta_step();
    for (int k = 0; k < 10; ++k) {
      if (i / 10 == 2) {
        spin<<<1, 1>>>(1000);
      } else {
        empty<<<1, 32>>>();
      }
    }
    CHECK(cudaDeviceSynchronize());
  }
  pasta_step();
  return 0;
}

// Launches that the program itself gives numbers to, by the CUPTI that is there.
int external(int count) {
  CHECK(cudaFree(nullptr));
  void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 7;
  using Push = int (*)(int, unsigned long long);
  using Pop = int (*)(int, unsigned long long*);
  const auto push =
      reinterpret_cast<Push>(dlsym(library, "cuptiActivityPushExternalCorrelationId"));
  const auto pop = reinterpret_cast<Pop>(dlsym(library, "cuptiActivityPopExternalCorrelationId"));
  if (push == nullptr || pop == nullptr) return 7;
  constexpr int kCustom0 = 3;
  for (int i = 0; i < count; ++i) {
    if (push(kCustom0, 1000ull + static_cast<unsigned>(i)) != 0) return 8;
    empty<<<1, 32>>>();
    unsigned long long last = 0;
    if (pop(kCustom0, &last) != 0) return 8;
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int first = number(argc, argv, 2, 100);
  if (mode == "launches") return launches(first, number(argc, argv, 3, 4));
  if (mode == "copies") return copies(first);
  if (mode == "managed") return managed(first);
  if (mode == "updated_graph") return updated_graph(first);
  if (mode == "late_range") return late_range(first);
  if (mode == "contexts") return contexts(first);
  if (mode == "peers") return peers(first);
  if (mode == "events") return events(first);
  if (mode == "graph") return graph(first);
  if (mode == "threads") return threads(first, number(argc, argv, 3, 1000));
  if (mode == "special") return special();
  if (mode == "trap") return trapping(first);
  if (mode == "reset") return reset(first);
  if (mode == "fork") return forking(first);
  if (mode == "timing") {
    return timing(first, number(argc, argv, 3, 0), number(argc, argv, 4, 0));
  }
  if (mode == "driver") return driver(first);
  if (mode == "driver_steps") return driver_steps(first);
  if (mode == "driver_ranges") return driver_ranges(first);
  if (mode == "ranges") return ranges(first);
  if (mode == "storm") return storm(first);
  if (mode == "storm_in_turns") return storm_in_turns(first);
  if (mode == "scoped_graph") return scoped_graph(first);
  if (mode == "profiler_api") return profiled(first, false);
  if (mode == "profiler_driver") return profiled(first, true);
  if (mode == "steps") return steps(first);
  if (mode == "external") return external(first);
  std::fprintf(stderr, "known: no mode \"%s\"\n", mode.c_str());
  return 2;
}
