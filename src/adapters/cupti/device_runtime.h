// Whether code of the process can launch kernels from kernels: what is linked for that has the
// device's runtime in it, and the compiler names its module in a section of its own. Without CUPTI,
// which would have the driver keep all code unpacked to show it. No libstdc++, no heap.
#pragma once

#include <cstddef>

namespace pasta::adapters::cupti {

// Of one ELF file; false when it cannot be read.
bool has_device_runtime(const char* path) noexcept;

// Of what the process has loaded, each once. One thread.
class LoadedObjects {
 public:
  // Whether one that was not there the last time has it.
  bool find_device_runtime() noexcept;

 private:
  std::size_t seen_ = 0;
  unsigned long long unloaded_ = 0;
};

}  // namespace pasta::adapters::cupti
