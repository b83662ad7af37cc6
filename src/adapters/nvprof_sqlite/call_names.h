// Which call a number of CUPTI's means: nvprof writes the numbers only.
#pragma once

#include <cstdint>
#include <string>

namespace pasta::adapters::nvprof_sqlite {

enum class Api : std::uint8_t { kRuntime, kDriver };

// "cudaLaunchKernel"; "runtime call 999" for a number that is not known here.
std::string call_name(Api api, std::int64_t number);

}  // namespace pasta::adapters::nvprof_sqlite
