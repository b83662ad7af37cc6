// How a program drives the fake Compute Sanitizer: what it does to a device that there is not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/warp.h"

struct FakeKernel {
  const char* name;
  std::uint32_t grid[3], block[3];
  const pasta::device::Warp* warps;  // what its warps access
  std::size_t warp_count;
  const void* map = nullptr;  // its only argument, a tensor map, if it has one
};

extern "C" {
void fake_context(void* context);
void fake_destroy_context(void* context);
// As since CUDA 13.1.
void fake_create_stream(void* context, void* stream);
// Of a green context, as since CUDA 13.1; none: as before.
void fake_destroy_stream(void* context, void* green, void* stream);
void fake_module(void* context, void* module, const void* cubin, std::size_t bytes);
void fake_unload_module(void* module);
// Of the kinds of Sanitizer_ResourceMemoryFlags.
void fake_allocate(std::uint64_t address, std::uint64_t bytes, std::uint32_t flags);
void fake_free(std::uint64_t address);
void fake_encode(const void* map, std::uint64_t address);
// A call of the driver's that is told of by its number, and succeeds.
void fake_call(std::uint32_t callback);
void fake_launch(void* context, void* module, void* stream, const FakeKernel* kernel);
// A graph of these kernels, once more.
void fake_launch_graph(void* context, void* module, void* stream, const FakeKernel* kernels,
                       std::size_t count);
// A graph that kernels may launch, too: from now on the only one. And one that is brought to the
// device, and not launched.
void fake_make_graph_for_device();
void fake_upload_graph(void* context, void* module, void* stream, const FakeKernel* kernels,
                       std::size_t count);
// Streams hold back what they are given until they are let go on.
void fake_hold();
void fake_go_on();
void fake_synchronize(void* context, void* stream);
// The next launch is refused what it is to be given.
void fake_refuse();
// From now on the device answers with errors.
void fake_fault();
}
