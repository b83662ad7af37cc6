// How long the GPU takes from one piece of work to the next, by what CUPTI was asked for, in ns:
// gaps TURNS STATE... A state is "-" (nothing) or KINDS[:BYTES,KEPT,MS], as
// collect_nothing.cpp has them. All work of a row is queued before it may begin, so the host's
// speed has no part in it; how long the host takes to ask for a piece is told, too. Before CUPTI is
// asked for anything the same is measured as "bare"; then the states take turns. FLOOR is the
// library.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kPieces = 200;  // so many find room in a stream's queue
constexpr std::size_t kBytes = std::size_t{32} << 20;

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gaps: %s\n", cudaGetErrorString(error));
  std::exit(3);
}

// Until the host opens it, or else for a tenth of a second.
__global__ void gate(const volatile int* open, volatile int* late) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > 100'000'000) {
      *late = 1;
      break;
    }
  } while (*open == 0);
}

__global__ void empty() {}

__global__ void compute(float* to, int rounds) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) value = value * 1.0001f + 0.5f;
  if (value == 0.1f) *to = value;
}

__global__ void fill(float4* to, int count) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    to[i] = make_float4(1, 2, 3, 4);
  }
}

struct Row {
  const char* name;
  void (*add)(cudaStream_t, void*, cudaEvent_t);
};

const Row kRows[] = {
    {"empty", [](cudaStream_t stream, void*, cudaEvent_t) { empty<<<1, 32, 0, stream>>>(); }},
    {"compute",
     [](cudaStream_t stream, void* memory, cudaEvent_t) {
       compute<<<1056, 256, 0, stream>>>(static_cast<float*>(memory), 4000);
     }},
    {"write",
     [](cudaStream_t stream, void* memory, cudaEvent_t) {
       fill<<<1056, 256, 0, stream>>>(static_cast<float4*>(memory), kBytes / sizeof(float4));
     }},
    {"compute, fill",
     [](cudaStream_t stream, void* memory, cudaEvent_t) {
       compute<<<132, 256, 0, stream>>>(static_cast<float*>(memory), 1000);
       check(cudaMemsetAsync(memory, 0, 4096, stream));
     }},
    {"fill", [](cudaStream_t stream, void* memory,
                cudaEvent_t) { check(cudaMemsetAsync(memory, 0, 4096, stream)); }},
    {"large fill", [](cudaStream_t stream, void* memory,
                      cudaEvent_t) { check(cudaMemsetAsync(memory, 0, kBytes, stream)); }},
    {"compute, copy",
     [](cudaStream_t stream, void* memory, cudaEvent_t) {
       compute<<<132, 256, 0, stream>>>(static_cast<float*>(memory), 1000);
       check(cudaMemcpyAsync(memory, static_cast<char*>(memory) + 8192, 4096,
                             cudaMemcpyDeviceToDevice, stream));
     }},
    {"compute, event", [](cudaStream_t stream, void* memory, cudaEvent_t event) {
       compute<<<132, 256, 0, stream>>>(static_cast<float*>(memory), 1000);
       check(cudaEventRecord(event, stream));
     }}};

class Measure {
 public:
  Measure() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaMalloc(&memory_, kBytes));
    check(cudaHostAlloc(reinterpret_cast<void**>(&open_), 2 * sizeof(int), cudaHostAllocMapped));
    for (cudaEvent_t* event : {&begin_, &end_}) check(cudaEventCreate(event));
    check(cudaEventCreateWithFlags(&between_, cudaEventDisableTiming));
  }
  void turn(const std::string& state) {
    for (const Row& row : kRows) {
      for (const bool counts : {false, true}) {
        open_[0] = open_[1] = 0;
        gate<<<1, 1, 0, stream_>>>(open_, open_ + 1);
        check(cudaEventRecord(begin_, stream_));
        const double asked = now_ns();
        for (int i = 0; i < kPieces; ++i) row.add(stream_, memory_, between_);
        const double host_ns = (now_ns() - asked) / kPieces;
        check(cudaEventRecord(end_, stream_));
        *static_cast<volatile int*>(open_) = 1;
        check(cudaStreamSynchronize(stream_));
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin_, end_));
        if (open_[1] != 0) {
          std::fprintf(stderr, "gaps: the queue of \"%s\" was full\n", row.name);
        } else if (counts) {
          took_[state][row.name].push_back(1e6 * static_cast<double>(ms) / kPieces);
          took_[state][std::string(row.name) + ", host"].push_back(host_ns);
        }
      }
    }
  }
  void tell() {
    for (auto& [state, rows] : took_) {
      std::printf("{\"state\": \"%s\"", state.c_str());
      for (auto& [name, ns] : rows) {
        std::sort(ns.begin(), ns.end());
        std::printf(", \"%s\": [%.1f, %.1f]", name.c_str(), ns[0], ns[ns.size() / 2]);
      }
      std::printf("}\n");
    }
  }

 private:
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  int* open_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr, between_ = nullptr;
  std::map<std::string, std::map<std::string, std::vector<double>>> took_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int turns = std::atoi(argv[1]);
  Measure measure;
  for (int turn = 0; turn < turns; ++turn) measure.turn("bare");
  void* const library = dlopen(std::getenv("FLOOR"), RTLD_NOW);
  if (library == nullptr) return 4;
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "collect_begin"));
  const auto collect = reinterpret_cast<void (*)(const char*)>(dlsym(library, "collect"));
  const auto buffers =
      reinterpret_cast<void (*)(std::size_t, int, int)>(dlsym(library, "collect_buffers"));
  if (begin() != 0) return 5;
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < argc - 2; ++i) {
      const std::string state = argv[2 + (i + turn) % (argc - 2)];
      const std::size_t colon = state.find(':');
      std::size_t bytes = std::size_t{4} << 20;
      int kept = 0, flush_ms = 0;
      if (colon != std::string::npos) {
        std::sscanf(state.c_str() + colon + 1, "%zu,%d,%d", &bytes, &kept, &flush_ms);
      }
      buffers(bytes, kept, flush_ms);
      collect(state == "-" ? "" : state.substr(0, colon).c_str());
      measure.turn(state);
    }
  }
  measure.tell();
  return 0;
}
