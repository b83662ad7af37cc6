#include "cli/live_counts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "report/text_layout.h"
#include "session/labels.h"

namespace pasta::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// Some vendors tell of work only so long after it has ended.
constexpr std::int64_t kQuiet = 3 * kSecond;

// "1234", "12.3 k", "4.5 M".
std::string short_count(double count) {
  if (count < 10'000) return fmt::format("{:.0f}", count);
  if (count < 10'000'000) return fmt::format("{:.1f} k", count / 1e3);
  return fmt::format("{:.1f} M", count / 1e6);
}

}  // namespace

void LiveCounts::push(Event event, std::span<const std::byte>) { push(std::span(&event, 1)); }

void LiveCounts::push(std::span<const Event> events) {
  events_ += static_cast<std::int64_t>(events.size());
  for (const Event& event : events) {
    if (event.untimed()) continue;
    if (kDeviceWork.has(event.kind)) {
      latest_work_ns_ = std::max(latest_work_ns_, event.end_ns);
      Calls& calls = work_[event.name.value];
      ++calls.count;
      calls.time_ns += event.duration_ns();
      DeviceState& device = devices_[dictionary_.lane(event.lane).device];
      device.has_work = true;
      device.recent.emplace(event.end_ns, event.start_ns);
    } else if (event.kind == Kind::kScope && (event.flags & kInstant) == 0) {
      Calls& calls = ranges_[event.name.value];
      ++calls.count;
      calls.time_ns += event.duration_ns();
    } else if ((event.kind == Kind::kAlloc || event.kind == Kind::kFree) &&
               event.memory.bytes != kUnknownBytes) {
      DeviceState& device = devices_[event.memory.device];
      const auto bytes = static_cast<std::int64_t>(event.memory.bytes);
      device.has_memory = true;
      device.allocated += event.kind == Kind::kAlloc ? bytes : -bytes;
      device.peak = std::max(device.peak, device.allocated);
    }
  }
  for (auto& [id, device] : devices_) {
    device.recent.erase(device.recent.begin(),
                        device.recent.upper_bound(latest_work_ns_ - kSecond));
  }
}

std::string LiveCounts::header(std::chrono::nanoseconds elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed - then_).count();
  const double rate = seconds > 0 ? static_cast<double>(events_ - events_then_) / seconds : 0;
  events_then_ = events_;
  then_ = elapsed;
  std::string line = fmt::format("pastaprof: {:.1f} s, {} events, {}/s",
                                 std::chrono::duration<double>(elapsed).count(),
                                 short_count(static_cast<double>(events_)), short_count(rate));
  const std::uint32_t count = dictionary_.process_count();
  for (std::uint32_t id = 1; id < count; ++id) {
    const auto process = static_cast<pid_t>(dictionary_.process(ProcessId{id}).native_id);
    if (process <= 0 || ended_.contains(id)) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) ended_.insert(id);
  }
  if (count > 2)
    line += fmt::format(", {} of {} processes run", count - 1 - ended_.size(), count - 1);
  return line;
}

// By its number, and where devices of several processes share that, by its rank or process too.
std::string LiveCounts::device_label(DeviceId id) const {
  const Device device = dictionary_.device(id);
  const auto same = [&](const auto& other) {
    return other.first && other.first != id &&
           dictionary_.device(other.first).ordinal == device.ordinal;
  };
  if (std::none_of(devices_.begin(), devices_.end(), same)) return session::device_name(device, {});
  if (!device.process) return session::device_name(device, dictionary_.text(device.uuid));
  const Process process = dictionary_.process(device.process);
  return session::device_name(device, process.rank >= 0
                                          ? fmt::format("rank {}", process.rank)
                                          : fmt::format("process {}", process.native_id));
}

std::string LiveCounts::device_line(DeviceId id, const DeviceState& device,
                                    std::int64_t now_ns) const {
  std::string line = id ? "device " + device_label(id) : "host";
  const std::int64_t quiet_ns = now_ns - latest_work_ns_;
  if (device.has_work && quiet_ns > kQuiet) {
    line += fmt::format(", no work seen for {} s", quiet_ns / kSecond);
  } else if (device.has_work) {
    // From the last end backwards, each adds what starts before all that came after it.
    std::int64_t busy = 0, covered = latest_work_ns_;
    for (auto work = device.recent.rbegin(); work != device.recent.rend(); ++work) {
      const std::int64_t end = std::min(work->first, covered);
      const std::int64_t start = std::max(work->second, latest_work_ns_ - kSecond);
      if (start >= end) continue;
      busy += end - start;
      covered = start;
    }
    line += fmt::format(", busy {} of the last second",
                        base::format_share(static_cast<double>(busy) / kSecond));
  }
  if (device.has_memory) {
    line += fmt::format(
        ", {} allocated, {} at most",
        base::format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(device.allocated, 0))),
        base::format_bytes(static_cast<std::uint64_t>(device.peak)));
  }
  return line;
}

void LiveCounts::add_table(const ByName& of, const char* what, std::size_t lines, std::size_t width,
                           std::vector<std::string>& to) const {
  using report::Align;
  if (of.empty() || lines < 2) return;
  std::vector<std::pair<std::uint32_t, Calls>> rows(of.begin(), of.end());
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), lines - 1));
  std::partial_sort(rows.begin(), end, rows.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.second.time_ns, a.first) < std::pair(-b.second.time_ns, b.first);
  });
  constexpr std::size_t kNumbers = 12;
  const std::size_t room = width > 2 * kNumbers + 8 ? width - 2 * kNumbers : 8;
  to.push_back(report::pad(what, room, Align::kLeft) +
               report::pad("calls", kNumbers, Align::kRight) +
               report::pad("time", kNumbers, Align::kRight));
  for (auto row = rows.begin(); row != end; ++row) {
    const std::string name = report::clean(dictionary_.text({row->first}));
    to.push_back(report::pad(report::shorten(name, room), room, Align::kLeft) +
                 report::pad(fmt::to_string(row->second.count), kNumbers, Align::kRight) +
                 report::pad(base::format_duration(row->second.time_ns), kNumbers, Align::kRight));
  }
}

std::vector<std::string> LiveCounts::text(std::chrono::nanoseconds elapsed, std::size_t lines,
                                          std::size_t width) {
  std::vector<std::string> text = {header(elapsed)};
  for (const auto& [id, device] : devices_) {
    const std::int64_t now_ns = began_ns_ + elapsed.count();
    if (text.size() < lines) text.push_back(device_line(id, device, now_ns));
  }
  if (text.size() < lines) {
    const bool device = !work_.empty();
    add_table(device ? work_ : ranges_, device ? "work on devices" : "ranges", lines - text.size(),
              width, text);
  }
  text.resize(std::min(text.size(), lines));
  for (std::string& line : text) line = report::shorten(line, width);
  return text;
}

}  // namespace pasta::cli
