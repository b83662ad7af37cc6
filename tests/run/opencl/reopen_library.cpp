// What run_reopen opens and closes: the ICD loader goes with it, and comes again.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int said() {
  const char* source = "kernel void twice(global int* data) { data[get_global_id(0)] *= 2; }";
  constexpr size_t kItems = 64;
  cl_int data[kItems];
  for (size_t i = 0; i < kItems; ++i) data[i] = static_cast<cl_int>(i);
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return 1;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) return 2;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
  if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return 3;
  cl_kernel kernel = clCreateKernel(program, "twice", nullptr);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, nullptr);
  if (clSetKernelArg(kernel, 0, sizeof buffer, &buffer) != CL_SUCCESS) return 4;
  clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, nullptr, 0, nullptr, nullptr);
  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, nullptr, nullptr);
  if (std::getenv("LEAVE") != nullptr) {
    // All is left as it is, and a command that waits for ever.
    cl_event never = clCreateUserEvent(context, nullptr);
    clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, nullptr, 1, &never, nullptr);
    return 0;
  }
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return data[kItems - 1] == 2 * (kItems - 1) ? 0 : 5;
}
