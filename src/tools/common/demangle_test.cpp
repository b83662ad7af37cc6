#include "tools/common/demangle.h"

#include <gtest/gtest.h>

#include <string>

namespace pasta::tools {
namespace {

TEST(Demangle, ShowsMangledNamesAndLeavesTheRest) {
  EXPECT_EQ(demangle("_Z3addPf"), "add(float*)");
  EXPECT_EQ(demangle("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(demangle("_Znot a mangled name"), "_Znot a mangled name");
  EXPECT_EQ(demangle(""), "");
}

TEST(Demangle, LongTextIsNotGivenToTheRuntime) {
  const std::string bomb = "_Z1f" + std::string(1 << 20, 'P') + "i";
  EXPECT_EQ(demangle(bomb), bomb);
}

struct Row {
  const char* text;
  const char* qualified;
  const char* shortened;
};

TEST(ShortName, CutsReturnTypeTemplateArgumentsAndParameters) {
  const Row rows[] = {
      {"void at::native::reduce_kernel<512, 1, at::native::Op<float> >(at::native::Op<float>)",
       "at::native::reduce_kernel", "reduce_kernel"},
      {"ncclKernel_AllReduce(ncclWorkElem)", "ncclKernel_AllReduce", "ncclKernel_AllReduce"},
      {"void ns::(anonymous namespace)::pool<float>(int)", "ns::pool", "pool"},
      {"void ns::<unnamed>::norm<float, (bool)0>(int, T2)", "ns::norm", "norm"},
      {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 4>(Params)",
       "internal::gemvx::kernel", "kernel"},
      {"decltype(nullptr) f<(1)>(int)", "f", "f"},
      {"void f<(A)(1 > 0), &(g(int))>(int)", "f", "f"},
      {"void f<int, void (*)(float)>(void (*)(int))", "f", "f"},
      {"foo(int) [clone .kd]", "foo", "foo"},
      {"f(int)::{lambda(int)#1}::operator()(int) const", "f::operator()", "operator()"},
      {"void (anonymous namespace)::h<int>(int)", "h", "h"},
      {"void g<int>", "g", "g"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_0", "triton_poi_fused_add_0"},
      {"ns::plain", "ns::plain", "plain"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(qualified_name(row.text), row.qualified) << row.text;
    EXPECT_EQ(short_name(row.text), row.shortened) << row.text;
  }
}

TEST(ShortName, LeavesWhatIsNotAFunctionNameWhole) {
  for (const char* text :
       {"", "Memcpy HtoD (Pageable -> Device)", "two words", "void f<int", "f(int", "a)b", "f<a>)",
        "(x)", "a < b", "bool operator< <int>(int)", "ns::f(int"}) {
    EXPECT_EQ(qualified_name(text), text);
    EXPECT_EQ(short_name(text), text);
  }
}

}  // namespace
}  // namespace pasta::tools
