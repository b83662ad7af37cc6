// The rival's patch, for GPUs; see ring_patch.h.
#include "device/gpu_patch.h"
#include "rival/ring_patch.h"

PASTA_GPU_PATCH(ring, pasta::benchmarks::RingPatch)
