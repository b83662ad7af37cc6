// The order in which a person lists files: rank2 before rank10.
#pragma once

#include <string_view>

namespace pasta::base {

// Digits count as the number they are; a strict weak order in which only equal texts are equal.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace pasta::base
