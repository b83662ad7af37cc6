/* NVIDIA's driver without a GPU: what libcuda says of FAKE_GPUS devices, and what the kernel's part
   answers to whoever opens it, with the clocks of these. To be loaded before libc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpu.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuDeviceGetCount(int* count);
EXPORT int cuDeviceGet(int* device, int ordinal);
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device);

enum { kClient = 0xc1d00000, kFirstId = 0x4e00 };

static int driver = -1;

static int gpus(void) {
  const char* count = getenv("FAKE_GPUS");
  return count == NULL ? 0 : atoi(count);
}

static int refuses(const char* what) {
  const char* refused = getenv("FAKE_DRIVER_REFUSES");
  return refused != NULL && strcmp(refused, what) == 0;
}

int cuDeviceGetCount(int* count) {
  *count = gpus();
  return *count == 0 ? 100 : 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < gpus() ? 0 : 101;
}
/* CUDA counts them from the other end of the bus than the driver. */
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 33 ? 0x10 + gpus() - device : 0;
  return 0;
}

EXPORT int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if (gpus() > 0 && strcmp(path, "/dev/nvidiactl") == 0) {
    driver = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0);
    return driver;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The driver's subdevices are numbered by whoever makes them. */
static uint32_t device_of[256], gpu_of[256];

static uint32_t make(uint32_t* fields, const void* parameters) {
  const uint32_t object = fields[2] & 255, what = fields[3];
  if (refuses("objects")) return 0x56;
  if (what == 0x41) {
    fields[2] = kClient;
  } else if (what == 0x80) {
    static int devices;
    if (++devices > 1 && refuses("second")) return 0x56;
    memcpy(&device_of[object], parameters, sizeof device_of[object]);
  } else if (what == 0x2080) {
    gpu_of[object] = device_of[fields[1] & 255];
  } else {
    return 0x22;
  }
  return 0;
}

static int times_asked, other_file;

/* As when the program closes all files and opens its own: that number is another's. */
static void be_another_file(void) {
  const int other = open("/dev/zero", O_RDWR | O_CLOEXEC);
  dup2(other, driver);
  close(other);
  other_file = 1;
}

static uint32_t answer(const uint32_t* fields, uint32_t size, void* parameters) {
  const int count = gpus();
  uint32_t* words = parameters;
  if (fields[2] == 0x201 && size == 128) {
    for (int i = 0; i < 32; ++i) words[i] = i < count ? (uint32_t)(kFirstId + i) : ~0u;
  } else if (fields[2] == 0x21b && size == 12) {
    const uint16_t place[] = {(uint16_t)(0x11 + words[0] - kFirstId), 0};
    words[1] = 0;
    memcpy(&words[2], place, sizeof place);
  } else if (fields[2] == 0x205 && size == 32) {
    words[2] = words[0] - kFirstId;
    words[3] = 0;
  } else if (fields[2] == 0x20800406 && size == 264 && !refuses("times") &&
             !(++times_asked > 8 && refuses("later"))) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    const int64_t host = now.tv_sec * 1000000000ll + now.tv_nsec;
    /* By the number that CUDA has for it. */
    const int64_t gpu = fake_gpu_ns((uint32_t)count - 1 - gpu_of[fields[1] & 255], host);
    memcpy(&words[2], &host, sizeof host);
    memcpy(&words[4], &gpu, sizeof gpu);
    if (times_asked == 8 && refuses("file")) be_another_file();
  } else {
    return 0x56;
  }
  return 0;
}

EXPORT int ioctl(int file, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (file != driver || driver < 0) return (int)syscall(SYS_ioctl, file, request, argument);
  if (other_file) fprintf(stderr, "fake: asked what is not the driver\n");
  uint32_t* fields = argument;
  uint64_t address = 0;
  memcpy(&address, &fields[4], sizeof address);
  void* parameters = (void*)(uintptr_t)address;
  if ((request & 0xff) == 0x2b) {
    fields[10] = make(fields, parameters);
  } else if ((request & 0xff) == 0x2a) {
    fields[7] = answer(fields, fields[6], parameters);
  } else {
    errno = EINVAL;
    return -1;
  }
  return 0;
}
