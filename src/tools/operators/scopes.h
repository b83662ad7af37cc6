// Which ranges of the host make rows.
#pragma once

#include <span>
#include <string_view>

#include "pasta/event.h"

namespace pasta::tools::operators {

struct Scopes {
  std::string_view id;  // value of the option
  std::string_view one, many;
  std::string_view title;    // of the table
  std::string_view outside;  // name of the row of device work that no such range launched
  ScopeDomain domain;        // kUnknown: all but iteration marks

  // Iteration marks are no ranges of the program, and no nodes of its call paths.
  [[nodiscard]] bool has(ScopeDomain of) const {
    return domain == ScopeDomain::kUnknown ? of != ScopeDomain::kIteration : of == domain;
  }
};

// The rows of the option `scopes`, the default first.
std::span<const Scopes> all_scopes();

}  // namespace pasta::tools::operators
