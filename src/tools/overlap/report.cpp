#include "tools/overlap/report.h"

#include <fmt/format.h>

#include <optional>

#include "tools/common/joining.h"

namespace pasta::tools::overlap {
namespace {

constexpr double kMuch = 0.1;
constexpr double kMost = 0.3;

// Which device spends the largest part of its span on communication alone, and with what.
std::optional<Finding> exposed(const Table& devices, const Table& collectives) {
  const RankReport tables{
      .label = "overlap",
      .report = {.tool = "overlap", .title = {}, .parts = {devices, collectives}}};
  constexpr std::string_view kDevice[] = {"device", "span", "exposed_communication"};
  constexpr std::string_view kCall[] = {"device", "collective", "exposed"};
  const auto rows = TableReader::open(tables, devices.id, kDevice);
  const auto calls = TableReader::open(tables, collectives.id, kCall);
  if (!rows || !calls) return std::nullopt;

  double most = 0;
  std::int64_t most_ns = 0;
  std::string device;
  int much = 0;
  for (const auto& row : rows->rows()) {
    const auto span = rows->integer(row, "span");
    const auto time = rows->integer(row, "exposed_communication");
    if (!span || !time || *span <= 0) continue;
    const double share = static_cast<double>(*time) / static_cast<double>(*span);
    if (share >= kMuch) ++much;
    if (share <= most) continue;
    most = share;
    most_ns = *time;
    device = rows->text(row, "device").value_or("");
  }
  if (most < kMuch) return std::nullopt;

  std::string longest;
  std::int64_t longest_ns = 0;
  for (const auto& row : calls->rows()) {
    const auto time = calls->integer(row, "exposed");
    if (!time || *time <= longest_ns || calls->text(row, "device").value_or("") != device) continue;
    longest_ns = *time;
    longest = calls->text(row, "collective").value_or("");
  }
  std::string text = fmt::format(
      "device {} communicates and computes nothing meanwhile for {:.1f} % of its time, most of it "
      "in {}",
      device, 100 * most, longest);
  if (rows->rows().size() > 1) {
    text += fmt::format("; {} of {} devices do so for at least {:.0f} %", much, rows->rows().size(),
                        100 * kMuch);
  }
  return Finding{.id = "exposed-communication",
                 .level = most >= kMost ? Finding::Level::kProblem : Finding::Level::kWarning,
                 .text = std::move(text),
                 .share = most,
                 .of = "span of the device",
                 .evidence = {{"device", device},
                              {"exposed_communication", most_ns, Unit::kNanoseconds},
                              {"longest", longest},
                              {"longest_exposed", longest_ns, Unit::kNanoseconds}},
                 .advice =
                     "start collectives earlier so that compute runs beside them, send "
                     "fewer or larger messages, and see whether a rank that comes late "
                     "makes the others wait inside them"};
}

}  // namespace

Table devices_table() {
  return {.id = "overlap",
          .title = "Communication and memory traffic, and what of them compute hides",
          .columns = {{"device"},
                      {"span", Unit::kNanoseconds},
                      {"compute", Unit::kNanoseconds},
                      {"communication", Unit::kNanoseconds},
                      {"overlapped", Unit::kNanoseconds},
                      {"exposed_communication", Unit::kNanoseconds},
                      {"share_overlapped", Unit::kShare},
                      {"memory", Unit::kNanoseconds},
                      {"memory_overlapped", Unit::kNanoseconds},
                      {"exposed_memory", Unit::kNanoseconds}},
          .rows = {}};
}

Table collectives_table() {
  return {.id = "collectives",
          .title = "Collectives by exposed time",
          .columns = {{"device"},
                      {"collective"},
                      {"element_type"},
                      {"in_bytes", Unit::kBytes},
                      {"out_bytes", Unit::kBytes},
                      {"group"},
                      {"group_size", Unit::kCount},
                      {"calls", Unit::kCount},
                      {"total", Unit::kNanoseconds},
                      {"exposed", Unit::kNanoseconds},
                      {"overlapped", Unit::kNanoseconds},
                      {"mean", Unit::kNanoseconds},
                      {"max", Unit::kNanoseconds}},
          .rows = {}};
}

Result<Report> make_report(Table devices, Table collectives) {
  Report report{.tool = "overlap", .title = "Overlap", .parts = {}};
  if (auto finding = exposed(devices, collectives)) {
    report.parts.emplace_back(std::move(*finding));
  }
  if (collectives.rows.empty()) {
    report.parts.emplace_back(Finding{.id = "no-communication",
                                      .text = "no device communicated in this trace",
                                      .of = {},
                                      .evidence = {},
                                      .advice = {}});
  }
  report.parts.emplace_back(std::move(devices));
  report.parts.emplace_back(std::move(collectives));
  return report;
}

Result<Report> join(std::span<const RankReport> ranks) {
  auto devices = rows_of_all_devices(ranks, "overlap");
  if (!devices) return tl::unexpected(std::move(devices).error());
  auto collectives = rows_of_all_devices(ranks, "collectives");
  if (!collectives) return tl::unexpected(std::move(collectives).error());
  return make_report(std::move(*devices), std::move(*collectives));
}

}  // namespace pasta::tools::overlap
