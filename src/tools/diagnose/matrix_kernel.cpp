#include "tools/diagnose/matrix_kernel.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace pasta::tools::diagnose {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

template <class Parts>
bool any(std::string_view text, const Parts& parts) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return contains(text, part); });
}

// Words of instructions and classes that only the matrix units have.
constexpr std::string_view kMatrixWords[] = {
    "tensorop",
    "wmma",
    "warpgroup",
    "s884",
    "h884",
    "s1688",
    "h1688",
    "s16816",
    "h16816",
    "i16832",
    "_xmma_gemm_bf16",
    "_xmma_gemm_f16",
    "_xmma_gemm_tf32",
    "_xmma_gemm_e4m3",
    "_xmma_fprop_implicit_gemm_tf32",
    "_xmma_fprop_implicit_gemm_f16",
    "tf32",
    "hmma",
    "884cudnn",
    "688cudnn",
    "816cudnn",
    "nvjet",
};
// Words of FP32 arithmetic on the vector units. "sgemm" is BLAS for an FP32 product, which cuBLAS
// gives other names where it uses TF32.
constexpr std::string_view kVectorWords[] = {"_simt_", "sgemm_", "scudnn", "ffma", "magma_sgemm"};
// cuDNN's older engines have no word for it, only the type they compute in.
constexpr std::string_view kOldEngines[] = {"dgrad_engine<float",
                                            "wgrad_alg0_engine<float",
                                            "dgrad2d_alg1_1<float",
                                            "implicit_convolve_sgemm<float",
                                            "explicit_convolve_sgemm<float",
                                            "implicit_convolve_sgemm",
                                            "explicit_convolve_sgemm"};
constexpr std::string_view kHelpers[] = {"splitk_reduce",   "splitkreduce", "computeoffsets",
                                         "computeboffsets", "gemv",         "dot_kernel",
                                         "dgemm",           "gemmsn",       "gemmk1"};

// The number after `word`, of two or three digits.
int number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    int number = 0;
    std::size_t digits = 0;
    for (at += word.size(); at + digits < text.size() && digits < 4; ++digits) {
      const char c = text[at + digits];
      if (c < '0' || c > '9') break;
      number = number * 10 + (c - '0');
    }
    if (digits == 2 || digits == 3) return number;
  }
  return 0;
}

int architecture(std::string_view text) {
  struct Word {
    std::string_view word;
    int built_for;
  };
  constexpr Word kWords[] = {{"maxwell_", 50}, {"volta_", 70}, {"turing_", 75}, {"ampere_", 80}};
  for (const Word& word : kWords) {
    if (text.starts_with(word.word)) return word.built_for;
  }
  const int sm = number_after(text, "sm");
  if (sm != 0) return sm;
  return number_after(text, "cutlass_");  // cutlass_80_tensorop_...
}

// Tensile's names say the types right after the layouts of both operands ("Cijk_Ailk_Bljk_SB_"),
// and the matrix instruction as MI16x16x4x1.
MatrixKernel tensile(std::string_view text) {
  MatrixKernel kernel;
  const std::size_t types = text.find("_b");  // of the layout of the second operand
  const std::size_t after = types == text.npos ? text.npos : text.find('_', types + 1);
  if (after == text.npos) return kernel;
  const std::string_view rest = text.substr(after + 1);
  if (rest.starts_with("d") || rest.starts_with("i8") || rest.starts_with("z")) return kernel;
  const std::size_t at = rest.find("_mi");
  if (at != rest.npos && at + 3 < rest.size()) {
    const char digit = rest[at + 3];
    if (digit >= '1' && digit <= '9') kernel.units = MatrixKernel::Units::kMatrix;
  } else if (contains(rest, "_mt")) {
    kernel.units = MatrixKernel::Units::kVector;
    kernel.inferred = true;  // from what is missing
  }
  return kernel;
}

}  // namespace

MatrixKernel matrix_kernel(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (any(text, kHelpers)) return {};
  if (text.starts_with("cijk_")) return tensile(text);
  MatrixKernel kernel;
  kernel.built_for = architecture(text);
  if (any(text, kMatrixWords)) {
    kernel.units = MatrixKernel::Units::kMatrix;
  } else if (any(text, kOldEngines)) {
    kernel.units = MatrixKernel::Units::kVector;
    kernel.inferred = true;
  } else if (any(text, kVectorWords)) {
    kernel.units = MatrixKernel::Units::kVector;
  }
  return kernel;
}

std::string macro_tile(std::string_view name) {
  if (!name.starts_with("Cijk_")) return {};
  const std::size_t at = name.find("_MT");
  if (at == name.npos) return {};
  std::string_view rest = name.substr(at + 3);
  rest = rest.substr(0, rest.find_first_not_of("0123456789x"));
  const std::size_t depth = rest.rfind('x');  // 256x192x64: the last is how deep it reads at once
  return depth == rest.npos || rest.find('x') == depth ? std::string()
                                                       : std::string(rest.substr(0, depth));
}

}  // namespace pasta::tools::diagnose
