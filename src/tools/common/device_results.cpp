#include "tools/common/device_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "device/warp.h"
#include "tools/common/ratio.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

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

constexpr std::size_t kMostMapped = 3;
// Objects that can be reached, a few of them by name.
std::string mapped_text(const std::set<std::string>& labels) {
  if (labels.empty()) return "";
  std::string text = "; through tensor maps it reaches ";
  std::size_t said = 0;
  for (const std::string& label : labels) {
    if (said == kMostMapped) {
      return text + fmt::format(" and {} more", labels.size() - said);
    }
    text += (said++ == 0 ? "" : ", ") + label;
  }
  return text;
}

}  // namespace

Cell count_cell(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMost));
}

void add_unknown_objects(Report& report, double unknown, double moved, const std::string& kernel) {
  if (unknown <= 0) return;
  Finding finding{
      .id = "unknown-objects",
      .level = Finding::Level::kInfo,
      .text =
          "some accesses are outside of all memory objects that are known, or reach "
          "past the end of one",
      .share = unknown / moved,
      .of = "bytes moved",
      .evidence = {{"moved", static_cast<std::int64_t>(std::min(unknown, 9e18)), Unit::kBytes}},
      .advice = {}};
  if (!kernel.empty()) finding.evidence.emplace_back("most_in", in_sentence(kernel));
  report.parts.emplace_back(std::move(finding));
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

std::string in_sentence(const std::string& kernel) {
  constexpr std::size_t kMost = 120, kTail = 20;
  if (kernel.size() <= kMost) return kernel;
  // No character is cut in two.
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(kernel[at]) & 0xc0) == 0x80;
  };
  std::size_t head = kMost - kTail, tail = kernel.size() - kTail;
  while (head > 0 && continues(head)) --head;
  while (tail < kernel.size() && continues(tail)) ++tail;
  return kernel.substr(0, head) + "..." + kernel.substr(tail);
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
  const Dictionary& dictionary = context.dictionary();
  names_.take(event, dictionary);
  if (event.kind == Kind::kKernel && !event.untimed()) {
    kernels_ns_ = add_saturated(kernels_ns_, event.duration_ns());
  }
  if (event.kind != Kind::kDevice) return std::nullopt;
  const std::string_view format = dictionary.text(event.device.format);
  const bool skipped = format == device::kSkippedFormat, times = format == device::kTimesFormat;
  if (format != format_ && !skipped && !times) return std::nullopt;
  auto result = device::read_result(context.blob(event.device.blob));
  if (!result) {
    ++unreadable_;
    return std::nullopt;
  }
  if (skipped) {
    skipped_ += device::skipped_launches(*result);
    return std::nullopt;
  }
  if (times) {
    About& about = about_[std::string(dictionary.text(event.name))];
    for (const device::ResultTable& table : result->tables) {
      if (table.id != device::TableId::kTimes) continue;
      for (const auto& row : device::rows_of<device::TimesRow>(table)) {
        if (row.launches == 0) continue;
        // In the first iteration without patches code is loaded anew, which takes milliseconds.
        const double each = static_cast<double>(row.ns) / static_cast<double>(row.launches);
        about.each_ns = about.launches == 0 ? each : std::min(about.each_ns, each);
        about.launches += row.launches;
      }
    }
    return std::nullopt;
  }
  LaunchResult launch{.kernel = std::string(dictionary.text(event.name)),
                      .process = dictionary.lane(event.lane).process,
                      .launch = event.device.launch,
                      .start_ns = event.start_ns,
                      .iteration = device::iteration_of(*result),
                      .result = std::move(*result)};
  // Parts of one launch come one after the other.
  const auto [last, fresh] = last_launch_.try_emplace(launch.process.value, launch.launch);
  launch.first = fresh || last->second != launch.launch;
  last->second = launch.launch;
  if (launch.first) {
    ++launches_;
    ++of_kernel_[launch.kernel];
    take_times(event, launch.kernel);
  }
  dropped_ += launch.result.dropped;
  take_tables(launch, event);
  return launch;
}

void DeviceResults::take_times(const Event& event, const std::string& kernel) {
  const auto times = static_cast<DeviceTimes>(event.detail);
  if (times == DeviceTimes::kNotJoined) ++not_joined_;
  if (times != DeviceTimes::kOtherRun || event.untimed()) return;
  ++joined_;
  Time& time = times_[kernel];
  time.ns = add_saturated(time.ns, event.duration_ns());
  ++time.launches;
}

std::optional<DeviceResults::Time> DeviceResults::time_of(const std::string& kernel) const {
  if (const auto known = times_.find(kernel); known != times_.end()) return known->second;
  const auto about = about_.find(kernel);
  const auto launches = of_kernel_.find(kernel);
  if (joined_ + not_joined_ > 0 || about == about_.end() || about->second.launches == 0 ||
      launches == of_kernel_.end()) {
    return std::nullopt;
  }
  const double ns = std::min(about->second.each_ns * static_cast<double>(launches->second), 9e18);
  return Time{static_cast<std::int64_t>(ns), launches->second};
}

Cell DeviceResults::time_cell(const std::string& kernel) const {
  const auto time = time_of(kernel);
  return time ? Cell(time->ns) : Cell();
}

Cell DeviceResults::rate_cell(const std::string& kernel, std::uint64_t launches,
                              std::uint64_t sectors) const {
  constexpr double kSecond = 1e9, kMost = 9e18;
  const auto time = time_of(kernel);
  if (!time || time->launches != launches || time->ns == 0) return {};
  const double rate = moved_bytes(sectors) * kSecond / static_cast<double>(time->ns);
  return static_cast<std::int64_t>(std::min(rate, kMost));
}

void DeviceResults::add_times(Report& report) const {
  if (launches_ == 0) return;
  if (joined_ + not_joined_ == 0 && !about_.empty()) {
    std::uint64_t timed = 0, known = 0;
    for (const auto& [kernel, time] : about_) {
      timed += time.launches;
      const auto launches = of_kernel_.find(kernel);
      known += launches == of_kernel_.end() ? 0 : launches->second;
    }
    report.parts.emplace_back(Finding{
        .id = "times-approximate",
        .level = Finding::Level::kInfo,
        .text = "times are approximate: those of other launches of the same kernels, in the "
                "fastest of the iterations without patches, between events around each",
        .share = static_cast<double>(known) / static_cast<double>(launches_),
        .of = "analysed launches, of whose kernel there is a time",
        .evidence = {{"timed", count_cell(timed), Unit::kCount}},
        .advice = "for times of the launches themselves, let pastaprof run the program "
                  "twice (--passes 2)"});
    return;
  }
  if (joined_ + not_joined_ == 0) {
    report.parts.emplace_back(
        Finding{.id = "no-times",
                .level = Finding::Level::kInfo,
                .text = "how long kernels take is not known: patches in them make them slower",
                .of = {},
                .evidence = {},
                .advice = "for times, let pastaprof run the program twice (--passes 2)"});
    return;
  }
  std::int64_t analysed_ns = 0;
  for (const auto& [kernel, time] : times_) analysed_ns = add_saturated(analysed_ns, time.ns);
  const auto all = static_cast<double>(kernels_ns_);
  report.parts.emplace_back(
      Finding{.id = "times-of-another-run",
              .level = Finding::Level::kInfo,
              .text = "times are those of the same launches in a run without patches",
              .share = all > 0 ? static_cast<double>(analysed_ns) / all : 0,
              .of = all > 0 ? "kernel time, which analysed launches take" : "",
              .evidence = {{"joined", count_cell(joined_), Unit::kCount}},
              .advice = {}});
  if (not_joined_ == 0) return;
  report.parts.emplace_back(Finding{
      .id = "launches-not-joined",
      .level = Finding::Level::kWarning,
      .text = fmt::format("{} of {} analysed launches were not found in the run that has "
                          "their times",
                          not_joined_, joined_ + not_joined_),
      .share = static_cast<double>(not_joined_) / static_cast<double>(joined_ + not_joined_),
      .of = "analysed launches",
      .evidence = {{"count", count_cell(not_joined_), Unit::kCount}},
      .advice = "both runs have launched different kernels: let the program choose them "
                "alike, and do the same work twice"});
}

void DeviceResults::take_tables(const LaunchResult& launch, const Event& event) {
  const bool of_this_run = static_cast<DeviceTimes>(event.detail) == DeviceTimes::kUnknown;
  for (const device::ResultTable& table : launch.result.tables) {
    if (table.id == device::TableId::kObjects) {
      const auto rows = device::rows_of<device::ObjectRow>(table);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string called = i < table.names.size() ? table.names[i] : std::string();
        // Addresses of another run say nothing here.
        objects_[{launch.process.value, rows[i].number}] = {
            rows[i], of_this_run ? names_.name_of(launch.process, rows[i].address, rows[i].bytes,
                                                  correlate::time_of_launch(event), called)
                                 : called};
      }
    }
    if (table.id == device::TableId::kUnseen) {
      Unseen& unseen = unseen_[launch.kernel];
      ++unseen.launches;
      for (const device::UnseenRow& row : device::rows_of<device::UnseenRow>(table)) {
        unseen.row = row;
      }
    }
    if (table.id == device::TableId::kUnseenToo) {
      for (const auto& row : device::rows_of<device::UnseenTooRow>(table)) {
        unseen_[launch.kernel].too = row;
      }
    }
    if (table.id == device::TableId::kMapped) {
      Unseen& unseen = unseen_[launch.kernel];
      for (const device::MappedRow& row : device::rows_of<device::MappedRow>(table)) {
        unseen.mapped.insert(label(launch.process, row.object));
        mapped_.emplace(launch.process.value, row.object);
      }
    }
  }
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
  std::string buffer = fmt::format("buffer {}", number);
  const auto known = objects_.find({process.value, number});
  if (known == objects_.end() || known->second.name.empty()) return buffer;
  return fmt::format("{} ({})", known->second.name, buffer);
}

Cell DeviceResults::uncovered_cell(const std::string& kernel) const {
  return uncovered_cell(kernel, kernel);
}

Cell DeviceResults::uncovered_cell(const std::string& kernel, const std::string& other) const {
  device::UnseenRow row;
  device::UnseenTooRow too;
  for (const std::string* of : {&kernel, &other}) {
    const auto found = unseen_.find(*of);
    if (found == unseen_.end()) continue;
    device::add_row(row, found->second.row);
    device::add_row(too, found->second.too);
  }
  std::string all;
  const auto name = [&](std::uint64_t instructions, const char* what) {
    if (instructions > 0) all += (all.empty() ? "" : ", ") + std::string(what);
  };
  name(row.tensor_loads + row.tensor_stores, "tiles");
  name(row.textures, "textures");
  name(too.multicast, "multicast");
  name(too.constants, "constants");
  name(too.products, "products");
  name(too.fills, "fills");
  return all.empty() ? std::string("no") : all;
}

bool DeviceResults::is_uncovered(const std::string& kernel) const {
  const auto found = unseen_.find(kernel);
  return found != unseen_.end() && found->second.is_of_global_memory();
}

Cell DeviceResults::uncovered_cell(ProcessId process, std::uint64_t object) const {
  if (mapped_.contains({process.value, object})) return std::string("tiles");
  const bool all_known = std::ranges::all_of(unseen_, [](const auto& line) {
    const Unseen& unseen = line.second;
    return !unseen.is_of_global_memory() ||
           (!unseen.mapped.empty() && unseen.row.textures + unseen.too.multicast == 0);
  });
  return all_known ? Cell(std::string("no")) : Cell();
}

const device::ObjectRow* DeviceResults::object(ProcessId process, std::uint64_t number) const {
  const auto known = objects_.find({process.value, number});
  return known == objects_.end() ? nullptr : &known->second.row;
}

// A finding for each of those with the most launches; a model has dozens of such kernels.
void DeviceResults::add_uncovered(Report& report) const {
  constexpr std::size_t kMost = 3;
  std::vector<const std::pair<const std::string, Unseen>*> order;
  std::uint64_t more = 0;
  for (const auto& line : unseen_) {
    if (line.second.is_of_global_memory()) order.push_back(&line);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const auto* line) { return line->second.launches; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [kernel, unseen] = *order[i];
    if (i >= kMost) {
      more += unseen.launches;
      continue;
    }
    report.parts.emplace_back(
        Finding{.id = "uncovered",
                .level = Finding::Level::kWarning,
                .text = fmt::format("{} accesses memory in ways that cannot be seen: its numbers "
                                    "leave that out{}",
                                    in_sentence(kernel), mapped_text(unseen.mapped)),
                .share = ratio(unseen.launches, launches_),
                .of = "analysed launches",
                .evidence = {{"launches", count_cell(unseen.launches), Unit::kCount},
                             {"tensor_loads", count_cell(unseen.row.tensor_loads), Unit::kCount},
                             {"tensor_stores", count_cell(unseen.row.tensor_stores), Unit::kCount},
                             {"textures", count_cell(unseen.row.textures), Unit::kCount},
                             {"multicast", count_cell(unseen.too.multicast), Unit::kCount}},
                .advice = {}});
  }
  if (order.size() <= kMost) return;
  report.parts.emplace_back(Finding{
      .id = "more-uncovered",
      .level = Finding::Level::kWarning,
      .text = fmt::format("so {} {} more{}", order.size() - kMost == 1 ? "does" : "do",
                          order.size() - kMost, by_kernel_ ? ": column uncovered says which" : ""),
      .share = ratio(more, launches_),
      .of = "analysed launches",
      .evidence = {{"kernels", count_cell(order.size() - kMost), Unit::kCount},
                   {"launches", count_cell(more), Unit::kCount}},
      .advice = {}});
}

// What is no global memory: of which kernels, the column says.
void DeviceResults::add_unseen_memory(Report& report) const {
  const auto kernels = [&](std::uint64_t device::UnseenTooRow::*what) {
    return std::ranges::count_if(unseen_,
                                 [&](const auto& line) { return line.second.too.*what > 0; });
  };
  const auto constants = kernels(&device::UnseenTooRow::constants);
  const auto products = kernels(&device::UnseenTooRow::products);
  const auto fills = kernels(&device::UnseenTooRow::fills);
  if (constants + products + fills == 0) return;
  report.parts.emplace_back(
      Finding{.id = "unseen-memory",
              .level = Finding::Level::kInfo,
              .text = fmt::format("reads of constant memory, products of matrices out of shared "
                                  "memory and fills of it in bulk are not seen{}",
                                  by_kernel_ ? ": column uncovered says of which kernels" : ""),
              .of = {},
              .evidence = {{"constants", std::int64_t{constants}, Unit::kCount},
                           {"products", std::int64_t{products}, Unit::kCount},
                           {"fills", std::int64_t{fills}, Unit::kCount}},
              .advice = {}});
}

void DeviceResults::add_findings(Report& report) const {
  if (launches_ == 0 && unreadable_ == 0) {
    report.parts.emplace_back(
        Finding{.id = "nothing-analysed",
                .level = Finding::Level::kInfo,
                .text = fmt::format("no launch was analysed by {}", tool_),
                .of = {},
                .evidence = {},
                .advice = skipped_ > 0 ? "let --launches take some: all, or a regular expression "
                                         "that matches names of kernels"
                                       : fmt::format("watch the program by: pastaprof run --tool "
                                                     "{} -- PROGRAM",
                                                     tool_)});
  }
  add_uncovered(report);
  add_unseen_memory(report);
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
                .advice = "pastaprof run --launches says which are"});
  }
  add_loss(report, "not-analysed", dropped_, fmt::format("{} accesses were not analysed", dropped_),
           "a group has made more of them without a barrier than can be kept");
  add_loss(report, "unreadable-results", unreadable_,
           fmt::format("{} results of launches cannot be read", unreadable_),
           "the trace is of a newer version of pastaprof, or damaged");
}

}  // namespace pasta::tools
