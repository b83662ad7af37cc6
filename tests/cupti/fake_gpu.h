/* The clocks of GPUs that are not there, made of the host's: far from it, and each runs a little
   faster than the one before. */
#ifndef PASTA_FAKE_GPU_H
#define PASTA_FAKE_GPU_H

#include <stdint.h>

static inline int64_t fake_gpu_ns(unsigned gpu, int64_t monotonic_raw_ns) {
  const int64_t n = gpu + 1;
  return monotonic_raw_ns + monotonic_raw_ns / 300000 * n + 1000000000000 * n;
}

#endif
