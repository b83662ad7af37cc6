// PyTorch/Kineto and other Chrome JSON traces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters {

extern const AdapterInfo kKinetoJsonInfo;

// True for anything that begins as a JSON object or array does: which of the many JSON documents
// of this field it is shows only in its members, and open() names what it cannot read.
bool sniff_kineto_json(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open_kineto_json(Input input);

}  // namespace pasta::adapters
