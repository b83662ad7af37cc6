#include "adapters/cupti/gpu_timers.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "trace/tick_clock.h"

namespace pasta::adapters::cupti {
namespace {

// NVOS64_PARAMETERS, of NV_ESC_RM_ALLOC.
struct Make {
  std::uint32_t client, parent, object, what;
  std::uint64_t parameters, rights;
  std::uint32_t size, flags, status, padding;
};
static_assert(sizeof(Make) == 48);
constexpr unsigned long kMake = _IOWR('F', 0x2b, Make);

// NVOS54_PARAMETERS, of NV_ESC_RM_CONTROL.
struct Ask {
  std::uint32_t client, object, what, flags;
  std::uint64_t parameters;
  std::uint32_t size, status;
};
static_assert(sizeof(Ask) == 32);
constexpr unsigned long kAsk = _IOWR('F', 0x2a, Ask);

constexpr std::uint32_t kRootClient = 0x41, kDevice = 0x80, kSubdevice = 0x2080;

// NV0080_ALLOC_PARAMETERS.
struct DeviceParameters {
  std::uint32_t device, client_share, target_client, target_device, flags, padding;
  std::uint64_t space_size, space_begin, space_end;
  std::uint32_t space_mode, more_padding;
};
static_assert(sizeof(DeviceParameters) == 56);

// NV0000_CTRL_GPU_GET_ATTACHED_IDS: of the GPUs that the driver has begun.
constexpr std::uint32_t kAttached = 0x201;
constexpr std::uint32_t kNoGpu = ~std::uint32_t{0};
// NV0000_CTRL_GPU_GET_PCI_INFO.
constexpr std::uint32_t kPlace = 0x21b;
struct PlaceParameters {
  std::uint32_t gpu, domain;
  std::uint16_t bus, slot;
};
static_assert(sizeof(PlaceParameters) == 12);
// NV0000_CTRL_GPU_GET_ID_INFO_V2.
constexpr std::uint32_t kInfo = 0x205;
struct InfoParameters {
  std::uint32_t gpu, flags, device, subdevice, sli, board, instance;
  std::int32_t numa;
};
static_assert(sizeof(InfoParameters) == 32);

// NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO.
constexpr std::uint32_t kTimes = 0x20800406;
struct TimesParameters {
  std::uint8_t clock, count, padding[6];
  struct {
    std::uint64_t host, gpu;
  } samples[16];
};
static_assert(sizeof(TimesParameters) == 264);
// CLOCK_MONOTONIC_RAW, read before and after the GPU's timer, three times: of them the nearest two
// readings, and what is in their middle.
constexpr std::uint8_t kByPlatform = 3;

// Of so many the one counts that took least long.
constexpr int kReadings = 4;

std::int64_t raw_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::uint32_t GpuTimers::make(std::uint32_t parent, std::uint32_t number, std::uint32_t what,
                              void* parameters, std::uint32_t size) noexcept {
  Make request{};
  request.client = client_;
  request.parent = parent;
  request.object = number;
  request.what = what;
  request.parameters = reinterpret_cast<std::uintptr_t>(parameters);
  request.size = size;
  return ioctl(driver_, kMake, &request) == 0 && request.status == 0 ? request.object : 0;
}

bool GpuTimers::ask(std::uint32_t object, std::uint32_t what, void* parameters,
                    std::uint32_t size) const noexcept {
  Ask request{};
  request.client = client_;
  request.object = object;
  request.what = what;
  request.parameters = reinterpret_cast<std::uintptr_t>(parameters);
  request.size = size;
  return ioctl(driver_, kAsk, &request) == 0 && request.status == 0;
}

bool GpuTimers::open() noexcept {
  if (client_ != 0) return false;
  driver_ = ::open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  if (driver_ < 0) return false;
  struct stat file {};
  if (fstat(driver_, &file) == 0) device_ = file.st_rdev;
  client_ = make(0, 0, kRootClient, nullptr, 0);
  if (client_ == 0) close(driver_);
  return client_ != 0;
}

bool GpuTimers::is_driver() const noexcept {
  struct stat file {};
  return fstat(driver_, &file) == 0 && S_ISCHR(file.st_mode) && file.st_rdev == device_;
}

int GpuTimers::add(const PciPlace& place) noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (timers_[i].place == place) return static_cast<int>(i);
  }
  std::uint32_t begun[kMost];
  std::memset(begun, 0xff, sizeof begun);
  if (count_ == kMost || !is_driver() || !ask(client_, kAttached, begun, sizeof begun)) return -1;
  for (const std::uint32_t gpu : begun) {
    PlaceParameters at{gpu, 0, 0, 0};
    InfoParameters info{};
    info.gpu = gpu;
    if (gpu == kNoGpu || !ask(client_, kPlace, &at, sizeof at) ||
        PciPlace{at.domain, at.bus, at.slot} != place || !ask(client_, kInfo, &info, sizeof info)) {
      continue;
    }
    DeviceParameters parameters{};
    parameters.device = info.device;
    // Numbers are the client's to choose.
    const std::uint32_t device =
        make(client_, 2 * count_ + 1, kDevice, &parameters, sizeof parameters);
    if (device == 0) return -1;
    const std::uint32_t subdevice =
        make(device, 2 * count_ + 2, kSubdevice, &info.subdevice, sizeof info.subdevice);
    if (subdevice == 0) return -1;
    timers_[count_] = {place, subdevice};
    return static_cast<int>(count_++);
  }
  return -1;
}

bool GpuTimers::read(std::uint32_t timer, ClockReading& reading) const noexcept {
  if (!is_driver()) return false;
  for (int i = 0; i < kReadings; ++i) {
    TimesParameters times{};
    times.clock = kByPlatform;
    times.count = 1;
    // The driver's clock of the host is another one, which runs a little faster or slower.
    const std::int64_t begin = trace::host_now_ns();
    const std::int64_t before = raw_now_ns();
    const std::int64_t then = trace::host_now_ns();
    const bool told = ask(timers_[timer].subdevice, kTimes, &times, sizeof times);
    const std::int64_t after = raw_now_ns();
    const auto read = static_cast<std::int64_t>(times.samples[0].host);
    if (!told || read < before || read > after) return false;
    const std::int64_t took_ns = after - before + then - begin;
    if (i > 0 && took_ns >= reading.took_ns) continue;
    reading.gpu_ns = static_cast<std::int64_t>(times.samples[0].gpu);
    reading.host_ns = begin + (then - begin) / 2 + (read - before);
    reading.took_ns = took_ns;
  }
  return true;
}

}  // namespace pasta::adapters::cupti
