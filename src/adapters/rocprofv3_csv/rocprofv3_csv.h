// The tables that AMD's rocprofv3 writes with `--output-format csv`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"

namespace pasta::adapters::rocprofv3_csv {

inline constexpr AdapterInfo kInfo{
    .name = "rocprofv3_csv",
    .help = "the CSV tables of one run of rocprofv3 (kernel_trace, hip_api_trace, ...)",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kAlloc |
                Kind::kFree | Kind::kCounter,
    .live = false};

// By the columns of the header.
bool sniff(std::span<const std::byte> head);
// Whether it can be a part of a trace: tables of totals cannot.
bool confirm(ByteStream& stream);
// One table. Tables without a timeline are refused by name.
Result<std::unique_ptr<Adapter>> open(Input input);
// What stands before the table's name in the file's name; "" when nothing does.
std::string run_of(std::string_view path, std::span<const std::byte> head);
// The tables of one run as one trace, so that kernels find their launches.
Result<std::unique_ptr<Adapter>> open_run(std::vector<Input> inputs);

}  // namespace pasta::adapters::rocprofv3_csv
