// Reads .pasta files (docs/format.md).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"

namespace pasta::adapters::pasta_file {

inline constexpr AdapterInfo kInfo{
    .name = "pasta", .help = "PASTA's own trace file", .provides = KindSet::all(), .live = false};

bool sniff(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open(Input input);
// Files with one UUID are parts of one trace, each with the events that end after those of the one
// before it, and are read as the one file that they were cut from.
std::string run_of(std::string_view path, std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open_run(std::vector<Input> parts);

}  // namespace pasta::adapters::pasta_file
