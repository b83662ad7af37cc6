// Each way in which a kernel can come to run: launches PART. What is to be counted of each is in
// known_accesses.py. Linked with the device's runtime, which accesses.cu is not.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "known_kernels.cuh"

// Each item reads a word and writes one.
#define COPIES(name)                                             \
  extern "C" __global__ void name(const float* in, float* out) { \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;    \
    out[i] = in[i];                                              \
  }
COPIES(by_cooperation)
COPIES(by_cluster)
COPIES(after_another)
COPIES(on_own_stream)
COPIES(with_priority)
COPIES(in_child_graph)
COPIES(in_chain_a)
COPIES(in_chain_b)
COPIES(in_chain_c)
COPIES(in_fork_a)
COPIES(in_fork_b)
COPIES(under_condition)
COPIES(around_loop)
COPIES(by_kernel)
COPIES(by_graph_of_device)
COPIES(known_last)

extern "C" {
__global__ void busy(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
__global__ void loop(cudaGraphConditionalHandle handle, const unsigned* in, unsigned* rounds) {
  const unsigned round = in[0] + atomicAdd(rounds, 1u);
  cudaGraphSetConditional(handle, round + 1 < 3 ? 1 : 0);
}
__global__ void launches_kernels(const float* in, float* out) {
  by_kernel<<<1, 32>>>(in, out);
  by_kernel<<<2, 32>>>(in, out);
}
__global__ void launches_graph(cudaGraphExec_t graph) {
  cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}
}

namespace {

// As a compiler that runs in the program would have it: copies a word of each item.
constexpr const char* kLoaded =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry loaded(.param .u64 in, .param .u64 out) {\n"
    ".reg .u64 %a, %b, %i;\n.reg .u32 %t, %v;\n"
    "ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\n"
    "cvta.to.global.u64 %a, %a;\ncvta.to.global.u64 %b, %b;\n"
    "mov.u32 %t, %tid.x;\nmul.wide.u32 %i, %t, 4;\n"
    "add.u64 %a, %a, %i;\nadd.u64 %b, %b, %i;\n"
    "ld.global.u32 %v, [%a];\nst.global.u32 [%b], %v;\nret;\n}\n";

struct Pair {
  const float* in;
  float* out;
};
Pair pair(int number) {
  return {buffer<float>(1024 + 32 * number), buffer<float>(1040 + 32 * number)};
}

void plain() {
  auto [in, out] = pair(0);
  void* arguments[] = {&in, &out};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(by_cooperation), dim3(2), dim3(32),
                                    arguments, 0, nullptr));
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
  config.gridDim = 4;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  const Pair second = pair(1);
  CHECK(cudaLaunchKernelEx(&config, by_cluster, second.in, second.out));
  // Begins before the one before it has ended.
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const Pair third = pair(2);
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaLaunchKernelEx(&config, after_another, third.in, third.out));
  }
  const Pair fourth = pair(3);
  on_own_stream<<<1, 32, 0, cudaStreamPerThread>>>(fourth.in, fourth.out);
  int least = 0, most = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &most));
  cudaStream_t urgent;
  CHECK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, most));
  const Pair fifth = pair(4);
  CHECK(cudaDeviceSynchronize());
  with_priority<<<1, 32, 0, urgent>>>(fifth.in, fifth.out);
  CHECK(cudaDeviceSynchronize());
}

// A module that is loaded, and again after it was unloaded, with other numbers of its own.
void modules() {
  const auto load = driver<decltype(&cuModuleLoadData)>("cuModuleLoadData", 12000);
  const auto find = driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", 12000);
  const auto unload = driver<decltype(&cuModuleUnload)>("cuModuleUnload", 12000);
  const auto start = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel", 12000);
  CHECK(cudaFree(nullptr));
  for (int round = 0; round < 3; ++round) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    if (load(&module, kLoaded) != 0 || find(&function, module, "loaded") != 0) std::exit(5);
    Pair both = pair(10 + round);
    std::size_t bytes = sizeof both;
    void* buffered[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &both, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                        CU_LAUNCH_PARAM_END};
    if (start(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, buffered) != 0) std::exit(5);
    CHECK(cudaDeviceSynchronize());
    if (unload(module) != 0) std::exit(5);
  }
}

cudaGraph_t graph_of(void (*kernel)(const float*, float*), const Pair& both, int count) {
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < count; ++i) kernel<<<1, 32, 0, stream>>>(both.in, both.out);
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}
void run(cudaGraph_t graph, int times) {
  cudaGraphExec_t made;
  CHECK(cudaGraphInstantiate(&made, graph, 0));
  // So that all of them have been launched before the first runs.
  if (times > 1) busy<<<1, 1>>>(50'000'000);
  for (int i = 0; i < times; ++i) CHECK(cudaGraphLaunch(made, nullptr));
  CHECK(cudaDeviceSynchronize());
}

void child_graphs() {
  cudaGraph_t whole;
  cudaGraphNode_t first, second;
  cudaGraph_t part = graph_of(in_child_graph, pair(5), 2);
  CHECK(cudaGraphCreate(&whole, 0));
  CHECK(cudaGraphAddChildGraphNode(&first, whole, nullptr, 0, part));
  CHECK(cudaGraphAddChildGraphNode(&second, whole, &first, 1, part));
  run(whole, 3);
}

// A graph of kernels one behind the other, of which the first comes twice; and one of kernels side
// by side between two others.
void mixed_graphs() {
  cudaStream_t first, second;
  cudaEvent_t begun, over;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreate(&begun));
  CHECK(cudaEventCreate(&over));
  const Pair a = pair(30), b = pair(31), again = pair(32), c = pair(33);
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  in_chain_a<<<1, 32, 0, first>>>(a.in, a.out);
  in_chain_b<<<2, 32, 0, first>>>(b.in, b.out);
  in_chain_a<<<1, 32, 0, first>>>(again.in, again.out);
  in_chain_c<<<3, 32, 0, first>>>(c.in, c.out);
  CHECK(cudaStreamEndCapture(first, &graph));
  run(graph, 3);
  const Pair left = pair(34), right = pair(35), front = pair(36), last = pair(37);
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  in_chain_b<<<2, 32, 0, first>>>(front.in, front.out);
  CHECK(cudaEventRecord(begun, first));
  CHECK(cudaStreamWaitEvent(second, begun, 0));
  in_fork_a<<<1, 32, 0, first>>>(left.in, left.out);
  in_fork_b<<<1, 32, 0, second>>>(right.in, right.out);
  CHECK(cudaEventRecord(over, second));
  CHECK(cudaStreamWaitEvent(first, over, 0));
  in_chain_c<<<3, 32, 0, first>>>(last.in, last.out);
  CHECK(cudaStreamEndCapture(first, &graph));
  run(graph, 3);
}

// A graph of a kernel twice, and the same kernel by itself.
void first_of_graph() {
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreate(&stream));
  const Pair first = pair(38), second = pair(39), plain = pair(40);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  in_chain_a<<<1, 32, 0, stream>>>(first.in, first.out);
  in_chain_a<<<1, 32, 0, stream>>>(second.in, second.out);
  CHECK(cudaStreamEndCapture(stream, &graph));
  run(graph, 1);
  for (int i = 0; i < 3; ++i) in_chain_a<<<1, 32>>>(plain.in, plain.out);
  CHECK(cudaDeviceSynchronize());
}

// Adds to what the body of a condition is a kernel, and gives the body.
cudaGraph_t conditional(cudaGraph_t graph, cudaGraphConditionalHandle handle,
                        cudaGraphConditionalNodeType type) {
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = 1;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
  return parameters.conditional.phGraph_out[0];
}
void add(cudaGraph_t graph, void* kernel, void** arguments, cudaGraphNode_t* after,
         cudaGraphNode_t* made) {
  cudaKernelNodeParams parameters{};
  parameters.func = kernel;
  parameters.gridDim = 1;
  parameters.blockDim = kernel == reinterpret_cast<void*>(loop) ? 1 : 32;
  parameters.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(made, graph, after, after == nullptr ? 0 : 1, &parameters));
}
// One that is so, one that is not, and a loop that is gone round three times.
void conditions() {
  Pair both = pair(6), around = pair(7);
  void* arguments[] = {&both.in, &both.out};
  for (const unsigned is_so : {1u, 0u}) {
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, is_so, cudaGraphCondAssignDefault));
    add(conditional(graph, handle, cudaGraphCondTypeIf), reinterpret_cast<void*>(under_condition),
        arguments, nullptr, &node);
    run(graph, 2);
  }
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;
  cudaGraphNode_t node, last;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t body = conditional(graph, handle, cudaGraphCondTypeWhile);
  void* of_copy[] = {&around.in, &around.out};
  add(body, reinterpret_cast<void*>(around_loop), of_copy, nullptr, &node);
  unsigned *zero = buffer<unsigned>(4), *rounds = buffer<unsigned>(8);
  void* of_loop[] = {&handle, &zero, &rounds};
  add(body, reinterpret_cast<void*>(loop), of_loop, &node, &last);
  run(graph, 1);
  unsigned seen = 0;
  CHECK(cudaMemcpy(&seen, rounds, sizeof seen, cudaMemcpyDeviceToHost));
  std::printf("%u rounds\n", seen);
}

// A kernel that launches kernels, twice.
void kernels_of_kernels() {
  const Pair both = pair(8);
  for (int i = 0; i < 2; ++i) launches_kernels<<<1, 1>>>(both.in, both.out);
  CHECK(cudaDeviceSynchronize());
}
// A graph whose kernel launches another graph.
void graphs_of_kernels() {
  cudaGraphExec_t inner, outer;
  CHECK(cudaGraphInstantiate(&inner, graph_of(by_graph_of_device, pair(9), 1),
                             cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphUpload(inner, nullptr));
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launches_graph<<<1, 1, 0, stream>>>(inner);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&outer, graph, 0));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaGraphLaunch(outer, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  if (part == "plain") plain();
  if (part == "modules") modules();
  if (part == "child_graphs") child_graphs();
  if (part == "mixed_graphs") mixed_graphs();
  if (part == "first_of_graph") first_of_graph();
  if (part == "conditions") conditions();
  if (part == "of_kernels") kernels_of_kernels();
  if (part == "of_graphs") graphs_of_kernels();
  // What comes after is as ever.
  const Pair both = pair(20);
  known_last<<<1, 32>>>(both.in, both.out);
  CHECK(cudaDeviceSynchronize());
  std::puts("done");
  return 0;
}
