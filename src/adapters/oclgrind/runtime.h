// Where the library that the OpenCL loader takes for Oclgrind's runtime finds that runtime.
#pragma once

namespace pasta::adapters::oclgrind {

inline constexpr const char* kRuntimeVariable = "PASTA_OCLGRIND_RUNTIME";

}  // namespace pasta::adapters::oclgrind
