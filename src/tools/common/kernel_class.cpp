#include "tools/common/kernel_class.h"

#include <algorithm>
#include <array>
#include <string>

#include "tools/common/demangle.h"

namespace pasta::tools {
namespace {

constexpr std::array<std::string_view, kKernelClassCount> kClassNames = {
    "gemm",          "convolution", "attention", "normalisation", "elementwise", "reduction",
    "communication", "copy",        "embedding", "optimiser",     "sort/scan",   "other"};

constexpr std::array<std::string_view, 9> kCommunicationWords = {
    "nccl",   "rccl", "hccl", "oneccl", "nvshmem", "mscclpp", "multimem_", "cross_device_reduce",
    "deep_ep"};

// Which part of a name a rule looks at. Template kernels carry their operation in their arguments,
// where one library's type names look like another's kernels: a rule that can, asks for kStem.
enum class Part : std::uint8_t {
  kStem,   // qualified name without template arguments and parameters
  kWhole,  // everything
};

struct Rule {
  KernelClass type;
  Part part;
  std::string_view holds;      // lower case
  std::string_view also = {};  // a second text that the whole name must hold
};

using enum KernelClass;
using enum Part;

// The first rule that fits decides. Order: kernels that run any functor (by the functor); then the
// most specific families; then words that several families share.
constexpr Rule kRules[] = {
    // Generic launchers of PyTorch, apex, rocPRIM and Thrust: the functor says what they do.
    {kOptimiser, kStem, "multi_tensor_apply", "adam"},
    {kOptimiser, kStem, "multi_tensor_apply", "sgd"},
    {kOptimiser, kStem, "multi_tensor_apply", "lambfunctor"},
    {kOptimiser, kStem, "multi_tensor_apply", "lambstage"},
    {kOptimiser, kStem, "multi_tensor_apply", "adagrad"},
    {kOptimiser, kStem, "multi_tensor_apply", "rmsprop"},
    {kOptimiser, kStem, "multi_tensor_apply", "novograd"},
    {kReduction, kStem, "multi_tensor_apply", "norm"},
    {kCopy, kStem, "multi_tensor_apply", "copy"},
    {kElementwise, kStem, "multi_tensor_apply"},
    {kCopy, kStem, "gather_elementwise_kernel"},
    {kCopy, kStem, "index_elementwise_kernel"},
    {kCopy, kStem, "elementwise_kernel", "copy_kernel"},
    {kElementwise, kStem, "elementwise_kernel"},
    {kReduction, kStem, "at::native::reduce_kernel"},
    {kSortScan, kStem, "rocprim", "sort"},
    {kSortScan, kStem, "rocprim", "scan"},
    {kReduction, kStem, "rocprim", "reduce"},
    {kElementwise, kStem, "rocprim", "transform_kernel"},
    {kSortScan, kStem, "thrust::", "sort"},
    {kSortScan, kStem, "thrust::", "scan"},
    {kReduction, kStem, "thrust::", "reduce"},
    {kElementwise, kStem, "thrust::", "parallel_for"},

    // Inductor says in the prefix how a fused kernel runs, and lists every operation it fused.
    {kNormalisation, kStem, "triton_red_", "_norm"},
    {kNormalisation, kStem, "triton_per_", "_norm"},
    {kNormalisation, kStem, "triton_red_", "mean_mul_pow_rsqrt"},
    {kNormalisation, kStem, "triton_per_", "mean_mul_pow_rsqrt"},
    {kElementwise, kStem, "triton_poi_"},
    {kReduction, kStem, "triton_red_"},
    {kReduction, kStem, "triton_per_"},
    {kAttention, kStem, "triton_tem_", "attention"},
    {kConvolution, kStem, "triton_tem_", "conv"},
    {kGemm, kStem, "triton_tem_"},

    {kAttention, kWhole, "fmha"},
    {kAttention, kWhole, "flash_fwd"},
    {kAttention, kWhole, "flash_bwd"},
    {kAttention, kWhole, "flashattn"},
    {kAttention, kWhole, "flash_attn"},
    {kAttention, kWhole, "flash::"},
    {kAttention, kWhole, "flashinfer", "attention"},
    {kAttention, kStem, "attention"},
    {kAttention, kStem, "attn_fwd"},
    {kAttention, kStem, "attn_bwd"},
    {kAttention, kStem, "flash_mla"},
    {kAttention, kStem, "bwd_kernel_fuse"},
    {kAttention, kStem, "bwd_kernel_dk_dv"},
    {kAttention, kStem, "bwd_kernel_dq"},
    {kAttention, kStem, "_sdpa_"},

    {kElementwise, kStem, "rotary"},
    {kElementwise, kStem, "rope_"},
    {kEmbedding, kStem, "embedding"},
    {kEmbedding, kStem, "compute_grad_weight"},
    {kEmbedding, kStem, "sum_and_scatter"},
    {kEmbedding, kStem, "krn_partial"},
    {kEmbedding, kStem, "num_of_partial_segments"},
    {kEmbedding, kStem, "bounds_check_indices"},
    {kEmbedding, kStem, "linearize_index"},
    {kEmbedding, kStem, "bucketize_sparse_features"},
    {kEmbedding, kStem, "fbgemm_gpu::_offsets_range"},
    {kCopy, kStem, "fbgemm_gpu::permute"},
    {kElementwise, kStem, "fbgemm_gpu::", "fp8"},

    {kNormalisation, kStem, "batch_norm"},
    {kNormalisation, kStem, "batchnorm"},
    {kNormalisation, kStem, "layer_norm"},
    {kNormalisation, kStem, "layernorm"},
    {kNormalisation, kStem, "group_norm"},
    {kNormalisation, kStem, "groupnorm"},
    {kNormalisation, kStem, "instance_norm"},
    {kNormalisation, kStem, "weight_norm"},
    {kNormalisation, kStem, "rms_norm"},
    {kNormalisation, kStem, "rmsnorm"},
    {kNormalisation, kStem, "l2_norm"},
    {kNormalisation, kStem, "bn_fw"},
    {kNormalisation, kStem, "bn_bw"},
    {kNormalisation, kStem, "gammabeta"},
    {kNormalisation, kStem, "rowwisemoments"},
    {kNormalisation, kStem, "fusedparamscuda"},
    {kNormalisation, kStem, "computeinternalgradients"},
    {kNormalisation, kWhole, "ck_tile::kentry", "norm"},

    {kOptimiser, kStem, "adam_kernel"},
    {kOptimiser, kStem, "fused_adam"},
    {kOptimiser, kStem, "fusedadam"},
    {kOptimiser, kStem, "fused_sgd"},
    {kOptimiser, kStem, "adagrad"},

    // cuDNN, CUTLASS, MIOpen and Composable Kernel. Many run a matrix product inside and say so:
    // convolution comes before gemm.
    {kConvolution, kWhole, "convolve"},
    {kConvolution, kWhole, "convolution"},
    {kConvolution, kWhole, "conv1d"},
    {kConvolution, kWhole, "conv2d"},
    {kConvolution, kWhole, "conv3d"},
    {kConvolution, kWhole, "3dconv"},
    {kConvolution, kWhole, "conv_"},
    {kConvolution, kWhole, "conv_depthwise"},
    {kConvolution, kWhole, "scudnn"},
    {kConvolution, kWhole, "884cudnn"},
    {kConvolution, kWhole, "688cudnn"},
    {kConvolution, kWhole, "816cudnn"},
    {kConvolution, kWhole, "winograd"},
    {kConvolution, kWhole, "dgrad"},
    {kConvolution, kWhole, "wgrad"},
    {kConvolution, kWhole, "fprop"},
    {kConvolution, kWhole, "bwd_weight"},
    {kConvolution, kWhole, "bwd_data"},
    {kConvolution, kWhole, "implicit_gemm"},
    {kConvolution, kStem, "igemm_fwd"},
    {kConvolution, kStem, "igemm_bwd"},
    {kConvolution, kStem, "igemm_wrw"},
    {kConvolution, kStem, "asmconv"},
    {kConvolution, kStem, "im2col"},
    {kConvolution, kStem, "im2d2col"},
    {kConvolution, kStem, "col2im"},
    {kConvolution, kStem, "im3d2col"},
    {kConvolution, kStem, "fft2d_"},
    {kConvolution, kStem, "fft1d_"},
    {kConvolution, kStem, "flip_filter"},
    {kConvolution, kStem, "pointwise_mult_and_sum_complex"},
    {kConvolution, kStem, "computeoffsetskernel"},
    {kConvolution, kStem, "computeboffsetskernel"},

    {kGemm, kStem, "gemm"},
    {kGemm, kStem, "gemv"},
    {kGemm, kStem, "nvjet"},
    {kGemm, kStem, "cijk_"},
    {kGemm, kStem, "matmul"},
    {kGemm, kStem, "mul_mat"},
    {kGemm, kStem, "bmm_"},
    {kGemm, kStem, "triton_mm"},
    {kGemm, kStem, "splitkreduce"},
    {kGemm, kStem, "wvsplitk"},
    {kGemm, kStem, "marlin"},
    {kGemm, kStem, "fused_moe"},
    {kGemm, kStem, "epilogue::impl"},
    {kGemm, kStem, "cutlass", "gemm"},
    {kGemm, kStem, "cutlass", "cutlass_"},
    {kGemm, kStem, "ck_tile::kentry", "gemm"},

    {kSortScan, kStem, "sort"},
    {kSortScan, kStem, "scan"},
    {kSortScan, kStem, "cumsum"},
    {kSortScan, kStem, "topk"},
    {kSortScan, kStem, "histogram"},
    {kSortScan, kStem, "moe::dev::routing"},
    {kSortScan, kStem, "deviceselect"},
    {kSortScan, kStem, "devicecompact"},

    {kReduction, kStem, "softmax"},
    {kReduction, kStem, "soft_max"},
    {kReduction, kStem, "nll_loss"},
    {kReduction, kStem, "classnll"},
    {kReduction, kStem, "cross_entropy"},
    {kReduction, kStem, "lpnorm"},
    {kReduction, kStem, "dot_kernel"},
    {kReduction, kStem, "reduce"},
    {kReduction, kStem, "argmax"},
    {kReduction, kStem, "max_pool"},
    {kReduction, kStem, "avg_pool"},
    {kReduction, kStem, "average_pool"},
    {kReduction, kStem, "pooling"},

    {kCopy, kStem, "catarray"},
    {kCopy, kStem, "concat_"},
    {kCopy, kStem, "cpy_scalar"},
    {kCopy, kStem, "get_rows"},
    {kCopy, kStem, "set_rows"},
    {kCopy, kStem, "copy"},
    {kCopy, kStem, "memcpy"},
    {kCopy, kStem, "memset"},
    {kCopy, kStem, "fillbuffer"},
    {kCopy, kStem, "transpose"},
    {kCopy, kStem, "permute"},
    {kCopy, kStem, "nchwtonhwc"},
    {kCopy, kStem, "nhwctonchw"},
    {kCopy, kStem, "gather"},
    {kCopy, kStem, "scatter"},
    {kCopy, kStem, "indexselect"},
    {kCopy, kStem, "indexing_backward"},
    {kCopy, kStem, "reshape_and_cache"},
    {kCopy, kStem, "kvcache"},
    {kCopy, kStem, "kv_cache"},

    {kElementwise, kStem, "elementwise"},
    {kElementwise, kStem, "unary_op_kernel"},
    {kElementwise, kStem, "unary_gated_op"},
    {kElementwise, kStem, "k_bin_bcast"},
    {kElementwise, kStem, "dropout"},
    {kElementwise, kStem, "act_and_mul"},
    {kElementwise, kStem, "silu"},
    {kElementwise, kStem, "gelu"},
    {kElementwise, kStem, "relu"},
    {kElementwise, kStem, "quantize"},
    {kElementwise, kStem, "quant_kernel"},
    {kElementwise, kStem, "scalepackedtensor"},
    {kElementwise, kStem, "scal_kernel"},
    {kElementwise, kStem, "subtensorop"},
    {kElementwise, kStem, "upsample"},
};

// ASCII only: the words of the rules are ASCII.
std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace

std::string_view class_name(KernelClass type) {
  return kClassNames[static_cast<std::size_t>(type)];
}

bool is_communication(std::string_view name) {
  const std::string text = lower(name);
  return std::any_of(kCommunicationWords.begin(), kCommunicationWords.end(),
                     [&](std::string_view word) { return holds(text, word); });
}

KernelClass classify_kernel(std::string_view name) {
  if (is_communication(name)) return kCommunication;
  const std::string text = demangle(name);
  const std::string whole = lower(text);
  const std::string stem = lower(qualified_name(text));
  for (const Rule& rule : kRules) {
    if (holds(rule.part == kStem ? stem : whole, rule.holds) &&
        (rule.also.empty() || holds(whole, rule.also))) {
      return rule.type;
    }
  }
  return kOther;
}

}  // namespace pasta::tools
