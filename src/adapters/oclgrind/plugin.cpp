// What the simulator Oclgrind loads into the program that runs in it (OCLGRIND_PLUGINS): the
// accesses of work-items go to patches on the host, and what these make of a launch to the
// collector. A library of its own, see src/collect.
#include <dlfcn.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <oclgrind/Context.h>
#include <oclgrind/Kernel.h>
#include <oclgrind/KernelInvocation.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>
#include <oclgrind/WorkGroup.h>
#include <oclgrind/WorkItem.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/host_runner.h"
#include "device/launch_policy.h"
#include "device/patches.h"
#include "device/result.h"
#include "trace/device_result.h"
#include "trace/spool.h"

namespace pasta::adapters::oclgrind {
namespace {

namespace sim = ::oclgrind;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What a work-item did, as a trace holds it when the user asks for that (adapter.md): for ever.
struct RawAccess {
  std::uint64_t address = 0;
  std::uint32_t group = 0, item = 0;  // groups, and items of a group, are numbered x first
  std::uint32_t site = 0;             // the n-th place in the program, as they come up
  std::uint32_t bytes = 0;
  std::uint8_t space = 0;   // 0 global, 1 local
  std::uint8_t access = 0;  // 0 read, 1 write, 2 atomic; 3: all of the group passed a barrier
  std::uint8_t unused[6] = {};
};
static_assert(sizeof(RawAccess) == 32);
constexpr std::string_view kRawFormat = "raw-accesses/1";
constexpr std::size_t kRawAtOnce = trace::spool::kMaxTextBytes / sizeof(RawAccess);

bool wants_raw() {
  const char* wanted = std::getenv("PASTA_RAW_ACCESSES");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

// One launch under way.
struct Running {
  std::int64_t start_ns;
  std::uint64_t iteration = 0;
  std::string kernel;
  std::vector<device::MemoryObject> objects;
  std::map<std::uint64_t, std::string> names;  // by the address of an object
  device::Launch launch;
  device::HostPatches::State patches;  // as in Watcher
  std::optional<device::HostRunner<device::HostPatches>> runner;
  std::unordered_map<const llvm::Instruction*, std::uint64_t> sites;
  std::vector<const llvm::Instruction*> instructions;  // by the number of their site
  const sim::WorkGroup* group = nullptr;
  // An atomic operation is told as a load and mostly a store: these are of one.
  const sim::WorkItem* atomic_item = nullptr;
  const llvm::Instruction* atomic_site = nullptr;
  std::uint64_t barriers = 0;
  std::vector<RawAccess> raw;  // not told yet
};

// "input.cl:12:7 load"; "load" where the program has no lines; "" for what is of no instruction.
std::string name_of(const llvm::Instruction* instruction) {
  if (instruction == nullptr) return {};
  std::string what = instruction->getOpcodeName();
  const llvm::DebugLoc& place = instruction->getDebugLoc();
  if (!place || place.getLine() == 0) return what;
  return place->getFilename().str() + ":" + std::to_string(place.getLine()) + ":" +
         std::to_string(place.getCol()) + " " + what;
}

std::string_view text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

class Watcher final : public sim::Plugin {
 public:
  Watcher(const sim::Context* context, const trace::DeviceCollector& collector)
      : Plugin(context),
        collector_(collector),
        patches_(device::patches_of(text_of(device::kPatchesVariable))),
        // Who watches has checked it.
        policy_(device::LaunchPolicy::parse(text_of(device::kLaunchesVariable))
                    .value_or(device::LaunchPolicy())) {}

  // Groups are told one after the other.
  bool isThreadSafe() const override { return false; }

  void memoryAllocated(const sim::Memory* memory, size_t address, size_t size, cl_mem_flags,
                       const uint8_t*) override {
    if (memory->getAddressSpace() != sim::AddrSpaceGlobal) return;
    objects_[address] = {address, size, ++allocations_};
  }
  void memoryDeallocated(const sim::Memory* memory, size_t address) override {
    if (memory->getAddressSpace() == sim::AddrSpaceGlobal) objects_.erase(address);
  }

  void kernelBegin(const sim::KernelInvocation* invocation) override {
    ++launches_;
    auto running = std::make_unique<Running>();
    running->start_ns = now_ns();
    running->iteration = collector_.iterations();
    const sim::Kernel* kernel = invocation->getKernel();
    running->kernel = kernel->getName();
    device::Launch& launch = running->launch;
    for (unsigned i = 0; i < 3; ++i) {
      launch.grid[i] = static_cast<std::uint32_t>(invocation->getNumGroups()[i]);
      launch.block[i] = static_cast<std::uint32_t>(invocation->getLocalSize()[i]);
    }
    if (!policy_.take(running->kernel, launch.grid, launch.block, running->iteration)) {
      push_result(*running, device::kSkippedFormat, device::result_of(launch, {}));
      return;
    }
    running_ = std::move(running);
    for (const auto& [address, object] : objects_) running_->objects.push_back(object);
    running_->launch.objects = running_->objects.data();
    running_->launch.object_count = static_cast<std::uint32_t>(running_->objects.size());
    name_objects(*kernel);
    for (const device::PatchEntry* patch : patches_) {
      running_->patches.push_back(patch->make(running_->launch));
    }
    running_->runner.emplace(running_->launch, running_->patches);
  }

  void kernelEnd(const sim::KernelInvocation*) override {
    if (!running_) return;
    running_->runner->flush();
    tell_raw();
    const device::Names names = {
        .object =
            [&](const device::MemoryObject& object) {
              const auto name = running_->names.find(object.address);
              return name == running_->names.end() ? std::string() : name->second;
            },
        .site = [&](std::uint64_t site) { return name_of(running_->instructions[site]); }};
    for (std::size_t i = 0; i < patches_.size(); ++i) {
      device::PatchResult result = running_->patches[i]->result(names);
      result.barriers = running_->barriers;
      result.dropped = running_->runner->dropped();
      push_result(*running_, patches_[i]->format, std::move(result));
    }
    running_.reset();
  }

  void workGroupBegin(const sim::WorkGroup* group) override { enter(group); }
  void workGroupBarrier(const sim::WorkGroup* group, uint32_t) override {
    if (!running_) return;
    running_->runner->flush();
    ++running_->barriers;
    if (raw_) keep_raw({.group = raw_number_of(group), .access = 3});
  }
  void workGroupComplete(const sim::WorkGroup*) override {
    if (!running_) return;
    running_->runner->flush();
    running_->group = nullptr;  // the next may have its address
  }

  void memoryLoad(const sim::Memory* memory, const sim::WorkItem* item, size_t address,
                  size_t size) override {
    take(memory, item, address, size, device::Access::kRead);
  }
  void memoryStore(const sim::Memory* memory, const sim::WorkItem* item, size_t address,
                   size_t size, const uint8_t*) override {
    take(memory, item, address, size, device::Access::kWrite);
  }
  void memoryAtomicLoad(const sim::Memory* memory, const sim::WorkItem* item, sim::AtomicOp,
                        size_t address, size_t size) override {
    take(memory, item, address, size, device::Access::kAtomic);
    if (!running_) return;
    running_->atomic_item = item;
    running_->atomic_site = item->getCurrentInstruction();
  }
  void memoryAtomicStore(const sim::Memory* memory, const sim::WorkItem* item, sim::AtomicOp,
                         size_t address, size_t size) override {
    if (!running_) return;
    const bool same =
        running_->atomic_item == item && running_->atomic_site == item->getCurrentInstruction();
    running_->atomic_item = nullptr;
    if (!same) take(memory, item, address, size, device::Access::kAtomic);
  }
  // Of the group as a whole: an asynchronous copy, which its first item stands for.
  void memoryLoad(const sim::Memory* memory, const sim::WorkGroup* group, size_t address,
                  size_t size) override {
    take_of_group(memory, group, address, size, device::Access::kRead);
  }
  void memoryStore(const sim::Memory* memory, const sim::WorkGroup* group, size_t address,
                   size_t size, const uint8_t*) override {
    take_of_group(memory, group, address, size, device::Access::kWrite);
  }

 private:
  void push_result(const Running& running, std::string_view format, device::PatchResult result) {
    device::say_iteration(result, running.iteration);
    for (const std::string& part : device::write_result(result, trace::spool::kMaxTextBytes)) {
      tell(running, format, part.data(), part.size());
    }
  }
  void tell(const Running& running, std::string_view format, const void* blob, std::size_t bytes) {
    const trace::DeviceResult given{.size = sizeof given,
                                    .kernel = running.kernel.data(),
                                    .kernel_bytes = running.kernel.size(),
                                    .format = format.data(),
                                    .format_bytes = format.size(),
                                    .blob = blob,
                                    .blob_bytes = bytes,
                                    .launch = launches_,
                                    .start_ns = running.start_ns,
                                    .even_stopped = false};
    collector_.push(&given);
  }
  void tell_raw() {
    auto& raw = running_->raw;
    if (!raw.empty()) tell(*running_, kRawFormat, raw.data(), raw.size() * sizeof(RawAccess));
    raw.clear();
  }
  void keep_raw(const RawAccess& access) {
    running_->raw.push_back(access);
    if (running_->raw.size() == kRawAtOnce) tell_raw();
  }
  // Its own getGroupIndex() gives groups of several dimensions the same number (Oclgrind 21.10).
  [[nodiscard]] std::uint64_t number_of(const sim::WorkGroup* group) const {
    const sim::Size3 at = group->getGroupID();
    const std::uint32_t* grid = running_->launch.grid;
    return (at.z * grid[1] + at.y) * grid[0] + at.x;
  }
  [[nodiscard]] std::uint32_t raw_number_of(const sim::WorkGroup* group) const {
    return static_cast<std::uint32_t>(number_of(group));
  }
  void take(const sim::WorkGroup* group, const device::ItemAccess& access) {
    enter(group);
    running_->runner->access(access);
    if (!raw_) return;
    keep_raw({.address = access.address,
              .group = raw_number_of(group),
              .item = access.item,
              .site = static_cast<std::uint32_t>(access.site),
              .bytes = access.width,
              .space = static_cast<std::uint8_t>(access.space == device::Space::kShared ? 1 : 0),
              .access = static_cast<std::uint8_t>(access.access == device::Access::kRead    ? 0
                                                  : access.access == device::Access::kWrite ? 1
                                                                                            : 2)});
  }

  // What the kernel calls the objects it was given.
  void name_objects(const sim::Kernel& kernel) {
    for (auto value = kernel.values_begin(); value != kernel.values_end(); ++value) {
      const auto* argument = llvm::dyn_cast<llvm::Argument>(value->first);
      if (argument == nullptr || !argument->getType()->isPointerTy()) continue;
      if (value->second.size != sizeof(size_t) || value->second.data == nullptr) continue;
      const std::uint32_t object = running_->launch.find(value->second.getPointer(), 1);
      if (object == device::kNoObject || !argument->hasName()) continue;
      by_argument_[argument->getArgNo()] = {running_->objects[object].address,
                                            argument->getName().str()};
    }
    for (const auto& [number, named] : by_argument_) {
      std::string& name = running_->names[named.first];
      name += name.empty() ? named.second : ", " + named.second;
    }
    by_argument_.clear();
  }

  void enter(const sim::WorkGroup* group) {
    if (!running_ || running_->group == group) return;
    running_->group = group;
    running_->runner->begin_group(number_of(group));
  }

  std::uint64_t site_of(const llvm::Instruction* instruction) {
    const auto [known, fresh] =
        running_->sites.try_emplace(instruction, running_->instructions.size());
    if (fresh) running_->instructions.push_back(instruction);
    return known->second;
  }

  static std::optional<device::Space> space_of(const sim::Memory* memory) {
    switch (memory->getAddressSpace()) {
      case sim::AddrSpaceGlobal:
      case sim::AddrSpaceConstant:
        return device::Space::kGlobal;
      case sim::AddrSpaceLocal:
        return device::Space::kShared;
      default:  // an item's own, which is mostly registers
        return std::nullopt;
    }
  }

  void take(const sim::Memory* memory, const sim::WorkItem* item, size_t address, size_t size,
            device::Access access) {
    const auto space = space_of(memory);
    if (!running_ || !space || item == nullptr) return;
    const sim::WorkGroup* group = item->getWorkGroup();
    const sim::Size3 at = item->getLocalID();
    const sim::Size3 of = group->getGroupSize();
    take(group, {static_cast<std::uint32_t>((at.z * of.y + at.y) * of.x + at.x),
                 site_of(item->getCurrentInstruction()), address, static_cast<std::uint32_t>(size),
                 *space, access});
  }

  void take_of_group(const sim::Memory* memory, const sim::WorkGroup* group, size_t address,
                     size_t size, device::Access access) {
    const auto space = space_of(memory);
    if (!running_ || !space || group == nullptr) return;
    take(group, {0, site_of(nullptr), address, static_cast<std::uint32_t>(size), *space, access});
  }

  const bool raw_ = wants_raw();
  const trace::DeviceCollector& collector_;
  std::vector<const device::PatchEntry*> patches_;
  device::LaunchPolicy policy_;
  std::map<std::uint64_t, device::MemoryObject> objects_;
  std::map<unsigned, std::pair<std::uint64_t, std::string>> by_argument_;
  std::uint64_t allocations_ = 0, launches_ = 0;
  std::unique_ptr<Running> running_;
};

// Null where nobody watches.
const trace::DeviceCollector* find_collector() {
  void* symbol = dlsym(RTLD_DEFAULT, trace::kDeviceCollector);
  if (symbol == nullptr) return nullptr;
  trace::GetDeviceCollector get = nullptr;
  std::memcpy(&get, &symbol, sizeof get);
  return get();
}

std::map<sim::Context*, std::unique_ptr<Watcher>>& watchers() {
  // Never destroyed: a context may be released after static objects are gone.
  static auto* all = new std::map<sim::Context*, std::unique_ptr<Watcher>>;
  return *all;
}

}  // namespace
}  // namespace pasta::adapters::oclgrind

extern "C" {

__attribute__((visibility("default"))) void initializePlugins(oclgrind::Context* context) {
  namespace own = pasta::adapters::oclgrind;
  const pasta::trace::DeviceCollector* collector = own::find_collector();
  if (collector == nullptr) return;
  auto& watcher = own::watchers()[context];
  watcher = std::make_unique<own::Watcher>(context, *collector);
  context->registerPlugin(watcher.get());
}

__attribute__((visibility("default"))) void releasePlugins(oclgrind::Context* context) {
  namespace own = pasta::adapters::oclgrind;
  const auto watcher = own::watchers().find(context);
  if (watcher == own::watchers().end()) return;
  context->unregisterPlugin(watcher->second.get());
  own::watchers().erase(watcher);
}

}  // extern "C"
