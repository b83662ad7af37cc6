// The pure parts; whole reports are in tests/diff/diagnose.
#include <gtest/gtest.h>

#include <limits>
#include <string_view>
#include <vector>

#include "tools/diagnose/matrix_kernel.h"
#include "tools/diagnose/work_log.h"

namespace pasta::tools::diagnose {
namespace {

using Units = MatrixKernel::Units;

struct Known {
  std::string_view name;
  Units units;
  bool inferred;
  int built_for;
};

class MatrixKernels : public testing::TestWithParam<Known> {};

TEST_P(MatrixKernels, AreToldFromTheirNames) {
  const MatrixKernel found = matrix_kernel(GetParam().name);
  EXPECT_EQ(found.units, GetParam().units) << GetParam().name;
  EXPECT_EQ(found.inferred, GetParam().inferred) << GetParam().name;
  EXPECT_EQ(found.built_for, GetParam().built_for) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(
    Names, MatrixKernels,
    testing::Values(
        Known{"volta_sgemm_128x64_nn", Units::kVector, false, 70},
        Known{"volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", Units::kVector, false,
              70},
        Known{"volta_h884gemm_256x64_ldg8_nn", Units::kMatrix, false, 70},
        Known{"volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
              Units::kMatrix, false, 70},
        Known{"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", Units::kMatrix, false, 75},
        Known{"ampere_sgemm_32x32_sliced1x4_tn", Units::kVector, false, 80},
        Known{"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", Units::kMatrix, false,
              80},
        Known{"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nt_align1>(int)",
              Units::kVector, false, 80},
        Known{"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn"
              "_align8>(int)",
              Units::kMatrix, false, 80},
        Known{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
              Units::kMatrix, false, 90},
        Known{"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", Units::kMatrix, false, 0},
        Known{"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)",
              Units::kVector, true, 0},
        Known{"void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false>(int)",
              Units::kVector, true, 0},
        Known{"Cijk_Ailk_Bljk_SB_MT128x128x16_SE_K1", Units::kVector, true, 0},
        Known{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN",
              Units::kMatrix, false, 0},
        Known{"Cijk_Ailk_Bljk_DB_MT64x64x16_SE", Units::kUnknown, false, 0},
        Known{"void gemv2T_kernel_val<int, int, float, float>(int)", Units::kUnknown, false, 0},
        Known{"splitKreduce_kernel", Units::kUnknown, false, 0},
        Known{"triton_mm_fused", Units::kUnknown, false, 0}, Known{"", Units::kUnknown, false, 0}));

TEST(MacroTile, IsInTheNamesOfTensile) {
  EXPECT_EQ(macro_tile("Cijk_Alik_Bljk_B_BS_BH_MT256x192x64_MI16x16x1_SN"), "256x192");
  EXPECT_EQ(macro_tile("Cijk_Alik_Bljk_MT256"), "");
  EXPECT_EQ(macro_tile("void gemm_MT256x192x64()"), "");
}

TEST(WorkLog, GivesBackWhatWasAdded) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  WorkLog log;
  std::vector<Event> events;
  const auto add = [&](Kind kind, std::int64_t start, std::int64_t end, std::uint64_t bytes) {
    Event event{};
    event.kind = kind;
    event.start_ns = start;
    event.end_ns = end;
    event.lane = {1};
    event.name = {static_cast<std::uint32_t>(kind)};
    if (kind == Kind::kCopy) event.copy.bytes = bytes;
    events.push_back(event);
    log.add(event);
  };
  add(Kind::kKernel, -kMax, -kMax + 5, 0);
  add(Kind::kCopy, -7, 3, kUnknownBytes);
  add(Kind::kCopy, 3, 3, 0);
  add(Kind::kKernel, 0, 900, 0);
  add(Kind::kCopy, -kMax, kMax, kUnknownBytes - 1);
  EXPECT_EQ(log.size(), events.size());
  EXPECT_EQ(log.keys().size(), 2U);

  WorkLog::Reader reader(log);
  WorkRecord record;
  for (const Event& event : events) {
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record.start_ns, event.start_ns);
    EXPECT_EQ(record.end_ns, event.end_ns);
    EXPECT_EQ(log.keys()[record.key].kind, event.kind);
    EXPECT_EQ(record.bytes, event.kind == Kind::kCopy ? event.copy.bytes : 0);
  }
  EXPECT_FALSE(reader.next(record));
}

}  // namespace
}  // namespace pasta::tools::diagnose
