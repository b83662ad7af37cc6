// JSON documents that people bring and that are no trace PASTA reads.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pasta::adapters {

// What a document is and what to do, as the end of a sentence that begins with its path; nothing
// when it is not recognised. `members`: names of the first members of the top-level object, or the
// first one of the first record of a top-level array ("[" where that is an array).
std::optional<std::string_view> recognise_foreign_json(std::span<const std::string> members);

}  // namespace pasta::adapters
