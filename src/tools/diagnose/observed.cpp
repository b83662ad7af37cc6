#include "tools/diagnose/observed.h"

#include <algorithm>
#include <string>

#include "tools/common/iterations.h"
#include "tools/common/saturate.h"

namespace pasta::tools::diagnose {
namespace {

// An "asynchronous" copy that takes longer has waited: see docs/idle-causes.md.
constexpr std::int64_t kLongCopyNs = 1'000'000;

// How sources call what the caching allocator holds, used or not.
constexpr std::string_view kTotalReserved = "Total Reserved";

// Calls that get device memory from the driver or return it; not those of a stream-ordered pool,
// which is the cure.
bool allocates(std::string_view name) {
  if (name.find("Async") != name.npos || name.find("FromPool") != name.npos) return false;
  for (const std::string_view word :
       {"cudaMalloc", "cudaFree", "cuMemAlloc", "cuMemFree", "hipMalloc", "hipFree", "hipExtMalloc",
        "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease"}) {
    if (name.starts_with(word)) return name.find("Array") == name.npos;
  }
  return false;
}

}  // namespace

void Observed::add(const Event& event, const Dictionary& dictionary) {
  if (kDeviceWork.has(event.kind)) {
    add_work(event, dictionary);
    return;
  }
  if (event.kind == Kind::kCounter) {
    add_reserved(event, dictionary);
    return;
  }
  const Lane& lane = lanes_.get(event.lane, [&] { return dictionary.lane(event.lane); });
  if (lane.type != LaneType::kThread || event.kind == Kind::kGap) return;
  host_.add(event, dictionary);
  if (event.kind == Kind::kApi || event.kind == Kind::kSync) add_call(event, dictionary);
  if (event.kind == Kind::kScope) recomputed_.add(event, dictionary);
}

void Observed::add_work(const Event& event, const Dictionary& dictionary) {
  DeviceWork* const device = device_of_.get(event.lane, [&] {
    const Lane lane = dictionary.lane(event.lane);
    const ProcessId process = program_of(event, lane.process);
    auto found = std::ranges::find_if(devices_, [&](const auto& one) {
      return one->device == lane.device && one->process == process;
    });
    if (found == devices_.end()) {
      devices_.push_back(std::make_unique<DeviceWork>());
      found = std::prev(devices_.end());
      (*found)->device = lane.device;
      (*found)->process = process;
    }
    (*found)->queues.push_back(event.lane);
    (*found)->owners.push_back(lane.process);
    return found->get();
  });
  if (event.untimed()) {
    ++device->untimed;
    return;
  }
  device->first_ns = std::min(device->first_ns, event.start_ns);
  device->last_ns = std::max(device->last_ns, event.end_ns);
  Event noted = event;
  if (event.kind != Kind::kKernel) {
    device->copies.add(event.start_ns, event.end_ns);
  } else {
    const bool communicates = type_of(event.name, dictionary) == KernelClass::kCommunication;
    (communicates ? device->communication : device->compute).add(event.start_ns, event.end_ns);
    noted.detail = event.correlation != 0 && event.correlation == device->last_correlation ? 1 : 0;
    device->last_correlation = event.correlation;
  }
  device->log.add(noted);
  const std::int64_t launched_ns = launches_.waited_since(event);
  if (launched_ns != kNoTime) device->waiting.add(launched_ns, event);
}

void Observed::add_call(const Event& event, const Dictionary& dictionary) {
  const Role& role = roles_.get(event.name, [&] {
    const std::string_view name = dictionary.text(event.name);
    return Role{api_role(name), allocates(name)};
  });
  if (event.kind == Kind::kApi) launches_.add(event, dictionary);
  if (event.untimed()) return;
  const ProcessId process =
      lanes_.get(event.lane, [&] { return dictionary.lane(event.lane); }).process;
  const std::int64_t took = distance_saturated(event.start_ns, event.end_ns);
  if (event.kind == Kind::kApi && role.role.launches_one() && took > 0) {
    launch_ns_[process].add(took);
  }
  const bool waits =
      event.kind == Kind::kSync || role.role.waits || (role.role.copies && took >= kLongCopyNs);
  if (!waits && !role.allocates) return;
  calls_.push_back({event.start_ns, event.end_ns, event.name, event.scope, process, waits});
}

void Observed::add_reserved(const Event& event, const Dictionary& dictionary) {
  const bool told = tells_reserved_.get(
      event.name, [&] { return dictionary.text(event.name) == kTotalReserved; });
  if (!told || event.untimed() || !event.counter.device) return;
  const auto [known, is_new] = reserved_.try_emplace(event.counter.device, event.counter.value);
  const double less = known->second - event.counter.value;
  if (less > 0 && less < 9e18) {
    returns_.push_back({event.end_ns, event.counter.device, static_cast<std::int64_t>(less)});
  }
  known->second = event.counter.value;
}

std::int64_t Observed::median_launch_ns(ProcessId queue_owner, const Dictionary& dictionary) {
  std::uint64_t most = 0;
  std::int64_t median = 0;
  for (auto& [process, durations] : launch_ns_) {
    if (durations.count() <= most || !same_program(process, queue_owner, dictionary)) continue;
    most = durations.count();
    median = durations.quantile(0.5);
  }
  return median;
}

}  // namespace pasta::tools::diagnose
