#include "correlate/object_names.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace pasta::correlate {
namespace {

// Of a call path, so that a label stays readable.
constexpr std::size_t kMostFrames = 3;

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

std::string path_of(FrameId scope, const Dictionary& dictionary) {
  std::vector<std::string_view> names;
  while (scope && names.size() < kMostFrames) {
    const Frame frame = dictionary.frame(scope);
    names.push_back(dictionary.text(frame.name));
    scope = frame.parent;
  }
  std::string path;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    path += path.empty() ? "" : " > ";
    path += *name;
  }
  return path;
}

}  // namespace

void ObjectNames::take(const Event& event, const Dictionary& dictionary) {
  const std::uint32_t process = dictionary.lane(event.lane).process.value;
  if (event.kind == Kind::kAlloc) {
    memory_[process].allocations[event.memory.address] = {event.memory.bytes,
                                                          path_of(event.scope, dictionary)};
  } else if (event.kind == Kind::kFree) {
    // What is freed may be allocated again, for something else.
    Memory& memory = memory_[process];
    const auto freed = memory.allocations.find(event.memory.address);
    if (freed == memory.allocations.end()) return;
    for (auto tag = memory.tags.lower_bound(freed->first);
         tag != memory.tags.end() && tag->first - freed->first < freed->second.bytes;) {
      tag = memory.tags.erase(tag);
    }
    memory.allocations.erase(freed);
  } else if (event.kind == Kind::kScope && event.range.arguments) {
    const std::string_view arguments = dictionary.text(event.range.arguments);
    const auto address = field(arguments, "address"), bytes = field(arguments, "bytes");
    if (!address || !bytes) return;
    memory_[process].tags[*address] = {*bytes, std::string(dictionary.text(event.name))};
  }
}

std::string ObjectNames::name_of(ProcessId process, std::uint64_t address, std::uint64_t bytes,
                                 const std::string& called) const {
  const auto memory = memory_.find(process.value);
  if (memory == memory_.end()) return called;
  const auto& [allocations, tags] = memory->second;
  // Tags of pieces of it, as long as they are few.
  std::string tagged;
  std::size_t count = 0;
  for (auto tag = tags.lower_bound(address); tag != tags.end() && tag->first - address < bytes;
       ++tag, ++count) {
    if (count == kMostFrames) {
      tagged += ", ...";
      break;
    }
    tagged += (tagged.empty() ? "" : ", ") + tag->second.name;
  }
  if (!tagged.empty()) return tagged;
  if (!called.empty()) return called;
  const auto allocation = allocations.find(address);
  return allocation == allocations.end() ? std::string() : allocation->second.name;
}

}  // namespace pasta::correlate
