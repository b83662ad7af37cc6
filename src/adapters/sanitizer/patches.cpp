#include "adapters/sanitizer/patches.h"

#include <array>
#include <cstring>

#include "device/access.h"
#include "device/divergence.h"
#include "device/empty.h"
#include "device/gpu_patch.h"
#include "device/hotpages.h"
#include "device/layout.h"
#include "device/reuse.h"

namespace pasta::adapters::sanitizer {
namespace {

using device::Launch;
using device::Layout;

// By which function it is called that looks into all memory, and by which that does so into global
// memory alone, if there it is called.
struct Functions {
  Instruction instruction;
  std::string_view everywhere, global;
};
constexpr std::array kFunctions = {
    Functions{Instruction::kGlobal, "global", "global"},
    Functions{Instruction::kCopyAsync, "copy", "copy_read"},
    Functions{Instruction::kBulkGlobalToShared, "bulk_to_shared", "bulk_to_shared"},
    Functions{Instruction::kBulkSharedToGlobal, "bulk_to_global", "bulk_to_global"},
    Functions{Instruction::kBulkReductionToGlobal, "bulk_reduce_global", "bulk_reduce_global"},
    Functions{Instruction::kShared, "shared", ""},
    Functions{Instruction::kLocal, "local", ""},
    Functions{Instruction::kRemoteShared, "shared", ""},
    Functions{Instruction::kMatrix, "matrix", ""},
    Functions{Instruction::kAsyncStore, "async_store", ""},
    Functions{Instruction::kAsyncReduction, "async_reduction", ""},
    Functions{Instruction::kBulkSharedToShared, "bulk_shared", ""},
    Functions{Instruction::kBulkReductionToShared, "bulk_reduce_shared", ""},
};

// So that many launches find room side by side, and little travels back.
template <class Patch>
typename Patch::Settings settings() {
  typename Patch::Settings chosen{};
  if constexpr (requires { chosen.on_gpu; }) chosen.on_gpu = true;
  if constexpr (requires { chosen.copies; }) chosen.copies = Patch::kCopies;
  if constexpr (requires { chosen.sites; }) chosen.sites = 1024;
  if constexpr (requires { chosen.outcomes; }) chosen.outcomes = 1024;
  if constexpr (requires { chosen.marks.together; }) chosen.marks.together = std::uint64_t{4} << 20;
  if constexpr (requires { chosen.most_blocks; }) chosen.most_blocks = std::uint64_t{4} << 10;
  return chosen;
}

template <class Patch>
class OfObjects final : public PatchOfObjects {
 public:
  explicit OfObjects(std::span<const device::MemoryObject> objects)
      : objects_(objects), settings_(settings<Patch>()) {
    here_ = table_.make([this](Layout& layout) { return lay_table(layout); });
  }

  [[nodiscard]] std::span<const std::byte> table() const override { return table_.bytes(); }

  void put_table(std::uint64_t address) override {
    Layout layout(std::span(reinterpret_cast<std::byte*>(address), table().size()));
    there_ = lay_table(layout);
  }

  [[nodiscard]] Block block(const Launch& launch, std::uint64_t code,
                            std::uint64_t address) const override {
    Layout layout = address == 0 ? Layout() : Layout(address + device::kHeaderBytes<Patch>);
    const device::GpuLaunch<Patch> header = {
        with(launch, there_.objects),
        device::lay_out<Patch>(with(launch, objects_.data()), there_.shared, settings_, layout),
        code};
    constexpr std::size_t kBefore = device::bytes_before<Patch>();
    constexpr std::size_t kResultBefore = device::result_bytes_before<Patch>();
    const std::size_t block_at = kBefore + device::kHeaderBytes<Patch>;
    Block made{
        .bytes = block_at + layout.bytes(),
        .header = kBefore,
        .result_begin = kResultBefore > 0 ? kBefore - kResultBefore : block_at,
        .result_end = block_at + layout.result_bytes(),
        .image = std::vector<std::byte>(device::kHeaderBytes<Patch> + layout.image().size())};
    std::memcpy(made.image.data(), &header, sizeof header);
    if (!layout.image().empty()) {
      std::memcpy(made.image.data() + device::kHeaderBytes<Patch>, layout.image().data(),
                  layout.image().size());
    }
    return made;
  }

  [[nodiscard]] device::PatchResult result(const Launch& launch, std::span<std::byte> bytes,
                                           const device::Names& names) const override {
    if constexpr (requires { Patch::result; }) {
      constexpr std::size_t kBefore = device::result_bytes_before<Patch>();
      Layout layout(bytes.subspan(kBefore > 0 ? kBefore + device::kHeaderBytes<Patch> : 0));
      const Launch here = with(launch, objects_.data());
      return Patch::result(here, device::lay_out<Patch>(here, here_.shared, settings_, layout),
                           names);
    } else {
      return {};
    }
  }

 private:
  struct Table {
    const device::MemoryObject* objects;
    device::SharedOf<Patch> shared;
  };
  Table lay_table(Layout& layout) const {
    const device::MemoryObject* const objects = layout.table(objects_);
    return {objects, device::share<Patch>(with({}, objects_.data()), settings_, layout)};
  }
  [[nodiscard]] Launch with(Launch launch, const device::MemoryObject* objects) const {
    launch.objects = objects;
    launch.object_count = static_cast<std::uint32_t>(objects_.size());
    return launch;
  }

  std::span<const device::MemoryObject> objects_;
  typename Patch::Settings settings_;
  device::HostBlock table_;
  Table here_{}, there_{};  // in this copy of it, and in that on the device
};

template <class Patch>
std::unique_ptr<PatchOfObjects> of(std::span<const device::MemoryObject> objects) {
  return std::make_unique<OfObjects<Patch>>(objects);
}

template <class Patch>
constexpr PatchKind kind(std::string_view name, Reach reach) {
  return {name, name, reach, Patch::kFormat, of<Patch>};
}
constexpr PatchKind nothing(std::string_view name, Reach reach) {
  return {name, "empty", reach, "", of<device::EmptyPatch>};
}

constexpr std::array kPatches = {
    kind<device::AccessPatch>("access", Reach::kEverywhere),
    kind<device::HotpagesPatch>("hotpages", Reach::kGlobalMemory),
    kind<device::ReusePatch>("reuse", Reach::kGlobalMemory),
    kind<device::DivergencePatch>("divergence", Reach::kEverywhere),
    nothing("empty", Reach::kEverywhere),
    nothing("empty_global", Reach::kGlobalMemory),
};

}  // namespace

std::span<const PatchKind> patches() { return kPatches; }

const PatchKind* find_patch(std::string_view name) {
  for (const PatchKind& patch : kPatches) {
    if (patch.name == name) return &patch;
  }
  return nullptr;
}

std::vector<Point> points(const PatchKind& patch, bool global_only) {
  const bool global = global_only || patch.reach == Reach::kGlobalMemory;
  std::vector<Point> all;
  for (const Functions& of : kFunctions) {
    const std::string_view function = global ? of.global : of.everywhere;
    if (!function.empty()) all.push_back({of.instruction, function});
  }
  return all;
}

}  // namespace pasta::adapters::sanitizer
