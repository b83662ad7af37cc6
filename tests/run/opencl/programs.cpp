// OpenCL programs with known answers, to be watched. Each checks its own results: what it computes
// must not change when somebody looks. Sizes are arguments, so that a test knows all counts.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* kSource = R"(
kernel void vector_add(global const float* a, global const float* b, global float* c) {
  size_t i = get_global_id(0);
  c[i] = a[i] + b[i];
}
kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void matrix_product(global const float* a, global const float* b, global float* c, int n) {
  local float tile_a[8][8], tile_b[8][8];
  int x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
  float sum = 0;
  for (int t = 0; t < n; t += 8) {
    tile_a[ly][lx] = a[y * n + t + lx];
    tile_b[ly][lx] = b[(t + ly) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k) sum += tile_a[ly][k] * tile_b[k][lx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}
kernel void reduce(global const int* in, global int* out, local int* part) {
  size_t l = get_local_id(0);
  part[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t s = get_local_size(0) / 2; s > 0; s /= 2) {
    if (l < s) part[l] += part[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = part[0];
}
kernel void scale(global int* data, int by) { data[get_global_id(0)] *= by; }
kernel void shift(global int* data, int by) { data[get_global_id(0)] += by; }
kernel void stencil(global const float* in, global float* out, int n) {
  int i = get_global_id(0);
  out[i] = (in[i > 0 ? i - 1 : 0] + in[i] + in[i + 1 < n ? i + 1 : i]) / 3;
}
kernel void residual(global const float* a, global const float* b, global float* out) {
  int i = get_global_id(0);
  out[i] = fabs(a[i] - b[i]);
}
)";

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, status);
  std::exit(2);
}

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(3);
}

struct OpenCl {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_program program = nullptr;

  OpenCl() {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int status = 0;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    const char* source = kSource;
    program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  }
  ~OpenCl() {
    clReleaseProgram(program);
    clReleaseContext(context);
  }
  OpenCl(const OpenCl&) = delete;
  OpenCl& operator=(const OpenCl&) = delete;

  cl_command_queue queue(cl_command_queue_properties properties = 0) const {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_int status = 0;
    cl_command_queue made = clCreateCommandQueueWithProperties(context, device, list, &status);
    check(status, "clCreateCommandQueueWithProperties");
    return made;
  }
  cl_mem buffer(std::size_t bytes) const {
    cl_int status = 0;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    check(status, "clCreateBuffer");
    return made;
  }
  cl_kernel kernel(const char* name) const {
    cl_int status = 0;
    cl_kernel made = clCreateKernel(program, name, &status);
    check(status, "clCreateKernel");
    return made;
  }
};

template <class... A>
void arguments(cl_kernel kernel, const A&... values) {
  cl_uint index = 0;
  (check(clSetKernelArg(kernel, index++, sizeof values, &values), "clSetKernelArg"), ...);
}

void launch(cl_command_queue queue, cl_kernel kernel, std::size_t items, std::size_t group,
            cl_uint waits = 0, const cl_event* wait = nullptr, cl_event* event = nullptr) {
  check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, group == 0 ? nullptr : &group,
                               waits, wait, event),
        "clEnqueueNDRangeKernel");
}

void vector_add(int launches) {
  constexpr std::size_t kItems = 4096;
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  const std::vector<float> a(kItems, 1.5f), b(kItems, 2.25f);
  std::vector<float> c(kItems);
  constexpr std::size_t kBytes = kItems * sizeof(float);
  cl_mem at[3];
  for (cl_mem& memory : at) memory = cl.buffer(kBytes);
  check(clEnqueueWriteBuffer(queue, at[0], CL_FALSE, 0, kBytes, a.data(), 0, nullptr, nullptr), "write");
  check(clEnqueueWriteBuffer(queue, at[1], CL_FALSE, 0, kBytes, b.data(), 0, nullptr, nullptr), "write");
  cl_kernel kernel = cl.kernel("vector_add");
  arguments(kernel, at[0], at[1], at[2]);
  for (int i = 0; i < launches; ++i) launch(queue, kernel, kItems, 64);
  check(clEnqueueReadBuffer(queue, at[2], CL_TRUE, 0, kBytes, c.data(), 0, nullptr, nullptr), "read");
  for (const float value : c) expect(value == 3.75f, "vector_add");
  check(clReleaseKernel(kernel), "clReleaseKernel");
  for (cl_mem memory : at) check(clReleaseMemObject(memory), "clReleaseMemObject");
  check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "vector_add") vector_add(count);
  std::puts("done");
  return 0;
}
