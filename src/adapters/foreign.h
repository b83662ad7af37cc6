// Files that people bring and that are no trace PASTA reads: told by their content and refused by
// name, with what to do instead.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace pasta::adapters {

// What the file is and what to do, as the end of a sentence that begins with its path; nothing
// when it is not recognised.
std::optional<std::string> recognise_foreign(std::span<const std::byte> head);

}  // namespace pasta::adapters
