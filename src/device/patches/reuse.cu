// The patch `reuse`, for GPUs: compiled by nvcc as tools' patches into a file that lies beside the
// library of the adapter `sanitizer`.
#include "device/gpu_patch.h"
#include "device/reuse.h"

PASTA_GPU_PATCH(reuse, pasta::device::ReusePatch)
