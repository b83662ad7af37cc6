// What the name of a matrix kernel says of the units it runs on.
#pragma once

#include <string>
#include <string_view>

namespace pasta::tools::diagnose {

struct MatrixKernel {
  enum class Units { kUnknown, kVector, kMatrix };  // FP32 pipelines; tensor cores, MFMA
  Units units = Units::kUnknown;
  // Told from template arguments and habits of the library instead of from a word that says it.
  bool inferred = false;
  int built_for = 0;  // compute capability, 10 * major + minor; 0 = the name does not say
};

// Of a kernel of class gemm or convolution: cuBLAS, cuDNN, CUTLASS, nvjet, Tensile, hipBLASLt.
// Kernels that only help (offsets, transposes of Winograd tiles, sums of split products) and those
// of FP64 or integers are kUnknown.
MatrixKernel matrix_kernel(std::string_view name);

// The part of the result that one block of a Tensile kernel makes, as its name says it after MT:
// "256x192"; empty when it does not.
std::string macro_tile(std::string_view name);

}  // namespace pasta::tools::diagnose
