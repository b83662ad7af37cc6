// What `doctor` finds out about one thing.
#pragma once

#include <cstdint>
#include <string>

namespace pasta::cli {

struct Found {
  enum class State : std::uint8_t { kOk, kWarning, kMissing };
  State state = State::kOk;
  std::string detail;
  std::string remedy = {};  // what to do, unless all is well
};

}  // namespace pasta::cli
