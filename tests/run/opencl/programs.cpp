// OpenCL programs with known answers, to be watched. Each checks its own results: what it computes
// must not change when somebody looks. Sizes are arguments, so that a test knows all counts.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

struct Argument {
  std::size_t bytes;
  const void* value;
  explicit Argument(const cl_mem& memory) : bytes(sizeof(cl_mem)), value(&memory) {}
  explicit Argument(const int& number) : bytes(sizeof(int)), value(&number) {}
};

template <class... A>
void arguments(cl_kernel kernel, const A&... values) {
  cl_uint index = 0;
  for (const Argument& argument : {Argument(values)...}) {
    check(clSetKernelArg(kernel, index++, argument.bytes, argument.value), "clSetKernelArg");
  }
}

void launch(cl_command_queue queue, cl_kernel kernel, std::size_t items, std::size_t group,
            cl_uint waits = 0, const cl_event* wait = nullptr, cl_event* event = nullptr) {
  check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, group == 0 ? nullptr : &group,
                               waits, wait, event),
        "clEnqueueNDRangeKernel");
}

template <class T>
void write(cl_command_queue queue, cl_mem to, const std::vector<T>& from) {
  check(clEnqueueWriteBuffer(queue, to, CL_FALSE, 0, from.size() * sizeof(T), from.data(), 0,
                             nullptr, nullptr),
        "write");
}

template <class T>
void read(cl_command_queue queue, cl_mem from, std::vector<T>& to) {
  check(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, to.size() * sizeof(T), to.data(), 0, nullptr,
                            nullptr),
        "read");
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
  write(queue, at[0], a);
  write(queue, at[1], b);
  cl_kernel kernel = cl.kernel("vector_add");
  arguments(kernel, at[0], at[1], at[2]);
  for (int i = 0; i < launches; ++i) launch(queue, kernel, kItems, 64);
  read(queue, at[2], c);
  for (const float value : c) expect(value == 3.75f, "vector_add");
  check(clReleaseKernel(kernel), "clReleaseKernel");
  for (cl_mem memory : at) check(clReleaseMemObject(memory), "clReleaseMemObject");
  check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
}

void matrix_product(int launches) {
  constexpr int kSide = 64;
  constexpr std::size_t kBytes = kSide * kSide * sizeof(float);
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  std::vector<float> a(kSide * kSide), b(kSide * kSide), c(kSide * kSide);
  for (int i = 0; i < kSide * kSide; ++i) a[i] = float(i % 7), b[i] = float(i % 5);
  cl_mem at[3];
  for (cl_mem& memory : at) memory = cl.buffer(kBytes);
  write(queue, at[0], a);
  write(queue, at[1], b);
  cl_kernel kernel = cl.kernel("matrix_product");
  arguments(kernel, at[0], at[1], at[2], kSide);
  const std::size_t items[] = {kSide, kSide}, group[] = {8, 8};
  for (int i = 0; i < launches; ++i) {
    check(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, items, group, 0, nullptr, nullptr),
          "launch");
  }
  check(clFinish(queue), "clFinish");
  read(queue, at[2], c);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      float sum = 0;
      for (int k = 0; k < kSide; ++k) sum += a[y * kSide + k] * b[k * kSide + x];
      expect(c[y * kSide + x] == sum, "matrix_product");
    }
  }
  clReleaseKernel(kernel);
  for (cl_mem memory : at) clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
}

// Local memory given as an argument; a buffer filled by a pattern, a part copied, one mapped.
void reduction(int groups) {
  constexpr std::size_t kGroup = 128;
  const std::size_t items = kGroup * std::size_t(groups);
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_mem in = cl.buffer(items * sizeof(int)), other = cl.buffer(items * sizeof(int));
  cl_mem out = cl.buffer(std::size_t(groups) * sizeof(int));
  const int three = 3;
  check(clEnqueueFillBuffer(queue, other, &three, sizeof three, 0, items * sizeof(int), 0, nullptr,
                            nullptr),
        "fill");
  check(clEnqueueCopyBuffer(queue, other, in, 0, 0, items * sizeof(int), 0, nullptr, nullptr),
        "copy");
  cl_kernel kernel = cl.kernel("reduce");
  arguments(kernel, in, out);
  check(clSetKernelArg(kernel, 2, kGroup * sizeof(int), nullptr), "clSetKernelArg");
  launch(queue, kernel, items, kGroup);
  cl_int status = 0;
  auto* sums = static_cast<int*>(clEnqueueMapBuffer(queue, out, CL_TRUE, CL_MAP_READ, 0,
                                                    std::size_t(groups) * sizeof(int), 0, nullptr,
                                                    nullptr, &status));
  check(status, "map");
  for (int i = 0; i < groups; ++i) expect(sums[i] == 3 * int(kGroup), "reduction");
  check(clEnqueueUnmapMemObject(queue, out, sums, 0, nullptr, nullptr), "unmap");
  check(clFinish(queue), "clFinish");
  clReleaseKernel(kernel);
  for (cl_mem memory : {in, other, out}) clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
}

// Two queues take turns on the same data, started by an event of the program's own.
void pipeline(int rounds) {
  constexpr std::size_t kItems = 256;
  const OpenCl cl;
  cl_command_queue queues[] = {cl.queue(), cl.queue()};
  std::vector<int> data(kItems, 1);
  cl_mem memory = cl.buffer(kItems * sizeof(int));
  write(queues[0], memory, data);
  check(clFinish(queues[0]), "clFinish");
  cl_kernel scale = cl.kernel("scale"), shift = cl.kernel("shift");
  const int two = 2, one = 1;
  arguments(scale, memory, two);
  arguments(shift, memory, one);
  cl_int status = 0;
  cl_event before = clCreateUserEvent(cl.context, &status);
  cl_event gate = before;
  check(status, "clCreateUserEvent");
  int expected = 1;
  for (int i = 0; i < rounds; ++i) {
    cl_event done[2];
    launch(queues[0], scale, kItems, 64, 1, &before, &done[0]);
    launch(queues[1], shift, kItems, 64, 1, &done[0], &done[1]);
    clReleaseEvent(done[0]);
    if (before != gate) clReleaseEvent(before);
    before = done[1];
    expected = expected * 2 + 1;
  }
  check(clFlush(queues[0]), "clFlush");
  check(clFlush(queues[1]), "clFlush");
  check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
  check(clWaitForEvents(1, &before), "clWaitForEvents");
  read(queues[1], memory, data);
  for (const int value : data) expect(value == expected, "pipeline");
  clReleaseEvent(before);
  clReleaseEvent(gate);
  clReleaseKernel(scale);
  clReleaseKernel(shift);
  clReleaseMemObject(memory);
  for (cl_command_queue queue : queues) clReleaseCommandQueue(queue);
}

void out_of_order(int launches) {
  constexpr std::size_t kItems = 64;
  const OpenCl cl;
  cl_command_queue queue = cl.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  std::vector<cl_mem> memories(static_cast<std::size_t>(launches));
  const int zero = 0, by = 5;
  cl_kernel shift = cl.kernel("shift");
  std::vector<cl_event> events;
  for (cl_mem& memory : memories) {
    memory = cl.buffer(kItems * sizeof(int));
    cl_event filled = nullptr, shifted = nullptr;
    check(clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, kItems * sizeof(int), 0,
                              nullptr, &filled),
          "fill");
    arguments(shift, memory, by);
    launch(queue, shift, kItems, 64, 1, &filled, &shifted);
    clReleaseEvent(filled);
    events.push_back(shifted);
  }
  check(clEnqueueMarkerWithWaitList(queue, cl_uint(events.size()), events.data(), nullptr),
        "marker");
  check(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr), "barrier");
  for (cl_mem memory : memories) {
    std::vector<int> data(kItems);
    read(queue, memory, data);
    for (const int value : data) expect(value == by, "out_of_order");
    clReleaseMemObject(memory);
  }
  for (cl_event event : events) clReleaseEvent(event);
  clReleaseKernel(shift);
  clReleaseCommandQueue(queue);
}

// A context, a queue and a program for each thread.
void threads(int launches) {
  const OpenCl first;  // PoCL's devices are not safe from threads that are all the first
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t) all.emplace_back(vector_add, launches);
  for (std::thread& thread : all) thread.join();
}

// One queue and 8 threads.
void one_queue(int launches) {
  constexpr std::size_t kItems = 64;
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t) {
    all.emplace_back([&] {
      cl_mem memory = cl.buffer(kItems * sizeof(int));
      std::vector<int> data(kItems, 0);
      write(queue, memory, data);
      cl_kernel shift = cl.kernel("shift");
      const int by = 1;
      arguments(shift, memory, by);
      for (int i = 0; i < launches; ++i) launch(queue, shift, kItems, 64);
      read(queue, memory, data);
      for (const int value : data) expect(value == launches, "one_queue");
      clReleaseKernel(shift);
      clReleaseMemObject(memory);
    });
  }
  for (std::thread& thread : all) thread.join();
  clReleaseCommandQueue(queue);
}

// Each iteration: 4 sweeps, and every one reads its residual back.
void stencil(int iterations) {
  constexpr int kItems = 1024;
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  std::vector<float> data(kItems, 0), residual(kItems);
  data[kItems / 2] = 1;
  cl_mem at[] = {cl.buffer(kItems * sizeof(float)), cl.buffer(kItems * sizeof(float)),
                 cl.buffer(kItems * sizeof(float))};
  write(queue, at[0], data);
  cl_kernel sweep = cl.kernel("stencil"), rest = cl.kernel("residual");
  for (int i = 0; i < iterations; ++i) {
    for (int s = 0; s < 4; ++s) {
      arguments(sweep, at[s % 2], at[1 - s % 2], kItems);
      launch(queue, sweep, kItems, 64);
    }
    arguments(rest, at[0], at[1], at[2]);
    launch(queue, rest, kItems, 64);
    read(queue, at[2], residual);
  }
  for (const float value : residual) expect(value >= 0 && value < 1, "stencil");
  clReleaseKernel(sweep);
  clReleaseKernel(rest);
  for (cl_mem memory : at) clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
}

// Kernels that do nothing to speak of, as fast as they can be launched; says what one took. All
// have their argument set, as most programs do. Waits after every 1000.
void storm(int launches) {
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_mem memory = cl.buffer(64 * sizeof(int));
  cl_kernel shift = cl.kernel("shift");
  const int by = 1;
  arguments(shift, memory, by);
  const auto go = [&](int count) {
    for (int i = 0; i < count; ++i) {
      check(clSetKernelArg(shift, 1, sizeof by, &by), "clSetKernelArg");
      launch(queue, shift, 64, 64);
      if (i % 1000 == 999) check(clFinish(queue), "clFinish");
    }
    check(clFinish(queue), "clFinish");
  };
  go(1000);
  const auto now = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
  };
  const double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  go(launches);
  std::printf("%.0f %.0f\n", (now(CLOCK_MONOTONIC) - wall) / launches,
              (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / launches);
}

void leak(int buffers) {
  const OpenCl cl;
  for (int i = 0; i < 2 * buffers; ++i) {
    cl_mem memory = cl.buffer(1000);
    if (i % 2 == 0) clReleaseMemObject(memory);
  }
}

// Dies with work under way that nothing will ever start, and after work that it has waited for.
void crash(int launches) {
  constexpr std::size_t kItems = 64;
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_mem memory = cl.buffer(kItems * sizeof(int));
  cl_kernel shift = cl.kernel("shift");
  const int by = 1;
  arguments(shift, memory, by);
  for (int i = 0; i < launches; ++i) launch(queue, shift, kItems, 64);
  check(clFinish(queue), "clFinish");
  cl_int status = 0;
  cl_event never = clCreateUserEvent(cl.context, &status);
  for (int i = 0; i < 3; ++i) launch(queue, shift, kItems, 64, 1, &never);
  std::abort();
}

// Two images of one process, which count their launches from 1 each.
void executes(int launches) {
  vector_add(launches);
  execl("/proc/self/exe", "again", "vector_add", "4", nullptr);
}

// Says on standard output what it has waited for, until somebody ends it.
void announce(int) {
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_mem memory = cl.buffer(64 * sizeof(int));
  cl_kernel shift = cl.kernel("shift");
  const int by = 1;
  arguments(shift, memory, by);
  for (unsigned count = 1;; ++count) {
    launch(queue, shift, 64, 64);
    check(clFinish(queue), "clFinish");
    if (::write(STDOUT_FILENO, &count, sizeof count) != sizeof count) std::exit(1);
  }
}

// The runtime is of one process only: parent and children each have theirs.
void forks(int children) {
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      vector_add(2);
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child");
  }
  vector_add(3);
  if (fork() == 0) _exit(0);  // one that does nothing with what it has got
  wait(nullptr);
}

void images() {
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 32;
  shape.image_height = 16;
  cl_int status = 0;
  cl_mem a = clCreateImage(cl.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &status);
  check(status, "clCreateImage");
  cl_mem b = clCreateImage(cl.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &status);
  check(status, "clCreateImage");
  const std::size_t origin[3] = {0, 0, 0}, all[3] = {32, 16, 1}, part[3] = {4, 2, 1};
  std::vector<unsigned char> pixels(32 * 16 * 4, 9), back(32 * 16 * 4);
  check(
      clEnqueueWriteImage(queue, a, CL_TRUE, origin, all, 0, 0, pixels.data(), 0, nullptr, nullptr),
      "write");
  check(clEnqueueCopyImage(queue, a, b, origin, origin, all, 0, nullptr, nullptr), "copy");
  const cl_uint color[4] = {1, 2, 3, 4};
  check(clEnqueueFillImage(queue, b, color, origin, part, 0, nullptr, nullptr), "fill");
  check(clEnqueueReadImage(queue, b, CL_TRUE, origin, all, 0, 0, back.data(), 0, nullptr, nullptr),
        "read");
  expect(back[0] == 1 && back[16] == 9, "images");
  clReleaseMemObject(a);
  clReleaseMemObject(b);
  // Rectangles of buffers.
  cl_mem memory = cl.buffer(64 * 64);
  const std::size_t place[3] = {8, 4, 0}, region[3] = {16, 8, 1};
  std::vector<unsigned char> host(64 * 64, 7);
  check(clEnqueueWriteBufferRect(queue, memory, CL_TRUE, place, place, region, 64, 0, 64, 0,
                                 host.data(), 0, nullptr, nullptr),
        "rect");
  check(clEnqueueReadBufferRect(queue, memory, CL_TRUE, place, place, region, 64, 0, 64, 0,
                                host.data(), 0, nullptr, nullptr),
        "rect");
  // A part of a buffer is no memory of its own.
  const cl_buffer_region half{2048, 1024};
  cl_mem sub = clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &status);
  check(status, "clCreateSubBuffer");
  clReleaseMemObject(memory);
  clReleaseMemObject(sub);
  clReleaseCommandQueue(queue);
}

void shared_memory() {
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  auto* shared = static_cast<int*>(clSVMAlloc(cl.context, CL_MEM_READ_WRITE, 4096, 0));
  expect(shared != nullptr, "clSVMAlloc");
  const int one = 1;
  std::vector<int> host(256, 5);
  check(clEnqueueSVMMemFill(queue, shared, &one, sizeof one, 4096, 0, nullptr, nullptr), "fill");
  check(clEnqueueSVMMemcpy(queue, CL_TRUE, shared + 256, host.data(), 1024, 0, nullptr, nullptr),
        "copy");
  check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, shared, 4096, 0, nullptr, nullptr), "map");
  expect(shared[0] == 1 && shared[256] == 5, "shared_memory");
  check(clEnqueueSVMUnmap(queue, shared, 0, nullptr, nullptr), "unmap");
  check(clFinish(queue), "clFinish");
  clSVMFree(cl.context, shared);
  clReleaseCommandQueue(queue);
}

void failures() {
  const OpenCl cl;
  cl_command_queue queue = cl.queue();
  cl_int status = 0;
  expect(clCreateBuffer(cl.context, CL_MEM_READ_WRITE, 0, nullptr, &status) == nullptr,
         "empty buffer");
  expect(status == CL_INVALID_BUFFER_SIZE, "status");
  expect(clCreateBuffer(cl.context, CL_MEM_READ_WRITE, 0, nullptr, nullptr) == nullptr,
         "no place for it");
  expect(clCreateKernel(cl.program, "no_such", &status) == nullptr, "kernel");
  expect(status == CL_INVALID_KERNEL_NAME, "status");
  cl_kernel shift = cl.kernel("shift");
  const std::size_t items = 64;
  expect(clEnqueueNDRangeKernel(queue, shift, 4, nullptr, &items, nullptr, 0, nullptr, nullptr) ==
             CL_INVALID_WORK_DIMENSION,
         "dimensions");
  const char* bad = "kernel void broken( {";
  cl_program program = clCreateProgramWithSource(cl.context, 1, &bad, nullptr, &status);
  expect(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr) == CL_BUILD_PROGRAM_FAILURE,
         "build");
  // Work that is called off never runs.
  cl_event never = clCreateUserEvent(cl.context, &status);
  cl_mem memory = cl.buffer(256);
  const int by = 1;
  arguments(shift, memory, by);
  cl_event event = nullptr;
  launch(queue, shift, 64, 64, 1, &never, &event);
  check(clSetUserEventStatus(never, -5), "clSetUserEventStatus");
  cl_int state = 0;
  while (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr) ==
             CL_SUCCESS &&
         state > CL_COMPLETE) {
  }
  expect(state < 0, "called off");
}

// What a program can ask about what we have changed.
void answers() {
  const OpenCl cl;
  for (int profiling = 0; profiling < 2; ++profiling) {
    for (int kind = 0; kind < 3; ++kind) {
      const cl_command_queue_properties properties = profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
      const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
      cl_int status = 0;
      cl_command_queue queue = nullptr;
      if (kind == 0) {
        queue = clCreateCommandQueue(cl.context, cl.device, properties, &status);
      } else if (kind == 1) {
        queue = clCreateCommandQueueWithProperties(cl.context, cl.device, list, &status);
      } else {
        if (profiling) continue;
        queue = clCreateCommandQueueWithProperties(cl.context, cl.device, nullptr, &status);
      }
      check(status, "queue");
      cl_command_queue_properties told = 99;
      cl_queue_properties array[8] = {};
      std::size_t size = 99;
      check(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof told, &told, nullptr), "info");
      status = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof array, array, &size);
      std::printf("%d %d: properties %lu, array %d %zu %lu %lu\n", profiling, kind,
                  (unsigned long)told, status, size, (unsigned long)array[0],
                  (unsigned long)array[1]);
      cl_mem memory = cl.buffer(64);
      const int zero = 0;
      cl_event event = nullptr;
      check(clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, 64, 0, nullptr, &event),
            "fill");
      check(clWaitForEvents(1, &event), "wait");
      cl_ulong at = 0;
      cl_uint references = 0;
      status = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof at, &at, nullptr);
      check(
          clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, nullptr),
          "info");
      std::printf("profiling %d %d, wrong question %d\n", status, at != 0,
                  clGetEventProfilingInfo(event, 0x7fff, sizeof at, &at, nullptr));
      // The runtime's own threads may hold it for a moment longer.
      for (int i = 0; references > 2 && i < 100000; ++i) {
        std::this_thread::yield();
        check(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references,
                             nullptr),
              "info");
      }
      if (references > 2) std::printf("references %u\n", references);
      clReleaseEvent(event);
      clReleaseMemObject(memory);
      clReleaseCommandQueue(queue);
    }
  }
  cl_event none = nullptr;
  cl_ulong at = 0;
  std::printf("no event %d\n",
              clGetEventProfilingInfo(none, CL_PROFILING_COMMAND_END, sizeof at, &at, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(int)> programs = {
      {"vector_add", vector_add},
      {"matrix_product", matrix_product},
      {"reduction", reduction},
      {"pipeline", pipeline},
      {"out_of_order", out_of_order},
      {"threads", threads},
      {"one_queue", one_queue},
      {"stencil", stencil},
      {"leak", leak},
      {"storm", storm},
      {"crash", crash},
      {"forks", forks},
      {"executes", executes},
      {"announce", announce},
      {"images", [](int) { images(); }},
      {"shared_memory", [](int) { shared_memory(); }},
      {"failures", [](int) { failures(); }},
      {"answers", [](int) { answers(); }},
  };
  const auto program = programs.find(argc > 1 ? argv[1] : "");
  if (program == programs.end()) return 1;
  program->second(argc > 2 ? std::atoi(argv[2]) : 1);
  std::puts("done");
  return 0;
}
