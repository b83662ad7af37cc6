#include "pasta/event.h"

#include <array>

namespace pasta {
namespace {
constexpr std::array<std::string_view, kKindCount> kNames = {"api",   "scope",   "kernel", "copy",
                                                             "fill",  "sync",    "alloc",  "free",
                                                             "fault", "counter", "device", "gap"};
}

std::string_view kind_name(Kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

bool kind_from_name(std::string_view name, Kind& kind) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      kind = static_cast<Kind>(i);
      return true;
    }
  }
  return false;
}

}  // namespace pasta
