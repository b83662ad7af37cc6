// Which call paths are forward work that runs again inside backward.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "pasta/dictionary.h"
#include "pasta/event.h"

namespace pasta::tools::diagnose {

class Recomputed {
 public:
  // An operator range of a host thread.
  void add(const Event& scope, const Dictionary& dictionary);
  enum class Path : std::uint8_t { kUnknown, kForward, kBackward, kRecomputed };
  struct Found {
    Path path = Path::kUnknown;
    StringId operator_name{};  // of a recomputed path: the forward operator
  };
  // What a path of device work is, after the last event.
  [[nodiscard]] Found of(FrameId path, const Dictionary& dictionary) const;

 private:
  // Autograd numbers the operators it will have to differentiate, so not those that a backward
  // operator calls, but those of a forward pass that runs inside it.
  std::unordered_set<std::uint32_t> forward_, backward_;  // frames
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace pasta::tools::diagnose
