// Every patch, for adapters that run those that a watched program is asked for.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "device/launch.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/warp.h"

namespace pasta::device {

// What the program that watches tells the one that is watched: names of patches, separated by
// commas; none or "": `access`.
inline constexpr const char* kPatchesVariable = "PASTA_PATCHES";

// A patch at one launch, on the host.
class HostPatch {
 public:
  virtual ~HostPatch() = default;
  virtual void on_access(const Warp& warp) = 0;
  [[nodiscard]] virtual PatchResult result(const Names& names) const = 0;
};

struct PatchEntry {
  std::string_view name;    // of the tools that it is for, too
  std::string_view format;  // of its result
  // `launch` outlives what is made.
  std::unique_ptr<HostPatch> (*make)(const Launch& launch);
};
std::span<const PatchEntry> patches();
// Those that `names` asks for, each once; what is no name of one is left out.
std::vector<const PatchEntry*> patches_of(std::string_view names);

// Several of them at one launch, as one patch for the host runner.
struct HostPatches {
  using State = std::vector<std::unique_ptr<HostPatch>>;
  static void on_access(State& state, const Launch&, const Warp& warp) {
    for (const auto& patch : state) patch->on_access(warp);
  }
};

}  // namespace pasta::device
