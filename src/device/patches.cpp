#include "device/patches.h"

#include <algorithm>
#include <array>

#include "device/access.h"
#include "device/divergence.h"
#include "device/hotpages.h"
#include "device/reuse.h"

namespace pasta::device {
namespace {

template <class Patch>
class HostPatchOf final : public HostPatch {
 public:
  explicit HostPatchOf(const Launch& launch) : launch_(launch), state_(launch) {}
  void on_access(const Warp& warp) override { Patch::on_access(state_.state(), launch_, warp); }
  [[nodiscard]] PatchResult result(const Names& names) const override {
    return Patch::result(launch_, state_.state(), names);
  }

 private:
  const Launch& launch_;
  HostState<Patch> state_;
};

template <class Patch>
constexpr PatchEntry entry(std::string_view name) {
  return {name, Patch::kFormat, [](const Launch& launch) -> std::unique_ptr<HostPatch> {
            return std::make_unique<HostPatchOf<Patch>>(launch);
          }};
}

constexpr std::array kPatches = {entry<AccessPatch>("access"), entry<HotpagesPatch>("hotpages"),
                                 entry<ReusePatch>("reuse"), entry<DivergencePatch>("divergence")};

}  // namespace

std::span<const PatchEntry> patches() { return kPatches; }

std::vector<const PatchEntry*> patches_of(std::string_view names) {
  if (names.empty()) return {&kPatches.front()};
  std::vector<const PatchEntry*> found;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    const auto at = std::ranges::find(kPatches, name, &PatchEntry::name);
    if (at == kPatches.end() || std::ranges::find(found, &*at) != found.end()) continue;
    found.push_back(&*at);
  }
  return found;
}

}  // namespace pasta::device
