// Moving data: exposed-communication, exposed-copy, and rank-skew over several devices.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/units.h"
#include "tools/common/joining.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"

namespace pasta::tools::diagnose {

std::optional<Finding> exposed_communication(const View& view) {
  const std::int64_t exposed = time_of(view.parts, TimePart::kCommunication);
  auto finding = begin(view, "exposed-communication", Basis::kMeasured, {exposed, exposed});
  if (!finding) return std::nullopt;
  finding->text =
      fmt::format("device {} communicates for {} of which {} lie under no compute", view.device,
                  base::format_duration(view.mean(view.communication_ns)), amount(view, exposed));
  finding->evidence.emplace_back("communication_time", view.mean(view.communication_ns),
                                 Unit::kNanoseconds);
  finding->evidence.emplace_back("overlapped_share",
                                 share_of(view.communication_ns - exposed, view.communication_ns),
                                 Unit::kShare);
  add_work(view,
           work_of(view,
                   [](const WorkUse& use) {
                     return use.key.kind == Kind::kKernel &&
                            use.type == KernelClass::kCommunication;
                   }),
           3, *finding);
  finding->advice =
      "start it earlier or compute meanwhile (larger or earlier buckets, prefetching), send less, "
      "or find the rank the others wait for: time in which a call waits for other ranks counts "
      "here, too";
  return finding;
}

std::optional<Finding> exposed_copy(const View& view) {
  const std::int64_t exposed = time_of(view.parts, TimePart::kCopy);
  auto finding = begin(view, "exposed-copy", Basis::kMeasured, {exposed, exposed});
  if (!finding) return std::nullopt;
  const auto copies =
      work_of(view, [](const WorkUse& use) { return use.key.kind != Kind::kKernel; });
  std::int64_t host_ns = 0, pageable_ns = 0, calls = 0;
  std::uint64_t bytes = 0;
  bool known = true;
  for (const WorkUse* use : copies) {
    if (use->key.kind != Kind::kCopy) continue;
    const auto direction = static_cast<CopyDirection>(use->key.detail);
    calls += use->calls;
    bytes += use->bytes;
    known &= use->bytes_known;
    if (direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToHost) {
      host_ns = add_saturated(host_ns, use->total_ns);
      if (view.dictionary->text(use->key.name).find("ageable") != std::string_view::npos) {
        pageable_ns = add_saturated(pageable_ns, use->total_ns);
      }
    }
  }
  const std::int64_t all = total_of(copies);
  finding->text = fmt::format("device {} copies or fills for {} while no kernel runs", view.device,
                              amount(view, exposed));
  finding->evidence.emplace_back("copy_time", view.mean(all), Unit::kNanoseconds);
  finding->evidence.emplace_back("copies",
                                 static_cast<double>(calls) / static_cast<double>(view.iterations));
  const auto mean_bytes =
      static_cast<std::int64_t>(bytes / static_cast<std::uint64_t>(view.iterations));
  finding->evidence.emplace_back(
      "copied_bytes", cell_of(known ? std::optional(mean_bytes) : std::nullopt), Unit::kBytes);
  finding->evidence.emplace_back("host_copy_time", view.mean(host_ns), Unit::kNanoseconds);
  finding->evidence.emplace_back("pageable_copy_time", view.mean(pageable_ns), Unit::kNanoseconds);
  add_work(view, copies, 3, *finding);
  if (pageable_ns > all / 2) {
    finding->advice =
        "most of it is from or to pageable memory: pin the buffers and copy asynchronously, on a "
        "stream of its own";
  } else if (host_ns > all / 2) {
    finding->advice = "copy on a stream of its own while kernels run; join small copies";
  } else {
    finding->advice =
        "most of it stays on the device: avoid clones and contiguous copies, or let the kernel "
        "before write to where the data is needed";
  }
  return finding;
}

namespace {

struct RankRow {
  std::string device;
  std::int64_t duration_ns, communication_ns;
  double calls;
};

std::vector<RankRow> communicating(const Table& devices) {
  std::vector<RankRow> rows;
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(devices.columns, name, &Column::name) -
                                    devices.columns.begin());
  };
  const std::size_t duration = column("duration"), communication = column("communication"),
                    calls = column("collectives");
  for (const auto& row : devices.rows) {
    const auto* name = std::get_if<std::string>(row.data());
    const auto* whole = std::get_if<std::int64_t>(&row[duration]);
    const auto* part = std::get_if<std::int64_t>(&row[communication]);
    const auto* number = std::get_if<double>(&row[calls]);
    if (name == nullptr || whole == nullptr || part == nullptr || number == nullptr) continue;
    if (*whole > 0 && *number > 0) rows.push_back({*name, *whole, *part, *number});
  }
  return rows;
}

}  // namespace

std::optional<Finding> rank_skew(const Table& devices) {
  const std::vector<RankRow> rows = communicating(devices);
  if (rows.size() < 2 || rows.size() != devices.rows.size()) return std::nullopt;
  const auto [fewest, most] = std::ranges::minmax_element(rows, {}, &RankRow::calls);
  // Devices that exchange different things do not wait for one another, as far as is known.
  if (most->calls > fewest->calls * 1.1) return std::nullopt;
  const auto [least, longest] = std::ranges::minmax_element(rows, {}, &RankRow::communication_ns);
  const std::int64_t skew = longest->communication_ns - least->communication_ns;
  const double share = static_cast<double>(skew) / static_cast<double>(longest->duration_ns);
  if (share < kWorthNoting) return std::nullopt;
  Finding finding{.id = "rank-skew",
                  .level = share >= kSevere        ? Finding::Level::kProblem
                           : share >= kWorthSaying ? Finding::Level::kWarning
                                                   : Finding::Level::kInfo,
                  .text = {},
                  .share = std::min(share, 1.0),
                  .of = fmt::format("the mean steady iteration of {}", longest->device),
                  .evidence = {},
                  .advice = {}};
  finding.text = fmt::format(
      "{} spends {} in communication, {} only {}: the others wait for {}, which comes last",
      longest->device, base::format_duration(longest->communication_ns), least->device,
      base::format_duration(least->communication_ns), least->device);
  finding.evidence = {{"basis", "inferred"},
                      {"devices", static_cast<std::int64_t>(rows.size())},
                      {"waits_least", least->device},
                      {"waits_least_time", least->communication_ns, Unit::kNanoseconds},
                      {"waits_most", longest->device},
                      {"waits_most_time", longest->communication_ns, Unit::kNanoseconds},
                      {"at_most_saved", skew, Unit::kNanoseconds},
                      {"at_most_saved_share", std::min(share, 1.0), Unit::kShare}};
  finding.advice = fmt::format(
      "look at what {} does before it communicates: more work, slower input, or a slower host or "
      "device; a collective ends for all when the last has come",
      least->device);
  return finding;
}

}  // namespace pasta::tools::diagnose
