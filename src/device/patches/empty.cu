// The patch `empty`, for GPUs: compiled by nvcc as tools' patches into a file that lies beside the
// library of the adapter `sanitizer`.
#include "device/empty.h"
#include "device/gpu_patch.h"

PASTA_GPU_PATCH(empty, pasta::device::EmptyPatch)
