// The patch `hotpages`, for GPUs: compiled by nvcc as tools' patches into a file that lies beside
// the library of the adapter `sanitizer`.
#include "device/gpu_patch.h"
#include "device/hotpages.h"

PASTA_GPU_PATCH(hotpages, pasta::device::HotpagesPatch)
