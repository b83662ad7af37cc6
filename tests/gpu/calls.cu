// What calls of CUDA cost, by what watches them, in ns: calls STATE...
// A state is "as it is"; "start" and "stop": of PASTA; "inside" and "after": of a range of that
// name; and of the collector that does nothing, loaded late or by CUDA_INJECTION64_PATH: "begin",
// "+KINDS", "-" (nothing) and "end". For each the state, and of each call the least and the median.
// The thread is put on the core that is fastest just before; what was measured while it was slow is
// left out.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pasta/pasta.h"

namespace {

__global__ void empty() {}

constexpr int kTurns = 60;
constexpr double kSlow = 1.5;  // times what a core takes at best

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double spin_ns() {
  const double begin = now_ns();
  for (volatile int i = 0; i < 20'000; i = i + 1) {
  }
  return now_ns() - begin;
}

class Cores {
 public:
  Cores() { sched_getaffinity(0, sizeof all_, &all_); }
  void take_fastest() {
    double least = 1e18;
    int fastest = 0;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &all_)) continue;
      take(core);
      const double ns = std::min(spin_ns(), spin_ns());
      if (ns < least) least = ns, fastest = core;
    }
    take(fastest);
    best_ = std::min(best_, least);
  }
  bool is_slow() const { return std::min(spin_ns(), spin_ns()) > kSlow * best_; }

 private:
  static void take(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  cpu_set_t all_;
  double best_ = 1e18;
};

template <class Call>
double each_ns(int count, Call&& call) {
  const double begin = now_ns();
  for (int i = 0; i < count; ++i) call();
  return (now_ns() - begin) / count;
}

void measure(const char* state, cudaStream_t stream) {
  static Cores cores;
  static void* memory[2] = {};
  static cudaEvent_t event = nullptr;
  if (event == nullptr) {
    for (auto& each : memory) cudaMalloc(&each, 4096);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  const char* const names[] = {"cudaGetDevice",       "cudaStreamIsCapturing", "cudaEventQuery",
                               "cudaEventRecord",     "cudaMemcpyAsync",       "launch",
                               "launch, the GPU idle"};
  constexpr int kNames = 7;
  std::vector<double> took[kNames];
  for (int turn = 0; turn < kTurns; ++turn) {
    cores.take_fastest();
    for (int i = 0; i < 50; ++i) empty<<<1, 32, 0, stream>>>();
    cudaStreamSynchronize(stream);
    int device;
    cudaStreamCaptureStatus status;
    double ns[kNames];
    ns[0] = each_ns(400, [&] { cudaGetDevice(&device); });
    ns[1] = each_ns(400, [&] { cudaStreamIsCapturing(stream, &status); });
    ns[2] = each_ns(200, [&] { cudaEventQuery(event); });
    ns[3] = each_ns(100, [&] { cudaEventRecord(event, stream); });
    cudaStreamSynchronize(stream);
    ns[4] = each_ns(100, [&] {
      cudaMemcpyAsync(memory[0], memory[1], 1024, cudaMemcpyDeviceToDevice, stream);
    });
    cudaStreamSynchronize(stream);
    ns[5] = each_ns(200, [&] { empty<<<1, 32, 0, stream>>>(); });
    cudaStreamSynchronize(stream);
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      sum += each_ns(1, [&] { empty<<<1, 32, 0, stream>>>(); });
      for (const double until = now_ns() + 12'000; now_ns() < until;) {
      }
    }
    ns[6] = sum / 100;
    cudaStreamSynchronize(stream);
    if (cores.is_slow()) continue;
    for (int i = 0; i < kNames; ++i) took[i].push_back(ns[i]);
  }
  std::printf("{\"state\": \"%s\", \"turns\": %zu", state, took[0].size());
  for (int i = 0; i < kNames && !took[i].empty(); ++i) {
    std::sort(took[i].begin(), took[i].end());
    std::printf(", \"%s\": [%.1f, %.1f]", names[i], took[i][0], took[i][took[i].size() / 2]);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 3;
  uint64_t range = 0;
  const auto of_floor = [](const char* name) {
    static void* const library = dlopen(std::getenv("FLOOR"), RTLD_NOW);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) std::exit(4);
    return found;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string state = argv[i];
    if (state == "start") {
      pasta_start();
    } else if (state == "stop") {
      pasta_stop();
    } else if (state == "inside") {
      range = pasta_begin("inside");
    } else if (state == "after") {
      pasta_end(range);
    } else if (state == "begin" || state == "end") {
      const auto call = reinterpret_cast<int (*)()>(of_floor(("collect_" + state).c_str()));
      if (call() != 0) return 5;
    } else if (state[0] == '+' || state == "-") {
      reinterpret_cast<void (*)(const char*)>(of_floor("collect"))(state.c_str() + 1);
    } else if (state != "as it is") {
      return 2;
    }
    measure(state.c_str(), stream);
  }
  return 0;
}
