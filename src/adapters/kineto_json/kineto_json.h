// PyTorch/Kineto and other Chrome JSON traces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::kineto_json {

inline constexpr AdapterInfo kInfo{
    .name = "kineto_json",
    .help = "PyTorch profiler (Kineto) and other Chrome JSON traces, also gzip and zip",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kFill |
                Kind::kSync | Kind::kAlloc | Kind::kFree | Kind::kCounter,
    .live = false};

// True for anything that begins as a JSON object or array does: which of the many JSON documents
// of this field it is shows only in its members, and reading names what it is not.
bool sniff(std::span<const std::byte> head);
// Whether it is a trace rather than one of those others: it has "traceEvents", or records with a
// phase. Looks at no more than the first 16 MiB.
bool confirm(ByteStream& stream);
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::kineto_json
