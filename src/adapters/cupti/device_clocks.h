// The own times of the devices that CUDA shows to the process, made the host's.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "adapters/cupti/api.h"
#include "adapters/cupti/gpu_clock.h"
#include "adapters/cupti/gpu_timers.h"
#include "pasta/event.h"
#include "trace/tick_clock.h"

namespace pasta::adapters::cupti {

class DeviceClocks {
 public:
  // Once. False when no clock can be read.
  bool open() noexcept { return timers_.open(); }
  // Any thread, when the first context of the device has been made. False when its clock cannot be
  // read.
  bool add(std::uint32_t ordinal) noexcept {
    if (ordinal >= GpuTimers::kMost) return false;
    pthread_mutex_lock(&adding_);
    std::atomic<bool>& known = known_[ordinal];
    if (!known.load(std::memory_order_relaxed)) {
      PciPlace place;
      ClockReading reading;
      const int timer = device_place(ordinal, place) ? timers_.add(place) : -1;
      if (timer >= 0 && timers_.read(static_cast<std::uint32_t>(timer), reading)) {
        Device& device = devices_[ordinal];
        device.timer = static_cast<std::uint32_t>(timer);
        device.clock.learn(reading);
        known.store(true, std::memory_order_release);
      }
    }
    const bool added = known.load(std::memory_order_relaxed);
    pthread_mutex_unlock(&adding_);
    return added;
  }

  // From here on one thread.

  // Before records are taken, which are older than that: so they lie between readings. When they
  // come one after the other, readings so near to each other would tell nothing.
  void read() noexcept {
    const std::int64_t now_ns = trace::host_now_ns();
    if (now_ns - read_ns_ < kBetweenNs) return;
    read_ns_ = now_ns;
    for (std::uint32_t i = 0; i < GpuTimers::kMost; ++i) {
      if (known_[i].load(std::memory_order_acquire)) read(devices_[i]);
    }
  }
  // False when nothing is known of the device's clock.
  [[nodiscard]] bool shift(Event& event, std::uint32_t ordinal) const noexcept {
    if (ordinal >= GpuTimers::kMost || !known_[ordinal].load(std::memory_order_acquire)) {
      return false;
    }
    const GpuClock& clock = devices_[ordinal].clock;
    event.start_ns = clock.host_ns(event.start_ns);
    event.end_ns = clock.host_ns(event.end_ns);
    return true;
  }
  // How often a clock could not be read, since this was last asked.
  std::uint64_t take_failed() noexcept {
    const std::uint64_t failed = failed_;
    failed_ = 0;
    return failed;
  }

 private:
  static constexpr std::int64_t kBetweenNs = 20'000'000;

  struct Device {
    std::uint32_t timer;
    GpuClock clock;
  };

  void read(Device& device) noexcept {
    ClockReading reading;
    if (timers_.read(device.timer, reading)) {
      device.clock.learn(reading);
    } else {
      ++failed_;
    }
  }

  GpuTimers timers_;
  pthread_mutex_t adding_ = PTHREAD_MUTEX_INITIALIZER;
  // By the number that CUDA has for the device.
  Device devices_[GpuTimers::kMost] = {};
  std::atomic<bool> known_[GpuTimers::kMost] = {};
  std::int64_t read_ns_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace pasta::adapters::cupti
