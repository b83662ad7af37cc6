// The patches, for GPUs: compiled by nvcc as tools' patches into one file that lies beside the
// library of the adapter `sanitizer`.
#include "device/access.h"
#include "device/divergence.h"
#include "device/empty.h"
#include "device/gpu_patch.h"
#include "device/hotpages.h"
#include "device/reuse.h"

PASTA_GPU_PATCH(access, pasta::device::AccessPatch)
PASTA_GPU_PATCH(hotpages, pasta::device::HotpagesPatch)
PASTA_GPU_PATCH(reuse, pasta::device::ReusePatch)
PASTA_GPU_PATCH(divergence, pasta::device::DivergencePatch)
PASTA_GPU_PATCH(empty, pasta::device::EmptyPatch)
