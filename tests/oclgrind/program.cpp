// OpenCL kernels whose accesses are known: see the test for the numbers.
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "known_kernels.h"
#include "pasta/pasta.h"

namespace {

constexpr const char* kSource = R"(
kernel void vector_add(global const float* a, global const float* b, global float* c) {
  size_t i = get_global_id(0);
  c[i] = a[i] + b[i];
}
kernel void strided(global const float* a, global float* b, int stride) {
  size_t i = get_global_id(0);
  b[i] = a[i * stride];
}
kernel void transpose_naive(global const float* in, global float* out) {
  size_t x = get_global_id(0), y = get_global_id(1);
  out[x * 64 + y] = in[y * 64 + x];
}
#define TRANSPOSE(name, row)                                                       \
  kernel void name(global const float* in, global float* out) {                    \
    local float tile[32 * row];                                                    \
    size_t x = get_local_id(0), y = get_local_id(1);                               \
    size_t tx = get_group_id(0) * 32, ty = get_group_id(1) * 32;                   \
    for (size_t j = 0; j < 32; j += 8)                                             \
      tile[(y + j) * row + x] = in[(ty + y + j) * 64 + tx + x];                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                  \
    for (size_t j = 0; j < 32; j += 8)                                             \
      out[(tx + y + j) * 64 + ty + x] = tile[x * row + y + j];                     \
  }
TRANSPOSE(transpose_tile, 32)
TRANSPOSE(transpose_padded, 33)
kernel void reduce(global const float* in, global float* out) {
  local float part[64];
  size_t i = get_local_id(0);
  part[i] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t s = 32; s > 0; s /= 2) {
    if (i < s) part[i] += part[i + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i == 0) out[get_group_id(0)] = part[0];
}
kernel void histogram(global const int* in, global int* bins) {
  atomic_inc(&bins[in[get_global_id(0)] & 15]);
}
kernel void gather(global const float* in, global const int* at, global float* out) {
  size_t i = get_global_id(0);
  out[i] = in[at[i]];
}
kernel void evens(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  if (i < 1000 && i % 2 == 0) out[i] = in[i];
}
kernel void local_histogram(global int* out) {
  local int bins[8];
  size_t i = get_local_id(0);
  if (i < 8) bins[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_inc(&bins[i % 8]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < 8) out[8 * get_group_id(0) + i] = bins[i];
}
kernel void triangle(global const float* in, global float* out) {
  size_t group = get_group_id(0);
  float sum = 0;
  for (size_t i = 0; i <= group; ++i) sum += in[32 * i + get_local_id(0)];
  out[get_global_id(0)] = sum;
}
)";

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, status);
  std::exit(1);
}

class Device {
 public:
  explicit Device(const char* source) {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    cl_int status = 0;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    // Of OpenCL 2.0: the loader has to find the simulator's own, not itself.
    queue_ = clCreateCommandQueueWithProperties(context_, device, nullptr, &status);
    check(status, "clCreateCommandQueueWithProperties");
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program_, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  }
  ~Device() {
    clReleaseProgram(program_);
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Of so many bytes, all of them zero.
  cl_mem zeros(std::size_t bytes) { return buffer(std::vector<char>(bytes)); }
  template <class T>
  cl_mem buffer(std::vector<T> content) {
    cl_int status = 0;
    cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 content.size() * sizeof(T), content.data(), &status);
    check(status, "clCreateBuffer");
    return made;
  }
  void run(const char* name, std::vector<std::size_t> global, std::vector<std::size_t> local,
           const std::vector<cl_mem>& buffers, int last = -1) {
    cl_int status = 0;
    cl_kernel kernel = clCreateKernel(program_, name, &status);
    check(status, name);
    cl_uint at = 0;
    for (const cl_mem& buffer : buffers) clSetKernelArg(kernel, at++, sizeof buffer, &buffer);
    if (last >= 0) clSetKernelArg(kernel, at++, sizeof last, &last);
    check(clEnqueueNDRangeKernel(queue_, kernel, static_cast<cl_uint>(global.size()), nullptr,
                                 global.data(), local.data(), 0, nullptr, nullptr),
          name);
    check(clFinish(queue_), name);
    clReleaseKernel(kernel);
  }
  template <class T>
  T first(cl_mem buffer) {
    T value{};
    check(
        clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
    return value;
  }

 private:
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
};

std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1.0f); }

// Places of kernels, and how evenly groups are loaded.
int places(Device& device) {
  std::vector<int> at(32);
  for (int i = 0; i < 32; ++i) at[static_cast<std::size_t>(i)] = 5 * i % 32 * 16;
  cl_mem in = device.buffer(ones(512)), indices = device.buffer(at), out = device.buffer(ones(32));
  device.run("gather", {32}, {32}, {in, indices, out});
  cl_mem all = device.buffer(ones(1024)), half = device.buffer(ones(1024));
  device.run("evens", {1024}, {32}, {all, half});
  cl_mem bins = device.buffer(std::vector<int>(16, 0));
  device.run("local_histogram", {128}, {64}, {bins});
  cl_mem rows = device.buffer(ones(512)), sums = device.buffer(ones(512));
  device.run("triangle", {512}, {32}, {rows, sums});
  std::printf("%g %d\n", device.first<float>(sums), device.first<int>(bins));
  return 0;
}

// As the parts `simple` and `edges` of tests/gpu/accesses.cu.
int known(Device& device) {
  const auto zeros = [&](std::size_t bytes) { return device.zeros(bytes); };
  for (const std::size_t width : {1, 2, 4, 8, 16}) {
    device.run(("copy" + std::to_string(width)).c_str(), {1024}, {256},
               {zeros(1024 * width), zeros(1024 * width)});
  }
  cl_mem wide = zeros(4224), line = zeros(128);
  for (int step = 1; step <= 33; ++step) device.run("stride", {32}, {32}, {wide, line}, step);
  device.run("gather_sectors", {32}, {32}, {zeros(1024), line});
  device.run("gather_backwards", {32}, {32}, {zeros(256), line});
  device.run("gather_halves", {32}, {32}, {zeros(4096), line});
  cl_mem square = zeros(16384), turned = zeros(16384);
  for (const char* name : {"transpose_plain", "transpose_tile", "transpose_padded"}) {
    device.run(name, {64, 16}, {32, 8}, {square, turned});
  }
  device.run("reduction", {256}, {256}, {zeros(1024), zeros(4)});
  cl_mem none = zeros(1024), bins = zeros(1028);
  device.run("histogram", {256}, {256}, {none, bins});
  device.run("histogram_shared", {256}, {256}, {none, bins});
  device.run("odd_lanes", {32}, {32}, {line, zeros(132)});
  device.run("tail", {1024}, {256}, {zeros(4000), zeros(4004)}, 1000);
  device.run("shifted", {32}, {32}, {zeros(160), line});
  device.run("same_words", {32}, {32}, {zeros(192), line});
  device.run("behind", {1}, {1}, {zeros(1002), zeros(8)});
  std::puts("known");
  return 0;
}

// Three iterations of three launches.
int iterations(Device& device) {
  cl_mem a = device.buffer(ones(2048)), b = device.buffer(ones(2048)),
         c = device.buffer(ones(2048));
  for (int i = 0; i < 3; ++i) {
    device.run("vector_add", {1024}, {64}, {a, b, c});
    device.run("vector_add", {1024}, {64}, {c, b, a});
    device.run("strided", {256}, {64}, {a, c}, 8);
    pasta_step();
  }
  std::printf("%g\n", device.first<float>(c));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string scene = count > 1 ? arguments[1] : "";
  Device device(scene == "known" ? kKnownKernels : kSource);
  if (scene == "known") return known(device);
  if (!scene.empty()) return scene == "places" ? places(device) : iterations(device);
  cl_mem a = device.buffer(ones(1024)), b = device.buffer(ones(1024)),
         c = device.buffer(ones(1024));
  for (int i = 0; i < 2; ++i) device.run("vector_add", {1024}, {64}, {a, b, c});
  cl_mem wide = device.buffer(ones(2048)), out = device.buffer(ones(256));
  device.run("strided", {256}, {64}, {wide, out}, 8);
  cl_mem in = device.buffer(ones(4096)), turned = device.buffer(ones(4096));
  device.run("transpose_naive", {64, 64}, {32, 4}, {in, turned});
  device.run("transpose_tile", {64, 16}, {32, 8}, {in, turned});
  device.run("transpose_padded", {64, 16}, {32, 8}, {in, turned});
  cl_mem numbers = device.buffer(ones(256)), sums = device.buffer(ones(4));
  device.run("reduce", {256}, {64}, {numbers, sums});
  std::vector<int> values(512);
  for (int i = 0; i < 512; ++i) values[i] = i;
  cl_mem spread = device.buffer(values), same = device.buffer(std::vector<int>(512, 0));
  cl_mem bins = device.buffer(std::vector<int>(16, 0));
  device.run("histogram", {512}, {64}, {spread, bins});
  device.run("histogram", {512}, {64}, {same, bins});
  std::printf("%g %g %d\n", device.first<float>(c), device.first<float>(sums),
              device.first<int>(bins));
  for (cl_mem buffer : {a, b, c, wide, out, in, turned, numbers, sums, spread, same, bins}) {
    clReleaseMemObject(buffer);
  }
  return 0;
}
