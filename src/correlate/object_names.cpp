#include "correlate/object_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace pasta::correlate {
namespace {

constexpr std::size_t kMostNames = 3;   // of what lies in an object, so that a label stays readable
constexpr std::size_t kMostDeep = 128;  // of ranges that are looked at
constexpr std::size_t kMostBefore = 8;  // of what was at an address
// Of addresses where nothing is any more: results are told soon after their launch.
constexpr std::size_t kMostFreed = 1 << 16;

// The number of a field in a compact JSON object.
std::optional<std::uint64_t> field(std::string_view json, std::string_view name) {
  const std::string key = fmt::format("\"{}\":", name);
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  json.remove_prefix(at + key.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), value);
  if (error != std::errc() || end == json.data()) return std::nullopt;
  return value;
}

// The innermost range, and what of a program is around it: the line of Python and the module where
// there are some, else the next ranges.
std::string path_of(FrameId scope, const Dictionary& dictionary) {
  std::vector<Frame> frames;
  for (; scope && frames.size() < kMostDeep; scope = frames.back().parent) {
    frames.push_back(dictionary.frame(scope));
  }
  std::vector<std::size_t> chosen;
  for (const ScopeDomain domain : {ScopeDomain::kPython, ScopeDomain::kModule}) {
    const auto nearest = std::ranges::find(frames, domain, &Frame::domain);
    if (nearest != frames.end()) {
      chosen.push_back(static_cast<std::size_t>(nearest - frames.begin()));
    }
  }
  if (chosen.empty()) chosen = {2, 1};
  chosen.push_back(0);
  std::ranges::sort(chosen, std::ranges::greater());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::string path;
  for (const std::size_t at : chosen) {
    if (at >= frames.size()) continue;
    path += path.empty() ? "" : " > ";
    path += dictionary.text(frames[at].name);
  }
  return path;
}

constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
// Of an event without a time, what it says was always so.
std::int64_t time_of(const Event& event) { return event.untimed() ? -kEver : event.end_ns; }

}  // namespace

std::int64_t time_of_launch(const Event& event) {
  // What is now, where that is not known.
  return event.untimed() ? kEver - 1 : event.start_ns;
}

void ObjectNames::begin(ByAddress& all, std::uint64_t address, Named named) {
  std::deque<Named>& known = all[address];
  if (!known.empty()) known.back().end_ns = std::min(known.back().end_ns, named.begin_ns);
  known.push_back(std::move(named));
  if (known.size() > kMostBefore) known.pop_front();
}

const ObjectNames::Named* ObjectNames::find(const ByAddress& all, std::uint64_t address,
                                            std::int64_t at_ns) {
  const auto known = all.find(address);
  if (known == all.end()) return nullptr;
  for (auto named = known->second.rbegin(); named != known->second.rend(); ++named) {
    if (named->begin_ns <= at_ns) return at_ns < named->end_ns ? &*named : nullptr;
  }
  return nullptr;
}

void ObjectNames::take(const Event& event, const Dictionary& dictionary) {
  const std::uint32_t process = dictionary.lane(event.lane).process.value;
  if (event.kind == Kind::kAlloc) {
    begin(memory_[process].allocations, event.memory.address,
          {event.memory.bytes, time_of(event), kEver, path_of(event.scope, dictionary)});
  } else if (event.kind == Kind::kFree) {
    // What is freed may be allocated again, for something else.
    Memory& memory = memory_[process];
    const auto freed = memory.allocations.find(event.memory.address);
    if (freed == memory.allocations.end()) return;
    Named& last = freed->second.back();
    last.end_ns = std::min(last.end_ns, event.untimed() ? kEver : event.start_ns);
    for (auto tag = memory.tags.lower_bound(freed->first);
         tag != memory.tags.end() && tag->first - freed->first < last.bytes; ++tag) {
      tag->second.back().end_ns = std::min(tag->second.back().end_ns, last.end_ns);
    }
    freed_.push_back({process, freed->first, last.end_ns});
    if (freed_.size() > kMostFreed) forget_oldest();
  } else if (event.kind == Kind::kScope && event.range.arguments) {
    const std::string_view arguments = dictionary.text(event.range.arguments);
    const auto address = field(arguments, "address"), bytes = field(arguments, "bytes");
    if (!address || !bytes) return;
    begin(memory_[process].tags, *address,
          {*bytes, time_of(event), kEver, std::string(dictionary.text(event.name))});
  }
}

void ObjectNames::forget_oldest() {
  const auto [process, address, end_ns] = freed_.front();
  freed_.pop_front();
  Memory& memory = memory_[process];
  const auto freed = memory.allocations.find(address);
  // Where something has been since, that is as old as its own end.
  if (freed == memory.allocations.end() || freed->second.back().end_ns != end_ns ||
      end_ns == kEver) {
    return;
  }
  const std::uint64_t bytes = freed->second.back().bytes;
  for (auto tag = memory.tags.lower_bound(address);
       tag != memory.tags.end() && tag->first - address < bytes;) {
    tag = tag->second.back().end_ns == kEver ? std::next(tag) : memory.tags.erase(tag);
  }
  memory.allocations.erase(freed);
}

std::string ObjectNames::name_of(ProcessId process, std::uint64_t address, std::uint64_t bytes,
                                 std::int64_t at_ns, const std::string& called) const {
  const auto memory = memory_.find(process.value);
  if (memory == memory_.end()) return called;
  const auto& [allocations, tags] = memory->second;
  // Tags of pieces of it, as long as they are few.
  std::string tagged;
  std::size_t count = 0;
  for (auto tag = tags.lower_bound(address); tag != tags.end() && tag->first - address < bytes;
       ++tag) {
    const Named* named = find(tags, tag->first, at_ns);
    if (named == nullptr) continue;
    if (count++ == kMostNames) {
      tagged += ", ...";
      break;
    }
    tagged += (tagged.empty() ? "" : ", ") + named->name;
  }
  if (!tagged.empty()) return tagged;
  // It may be a piece of one.
  const Named* allocation = nullptr;
  auto around = allocations.upper_bound(address);
  for (std::size_t i = 0; allocation == nullptr && i < kMostBefore && around != allocations.begin();
       ++i) {
    --around;
    const Named* named = find(allocations, around->first, at_ns);
    if (named != nullptr && address - around->first < named->bytes) allocation = named;
  }
  if (allocation == nullptr || allocation->name.empty()) return called;
  return called.empty() ? allocation->name : fmt::format("{} from {}", called, allocation->name);
}

}  // namespace pasta::correlate
