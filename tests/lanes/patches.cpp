// The patches for GPUs, word for word, for lanes that the host makes. What is inline there is other
// code than the host's of the same name, of which a program has one; so it is of another namespace.
#define pasta pasta_on_lanes
#define PASTA_GPU_PRIMITIVES "gpu_on_lanes.h"
#define __CUDA_ARCH__ 900

#include "device/patches/access.cu"
#include "device/patches/divergence.cu"
#include "device/patches/hotpages.cu"
#include "device/patches/reuse.cu"
