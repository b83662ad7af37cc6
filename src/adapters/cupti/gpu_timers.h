// The clocks of NVIDIA's GPUs, read together with the host's by the kernel's driver. Nothing of
// CUDA is needed for that: no context, no stream, and no GPU has anything to do. The driver's
// interface is as its open source has it (github.com/NVIDIA/open-gpu-kernel-modules: nvos.h,
// ctrl0000gpu.h, ctrl2080tmr.h); what another driver refuses is not there. No heap, no libstdc++.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "adapters/cupti/gpu_clock.h"

namespace pasta::adapters::cupti {

// Where a GPU is.
struct PciPlace {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t slot = 0;

  bool operator==(const PciPlace&) const = default;
};

// One thread at a time opens and adds; any may read what has been added. A child after fork() must
// not use it.
class GpuTimers {
 public:
  static constexpr std::uint32_t kMost = 32;

  // Once: in a child after fork() it is false. False when the driver is not there, or not this one.
  bool open() noexcept;
  // The number of the GPU that is there, on which CUDA has begun in this process: others the driver
  // does not let it read. The same for the same place. -1: it cannot be read.
  int add(const PciPlace& place) noexcept;
  // The GPU's time beside CLOCK_MONOTONIC. False when the driver does not tell, or tells what
  // cannot be.
  bool read(std::uint32_t timer, ClockReading& reading) const noexcept;

 private:
  struct Timer {
    PciPlace place;
    std::uint32_t subdevice;
  };

  std::uint32_t make(std::uint32_t parent, std::uint32_t number, std::uint32_t what,
                     void* parameters, std::uint32_t size) noexcept;
  bool ask(std::uint32_t object, std::uint32_t what, void* parameters,
           std::uint32_t size) const noexcept;

  // A program that closes all files, as daemons do, may have another under this number since.
  bool is_driver() const noexcept;

  // All 0 as long as it is not open: so what holds this takes no room in the library, nor in a
  // core.
  int driver_ = 0;
  dev_t device_ = 0;
  std::uint32_t client_ = 0;  // of the driver's: what is made belongs to it
  Timer timers_[kMost] = {};
  std::uint32_t count_ = 0;
};

}  // namespace pasta::adapters::cupti
