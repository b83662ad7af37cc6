#include "tools/common/kernel_class.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace pasta::tools {
namespace {

TEST(KernelClass, NamesOfPublicTraces) {
  std::ifstream file(PASTA_SOURCE_DIR "/tests/data/kernel_names.tsv");
  std::set<std::string> seen;
  int names = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    const std::string expected = line.substr(0, tab);
    const std::string name = line.substr(tab + 1);
    EXPECT_EQ(class_name(classify_kernel(name)), expected) << name;
    EXPECT_EQ(is_communication(name), expected == "communication") << name;
    seen.insert(expected);
    ++names;
  }
  EXPECT_GT(names, 400);
  EXPECT_EQ(seen.size(), kKernelClassCount) << "every class has an example";
}

struct Case {
  const char* name;
  KernelClass type;
};

TEST(KernelClass, WordsThatSeveralFamiliesShare) {
  const Case cases[] = {
      // A matrix product inside a convolution, and an attention kernel built on CUTLASS.
      {"sm80_xmma_dgrad_implicit_gemm_tf32f32", KernelClass::kConvolution},
      {"void cutlass::Kernel<cutlass_80_wmma_tensorop_s161616gemm_f16_16x16>(Params)",
       KernelClass::kGemm},
      {"void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::gemm::X> >(Params)",
       KernelClass::kAttention},
      // Types of one library as arguments of another kernel.
      {"void scale<cutlass::half_t>(cutlass::half_t*)", KernelClass::kOther},
      {"void at::native::vectorized_elementwise_kernel<4, softmax_lambda>(int)",
       KernelClass::kElementwise},
      // "lamb" is an optimiser, "lambda" is not.
      {"void multi_tensor_apply_kernel<L<2>, UnaryOp<f(int)::{lambda()#1}> >(int)",
       KernelClass::kElementwise},
      {"void multi_tensor_apply_kernel<L<4>, LAMBStage1Functor<float> >(int)",
       KernelClass::kOptimiser},
      {"void multi_tensor_apply_kernel<L<4>, SGDFunctor<4, float> >(int)", KernelClass::kOptimiser},
      {"void at::native::multi_tensor_apply_kernel<M<4>, FusedAdamMathFunctor<float, 4> >(int)",
       KernelClass::kOptimiser},
      {"void multi_tensor_apply_kernel<L<1>, L2NormFunctor<float> >(int)", KernelClass::kReduction},
      {"rotary_embedding_kernel", KernelClass::kElementwise},
      {"void EmbeddingBag_updateOutputKernel_sum_mean<float>(int)", KernelClass::kEmbedding},
      {"triton_per_fused_native_layer_norm_3", KernelClass::kNormalisation},
      {"triton_poi_fused_native_layer_norm_3", KernelClass::kElementwise},
      {"triton_per_fused__softmax_1", KernelClass::kReduction},
      {"triton_tem_fused_mm_7", KernelClass::kGemm},
      {"void flash_fwd_splitkv_combine_kernel<float>(int)", KernelClass::kAttention},
      {"naive_conv_packed_fwd_nchw_float_double_float", KernelClass::kConvolution},
      {"Im2d2Col_v2", KernelClass::kConvolution},
      {"splitKreduce_kernel", KernelClass::kGemm},
      {"some_kernel", KernelClass::kOther},
      {"", KernelClass::kOther},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(class_name(classify_kernel(c.name)), class_name(c.type)) << c.name;
  }
}

TEST(KernelClass, MangledNamesAreReadDemangled) {
  // void at::native::reduce_kernel<512>(float*)
  EXPECT_EQ(classify_kernel("_ZN2at6native13reduce_kernelILi512EEEvPf"), KernelClass::kReduction);
}

TEST(KernelClass, CommunicationIsDecidedByWordsInAnyCase) {
  for (const char* name :
       {"ncclDevKernel_Generic", "RCCL_broadcast", "hcclAllReduce", "oneCCL_reduce",
        "void NVSHMEM_put()", "mscclpp_kernel", "void multimem_all_reduce<4>(int)",
        "void vllm::cross_device_reduce_1stage<half, 2>(int)", "void deep_ep::dispatch<8>(int)"}) {
    EXPECT_TRUE(is_communication(name)) << name;
    EXPECT_EQ(classify_kernel(name), KernelClass::kCommunication) << name;
  }
  for (const char* name : {"all_reduce_kernel", "multimem", "device_reduce", "ncc", "SendRecv"}) {
    EXPECT_FALSE(is_communication(name)) << name;
  }
}

}  // namespace
}  // namespace pasta::tools
