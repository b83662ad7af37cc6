// The patch `divergence`, for GPUs: compiled by nvcc as tools' patches into a file that lies beside
// the library of the adapter `sanitizer`.
#include "device/divergence.h"
#include "device/gpu_patch.h"

PASTA_GPU_PATCH(divergence, pasta::device::DivergencePatch)
