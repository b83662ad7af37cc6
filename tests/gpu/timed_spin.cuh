// A kernel that knows how long it takes: at least `ns`.
#pragma once

// First and last reading of the GPU's own clock by each block.
__global__ void timed_spin(unsigned long long ns, unsigned long long* readings) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
  readings[2 * blockIdx.x] = begin;
  readings[2 * blockIdx.x + 1] = now;
}
