#include "tools/common/device_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "device/warp.h"

namespace pasta::tools {
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

void add_loss(Report& report, const char* id, std::uint64_t count, const std::string& text,
              const char* advice) {
  if (count == 0) return;
  report.parts.emplace_back(Finding{.id = id,
                                    .level = Finding::Level::kWarning,
                                    .text = text,
                                    .of = {},
                                    .evidence = {{"count", count_cell(count), Unit::kCount}},
                                    .advice = advice});
}

}  // namespace

Cell count_cell(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMost));
}

Cell moved_cell(std::uint64_t sectors) {
  std::uint64_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(sectors, std::uint64_t{device::kSectorBytes}, &bytes);
  return count_cell(fits ? bytes : std::numeric_limits<std::uint64_t>::max());
}

std::string site_label(std::uint64_t site, const std::string& name) {
  if (site == device::kOtherSites) return "others";
  return name.empty() ? fmt::format("#{}", site) : name;
}

std::string_view space_name(std::uint64_t space) {
  constexpr std::string_view kNames[] = {"global", "shared", "local"};
  return space < std::size(kNames) ? kNames[space] : "unknown";
}

std::string_view access_name(std::uint64_t access) {
  constexpr std::string_view kNames[] = {"read", "write", "atomic"};
  return access < std::size(kNames) ? kNames[access] : "unknown";
}

std::optional<LaunchResult> DeviceResults::take(const Event& event, const Context& context) {
  if (event.kind != Kind::kDevice) {
    take_name(event, context);
    return std::nullopt;
  }
  const Dictionary& dictionary = context.dictionary();
  const std::string_view format = dictionary.text(event.device.format);
  const bool skipped = format == device::kSkippedFormat;
  if (format != format_ && !skipped) return std::nullopt;
  auto result = device::read_result(context.blob(event.device.blob));
  if (!result) {
    ++unreadable_;
    return std::nullopt;
  }
  if (skipped) {
    skipped_ += device::skipped_launches(*result);
    return std::nullopt;
  }
  LaunchResult launch{.kernel = std::string(dictionary.text(event.name)),
                      .process = dictionary.lane(event.lane).process,
                      .launch = event.device.launch,
                      .start_ns = event.start_ns,
                      .result = std::move(*result)};
  // Parts of one launch come one after the other.
  const auto [last, fresh] = last_launch_.try_emplace(launch.process.value, launch.launch);
  launch.first = fresh || last->second != launch.launch;
  last->second = launch.launch;
  if (launch.first) ++launches_;
  dropped_ += launch.result.dropped;
  take_tables(launch);
  return launch;
}

void DeviceResults::take_tables(const LaunchResult& launch) {
  for (const device::ResultTable& table : launch.result.tables) {
    if (table.id == device::TableId::kObjects) {
      const auto rows = device::rows_of<device::ObjectRow>(table);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string called = i < table.names.size() ? table.names[i] : std::string();
        objects_[{launch.process.value, rows[i].number}] = {
            rows[i], name_of(launch.process, rows[i], called)};
      }
    }
    if (table.id != device::TableId::kUnseen) continue;
    Unseen& unseen = unseen_[launch.kernel];
    ++unseen.launches;
    for (const device::UnseenRow& row : device::rows_of<device::UnseenRow>(table)) {
      unseen.row = row;
    }
  }
}

void DeviceResults::take_name(const Event& event, const Context& context) {
  const Dictionary& dictionary = context.dictionary();
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

std::string DeviceResults::name_of(ProcessId process, const device::ObjectRow& row,
                                   const std::string& called) const {
  const auto memory = memory_.find(process.value);
  if (memory == memory_.end()) return called;
  const auto& [allocations, tags] = memory->second;
  // Tags of pieces of it, as long as they are few.
  std::string tagged;
  std::size_t count = 0;
  for (auto tag = tags.lower_bound(row.address);
       tag != tags.end() && tag->first - row.address < row.bytes; ++tag, ++count) {
    if (count == kMostFrames) {
      tagged += ", ...";
      break;
    }
    tagged += (tagged.empty() ? "" : ", ") + tag->second.name;
  }
  if (!tagged.empty()) return tagged;
  if (!called.empty()) return called;
  const auto allocation = allocations.find(row.address);
  return allocation == allocations.end() ? std::string() : allocation->second.name;
}

std::string DeviceResults::label(ProcessId process, std::uint64_t number) const {
  switch (number) {
    case device::kUnknownObject:
      return "unknown";
    case device::kSharedMemory:
      return "shared memory";
    case device::kLocalMemory:
      return "local memory";
    case device::kSeveralObjects:
      return "several";
    default:
      break;
  }
  const std::string buffer = fmt::format("buffer {}", number);
  const auto known = objects_.find({process.value, number});
  if (known == objects_.end() || known->second.name.empty()) return buffer;
  return fmt::format("{} ({})", known->second.name, buffer);
}

const device::ObjectRow* DeviceResults::object(ProcessId process, std::uint64_t number) const {
  const auto known = objects_.find({process.value, number});
  return known == objects_.end() ? nullptr : &known->second.row;
}

void DeviceResults::add_findings(Report& report) const {
  if (launches_ == 0 && unreadable_ == 0) {
    report.parts.emplace_back(
        Finding{.id = "nothing-analysed",
                .level = Finding::Level::kInfo,
                .text = "no launch was analysed",
                .of = {},
                .evidence = {},
                .advice = fmt::format("watch the program by: pastaprof run "
                                      "--adapter sanitizer (CUDA) or "
                                      "oclgrind (OpenCL) --tool {} -- PROGRAM",
                                      tool_)});
  }
  for (const auto& [kernel, unseen] : unseen_) {
    report.parts.emplace_back(
        Finding{.id = "uncovered",
                .level = Finding::Level::kWarning,
                .text = fmt::format("{} accesses memory in ways that cannot be seen: its numbers "
                                    "leave that out",
                                    kernel),
                .of = {},
                .evidence = {{"launches", count_cell(unseen.launches), Unit::kCount},
                             {"tensor_loads", count_cell(unseen.row.tensor_loads), Unit::kCount},
                             {"tensor_stores", count_cell(unseen.row.tensor_stores), Unit::kCount},
                             {"textures", count_cell(unseen.row.textures), Unit::kCount}},
                .advice = {}});
  }
  if (skipped_ > 0) {
    const double all = static_cast<double>(skipped_) + static_cast<double>(launches_);
    report.parts.emplace_back(
        Finding{.id = "launches-left-out",
                .level = Finding::Level::kInfo,
                .text = fmt::format("{} of {} launches were not to be analysed", skipped_,
                                    skipped_ + launches_),
                .share = static_cast<double>(skipped_) / all,
                .of = "launches",
                .evidence = {{"count", count_cell(skipped_), Unit::kCount}},
                .advice = {}});
  }
  add_loss(report, "not-analysed", dropped_, fmt::format("{} accesses were not analysed", dropped_),
           "a group has made more of them without a barrier than can be kept");
  add_loss(report, "unreadable-results", unreadable_,
           fmt::format("{} results of launches cannot be read", unreadable_),
           "the trace is of a newer version of pastaprof, or damaged");
}

}  // namespace pasta::tools
