#include "tools/overlap/overlap.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "stats/interval_set.h"
#include "tools/common/demangle.h"
#include "tools/common/joining.h"
#include "tools/common/kernel_class.h"
#include "tools/common/memo.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/overlap/element_size.h"
#include "tools/overlap/report.h"

namespace pasta::tools {
namespace {

using stats::IntervalSet;

// One sort of device work.
struct Work {
  IntervalSet ran;
  std::int64_t calls = 0;
  std::int64_t timed = 0;

  [[nodiscard]] bool known() const { return timed > 0 || calls == 0; }
};

// A call of a collective that has times.
struct Call {
  std::int64_t begin, end;
  std::uint32_t group;  // index into DeviceTime::groups
};

// The calls of one collective.
struct Group {
  StringId kernel;  // names it where the source does not
  CollectiveId collective;
  std::int64_t calls = 0;
  std::int64_t timed = 0;
  std::int64_t total = 0;
  std::int64_t longest = 0;
  std::int64_t exposed = 0;
  std::int64_t overlapped = 0;

  void add(const Group& other) {
    calls += other.calls;
    timed += other.timed;
    total = add_saturated(total, other.total);
    longest = std::max(longest, other.longest);
    exposed = add_saturated(exposed, other.exposed);
    overlapped = add_saturated(overlapped, other.overlapped);
  }
};

struct DeviceTime {
  DeviceId device{};
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  Work compute, communication, memory;
  std::vector<Call> calls;
  std::vector<Group> groups;
  std::map<std::pair<CollectiveId, StringId>, std::uint32_t> group_of;

  void add(const Event& event, Work& work) {
    ++work.calls;
    if (event.untimed()) return;
    ++work.timed;
    first_ns = std::min(first_ns, event.start_ns);
    last_ns = std::max(last_ns, event.end_ns);
    work.ran.add(event.start_ns, event.end_ns);
  }

  void add_call(const Event& event, CollectiveId collective) {
    const auto [known, is_new] =
        group_of.try_emplace({collective, collective ? StringId{} : event.name},
                             static_cast<std::uint32_t>(groups.size()));
    if (is_new) groups.push_back({.kernel = event.name, .collective = collective});
    Group& group = groups[known->second];
    ++group.calls;
    if (event.untimed()) return;
    const std::int64_t duration = distance_saturated(event.start_ns, event.end_ns);
    ++group.timed;
    group.total = add_saturated(group.total, duration);
    group.longest = std::max(group.longest, duration);
    calls.push_back({event.start_ns, event.end_ns, known->second});
  }

  // Gives each moment of communication to one call, of several at once to the one that started
  // first, so that what the calls have of it adds up to what the device has.
  void split_by_compute() {
    std::ranges::sort(calls, {}, [](const Call& call) { return std::tie(call.begin, call.end); });
    IntervalSet::Reader compute_pieces(compute.ran);
    stats::Interval piece;
    bool more = compute_pieces.next(piece);
    std::int64_t given = std::numeric_limits<std::int64_t>::min();
    for (const Call& call : calls) {
      const std::int64_t begin = std::max(call.begin, given);
      if (begin >= call.end) continue;
      given = call.end;
      while (more && piece.end <= begin) more = compute_pieces.next(piece);
      std::int64_t overlapped = 0;
      while (more && piece.begin < call.end) {
        overlapped = add_saturated(overlapped, distance_saturated(std::max(begin, piece.begin),
                                                                  std::min(call.end, piece.end)));
        if (piece.end > call.end) break;  // the next call may lie under it too
        more = compute_pieces.next(piece);
      }
      Group& group = groups[call.group];
      group.overlapped = add_saturated(group.overlapped, overlapped);
      group.exposed =
          add_saturated(group.exposed, distance_saturated(begin, call.end) - overlapped);
    }
  }
};

Cell text_or_unknown(std::string_view text) {
  return text.empty() ? Cell() : Cell(std::string(text));
}

class Overlap : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      DeviceTime& device = device_of(event.lane, dictionary);
      if (event.kind != Kind::kKernel) {
        device.add(event, device.memory);
      } else if (communicates_.get(event.name,
                                   [&] { return is_communication(dictionary.text(event.name)); })) {
        device.add(event, device.communication);
        device.add_call(event, collective_.get(event.kernel.attributes, [&] {
          return dictionary.attributes(event.kernel.attributes).collective;
        }));
      } else {
        device.add(event, device.compute);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    std::vector<std::pair<std::string, DeviceTime*>> labelled;
    for (DeviceTime& device : devices_) {
      labelled.emplace_back(context.device_label(device.device), &device);
    }
    std::ranges::stable_sort(labelled, natural_less,
                             [](const auto& row) { return std::string_view(row.first); });
    Table devices = overlap::devices_table();
    Table collectives = overlap::collectives_table();
    for (const auto& [label, device] : labelled) {
      devices.rows.push_back(device_row(text_or_unknown(label), *device));
      device->split_by_compute();
      add_collectives(text_or_unknown(label), *device, context.dictionary(), collectives);
    }
    return overlap::make_report(std::move(devices), std::move(collectives));
  }

 private:
  DeviceTime& device_of(LaneId lane, const Dictionary& dictionary) {
    return devices_[device_of_lane_.get(lane, [&] {
      const DeviceId device = dictionary.lane(lane).device;
      return device_index_.get(device, [&] {
        devices_.emplace_back().device = device;
        return devices_.size() - 1;
      });
    })];
  }

  static std::vector<Cell> device_row(Cell label, const DeviceTime& device) {
    // What rests on times that the source does not have is unknown, not 0.
    const auto known = [](bool is_known, std::int64_t value) {
      return is_known ? Cell(value) : Cell();
    };
    const bool timed = device.first_ns <= device.last_ns;
    const bool both = device.compute.known() && device.communication.known();
    const bool all = both && device.memory.known();
    const std::int64_t communication = device.communication.ran.length();
    const std::int64_t overlapped =
        stats::intersection_length(device.communication.ran, device.compute.ran);
    const std::int64_t memory = device.memory.ran.length();
    const std::int64_t memory_overlapped = stats::intersection_length(
        device.memory.ran, stats::unite(device.compute.ran, device.communication.ran));
    return {std::move(label),
            known(timed, timed ? distance_saturated(device.first_ns, device.last_ns) : 0),
            known(device.compute.known(), device.compute.ran.length()),
            known(device.communication.known(), communication),
            known(both, overlapped),
            known(both, communication - overlapped),
            share_of(both ? std::optional(overlapped) : std::nullopt, communication),
            known(device.memory.known(), memory),
            known(all, memory_overlapped),
            known(all, memory - memory_overlapped)};
  }

  static void add_collectives(const Cell& label, const DeviceTime& device,
                              const Dictionary& dictionary, Table& table) {
    // By what is shown: that two groups of one name have other members does not show.
    std::map<std::vector<Cell>, Group> shown;
    for (const Group& group : device.groups) {
      shown[names_of(group, dictionary)].add(group);
    }
    std::vector<std::pair<const std::vector<Cell>*, const Group*>> order;
    for (const auto& [names, group] : shown) order.emplace_back(&names, &group);
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
      return std::tie(b.second->exposed, b.second->total) <
             std::tie(a.second->exposed, a.second->total);
    });
    for (const auto& [names, group] : order) {
      const auto known = [&](bool is_known, std::int64_t value) {
        return is_known ? Cell(value) : Cell();
      };
      const bool timed = group->timed > 0;
      const bool split = timed && device.compute.known();
      std::vector<Cell> row{label};
      row.insert(row.end(), names->begin(), names->end());
      row.emplace_back(group->calls);
      row.push_back(known(timed, group->total));
      row.push_back(known(split, group->exposed));
      row.push_back(known(split, group->overlapped));
      row.push_back(timed ? Cell(rounded_mean(group->total, group->timed)) : Cell());
      row.push_back(known(timed, group->longest));
      table.rows.push_back(std::move(row));
    }
  }

  // The cells that tell one collective from another.
  static std::vector<Cell> names_of(const Group& group, const Dictionary& dictionary) {
    const Collective collective = dictionary.collective(group.collective);
    const std::string_view type = dictionary.text(collective.element_type);
    const auto element = overlap::element_bytes(type);
    // Nobody sends 0 elements: 0 is the source's silence.
    const auto bytes = [&](std::uint64_t elements) {
      std::int64_t product = 0;
      if (!element || elements == 0 || __builtin_mul_overflow(elements, *element, &product)) {
        return Cell();
      }
      return Cell(product);
    };
    return {collective.name ? Cell(std::string(dictionary.text(collective.name)))
                            : Cell(demangle(dictionary.text(group.kernel))),
            text_or_unknown(type),
            bytes(collective.in_elements),
            bytes(collective.out_elements),
            text_or_unknown(dictionary.text(collective.group)),
            collective.group_size == 0 ? Cell() : Cell(std::int64_t{collective.group_size})};
  }

  Memo<StringId, bool> communicates_;
  Memo<AttributesId, CollectiveId> collective_;
  Memo<LaneId, std::size_t> device_of_lane_;
  Memo<DeviceId, std::size_t> device_index_;
  std::vector<DeviceTime> devices_;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<Overlap>(); }

}  // namespace

constinit const ToolEntry kOverlap = {
    .name = "overlap",
    .help =
        "how much of each device's communication is hidden under compute, and which "
        "collectives are not",
    .needs = Kind::kKernel,
    .options = {},
    .make = make,
    .join = overlap::join,
    .also = kDeviceWork};

}  // namespace pasta::tools
