// The patch `access`, for GPUs: compiled by nvcc as tools' patches into a file that lies beside the
// library of the adapter `sanitizer`.
#include "device/access.h"
#include "device/gpu_patch.h"

PASTA_GPU_PATCH(access, pasta::device::AccessPatch)
