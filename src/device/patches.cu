// The patches, for GPUs: compiled by nvcc as tools' patches into one file that lies beside the
// library of the adapter `sanitizer`.
#include "device/access.h"
#include "device/empty.h"
#include "device/gpu_patch.h"

PASTA_GPU_PATCH(access, pasta::device::AccessPatch)
PASTA_GPU_PATCH(empty, pasta::device::EmptyPatch)
