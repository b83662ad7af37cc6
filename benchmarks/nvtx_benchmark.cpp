// What NVTX's calls cost a program: run it by itself, where they lead nowhere, and watched:
//
//   pastaprof run --adapter annotations,nvtx -- nvtx_benchmark
//
// Operators are called as PyTorch's emit_nvtx() has it, four one inside the other: no text of them
// comes twice, but few names.
#include <benchmark/benchmark.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int kDeep = 4, kTexts = 4096;

void ranges(benchmark::State& state, const std::vector<std::string>& texts) {
  std::size_t next = 0;
  for (auto _ : state) {
    for (int i = 0; i < kDeep; ++i)
      nvtxRangePushA(texts[next + static_cast<std::size_t>(i)].c_str());
    for (int i = 0; i < kDeep; ++i) nvtxRangePop();
    next = (next + kDeep) % texts.size();
  }
  state.counters["a_range"] = benchmark::Counter(
      kDeep, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void annotation(benchmark::State& state) {
  std::vector<std::string> texts;
  for (int i = 0; i < kTexts; ++i)
    texts.push_back("part " + std::to_string(i % 160) + " of a step");
  ranges(state, texts);
}

void operators(benchmark::State& state) {
  constexpr const char* kNames[kDeep] = {"autograd::engine::evaluate_function: ConvolutionBackward",
                                         "ConvolutionBackward", "aten::convolution_backward",
                                         "aten::empty_like"};
  std::vector<std::string> texts;
  for (int i = 0; i < kTexts; ++i) {
    texts.push_back(std::string(kNames[i % kDeep]) + std::to_string(i / kDeep % 40) +
                    ", seq = " + std::to_string(i / kDeep) + ", op_id = " + std::to_string(i));
  }
  ranges(state, texts);
}

// In a domain, with attributes whose text is registered: what NVTX advises.
void registered(benchmark::State& state) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxEventAttributes_t given{};
  given.version = NVTX_VERSION;
  given.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  given.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  given.message.registered = nvtxDomainRegisterStringA(domain, "reduce");
  for (auto _ : state) {
    nvtxDomainRangePushEx(domain, &given);
    nvtxDomainRangePop(domain);
  }
}

void mark(benchmark::State& state) {
  for (auto _ : state) nvtxMarkA("moment");
}

constexpr int kEach = 1 << 18;
BENCHMARK(annotation)->Iterations(kEach / kDeep);
BENCHMARK(operators)->Iterations(kEach / kDeep);
BENCHMARK(registered)->Iterations(kEach);
BENCHMARK(mark)->Iterations(kEach);

}  // namespace
