#include "adapters/nsys_sqlite/vocabulary.h"

#include <gtest/gtest.h>

#include "adapters/common/operator_text.h"

namespace pasta::adapters::nsys_sqlite {
namespace {

TEST(NsysVocabulary, CallsLoseOnlyTheVersionOfTheirInterface) {
  EXPECT_EQ(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(without_version("cudaGraphLaunch_v10000"), "cudaGraphLaunch");
  EXPECT_EQ(without_version("cuMemAlloc_v2"), "cuMemAlloc_v2");
  EXPECT_EQ(without_version("x7000"), "x7000");
  EXPECT_EQ(without_version("_v7000"), "");
  EXPECT_EQ(without_version(""), "");
}

TEST(NsysVocabulary, OperatorsOfPyTorch) {
  using common::OperatorText, common::read_operator;
  const OperatorText full = read_operator(
      "aten::mul, seq = 45328, op_id = 7, sizes = [[2, 3], []], input_op_ids = [[1]]");
  EXPECT_TRUE(full.is_operator);
  EXPECT_EQ(full.name, "aten::mul");
  EXPECT_EQ(full.sequence, 45329u);
  EXPECT_EQ(full.sizes, "[[2, 3], []]");

  EXPECT_EQ(read_operator("f<a, b>(c), op_id = 3").name, "f<a, b>(c)");
  EXPECT_EQ(read_operator("f, seq = x").sequence, 0u);
  const OperatorText numbers = read_operator("aten::mul, seq = 45328, op_id = 7");
  EXPECT_EQ(numbers.sequence, 45329u);
  EXPECT_EQ(numbers.sizes, "");
  const OperatorText turned = read_operator("f, op_id = 7, sizes = [[2, 3]], seq = 5");
  EXPECT_EQ(turned.sequence, 6u);
  EXPECT_EQ(turned.sizes, "[[2, 3]]");
  for (const auto* const broken :
       {"f, sizes = [[2, 3]", "f, sizes = 5", "f, sizes = [[a]]", "f, sizes = ", "f, sizes = ]["}) {
    EXPECT_EQ(read_operator(broken).sizes, "") << broken;
    EXPECT_EQ(read_operator(broken).name, "f");
  }
  const OperatorText plain = read_operator("step 4, seq=5");
  EXPECT_FALSE(plain.is_operator);
  EXPECT_EQ(plain.name, "step 4, seq=5");
}

TEST(NsysVocabulary, OperatorsOfXla) {
  using common::OperatorText, common::read_operator;
  const OperatorText named = read_operator(
      "Thunk:#name=jit(loss)/jvp(f(x,y))/"
      "dot_general,hlo_op=gemm_fusion_dot.3,unique_hlo_op_id=85#");
  EXPECT_TRUE(named.is_operator);
  EXPECT_EQ(named.name, "jit(loss)/jvp(f(x,y))/dot_general");
  EXPECT_EQ(named.hlo, "gemm_fusion_dot.3");
  EXPECT_EQ(named.sequence, 0u);

  const OperatorText bare = read_operator("Thunk:#hlo_op=command_buffer_1#");
  EXPECT_TRUE(bare.is_operator);
  EXPECT_EQ(bare.name, "command_buffer_1");
  EXPECT_EQ(bare.hlo, "");
  for (const auto* const other :
       {"Thunk:#", "Thunk:##", "Thunk:#name=#", "Thunk:#hlo_op=#", "Thunk:#hlo_op=x",
        "XlaModule:##", "XlaModule:#hlo_module=,program_id=1#",
        "XlaModule:#hlo_module=jit_loss,program_id=1", "XlaModule:#hlo_module=gemm_fusion_dot.6#",
        "XlaCompile:#module=jit_f#"}) {
    EXPECT_FALSE(read_operator(other).is_operator) << other;
    EXPECT_FALSE(read_operator(other).is_module) << other;
    EXPECT_EQ(read_operator(other).name, other);
  }
  for (const auto* const module :
       {"XlaModule:#hlo_module=jit_loss,program_id=2651#",
        "XlaModule:#prefix=jit(loss)/a,b,hlo_module=jit_loss,program_id=2651#"}) {
    EXPECT_TRUE(read_operator(module).is_module) << module;
    EXPECT_EQ(read_operator(module).name, "jit_loss");
  }
}

TEST(NsysVocabulary, NumbersOutsideOfTheTablesSayNothing) {
  for (const std::int64_t number : {INT64_MIN, std::int64_t{-1}, std::int64_t{99}, INT64_MAX}) {
    EXPECT_EQ(copy_kind(number).direction, CopyDirection::kUnknown);
    EXPECT_EQ(memory_kind(number), "");
    EXPECT_EQ(migration_cause(number), "");
    EXPECT_EQ(fault_access(number), "");
    EXPECT_EQ(sync_type(number).target, SyncTarget::kUnknown);
    EXPECT_EQ(nvtx_type(number), NvtxType::kOther);
  }
}

TEST(NsysVocabulary, GlobalIds) {
  const GlobalId id{281477409407121u};
  EXPECT_EQ(id.process(), 145u);
  EXPECT_EQ(id.thread(), 145u);
  EXPECT_EQ(id.of_process(), 281477409406976u);
  EXPECT_EQ(id.machine(), 1u);
}

}  // namespace
}  // namespace pasta::adapters::nsys_sqlite
