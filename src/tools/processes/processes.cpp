#include "tools/processes/processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "tools/common/memo.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

// Deeper ones are shown at this depth.
constexpr std::size_t kDeepest = 20;
// So many that did nothing are listed all the same.
constexpr std::int64_t kFewQuiet = 4;
constexpr std::string_view kShowChoices[] = {"notable", "all"};
constexpr OptionInfo kOptions[] = {
    {"show",
     "which processes make rows: all, or without those that recorded nothing and ended well, such "
     "as the helpers that a shell script starts",
     "notable", kShowChoices},
};

// What was said of a process by name. Said twice with different values, it is unknown: two traces
// speak of processes that cannot be told apart.
class Facts {
 public:
  explicit Facts(const Dictionary& dictionary) {
    for (auto& [key, value] : dictionary.facts()) {
      const auto [known, is_new] = values_.emplace(key, value);
      if (!is_new && known->second != value) known->second.reset();
    }
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : found->second;
  }
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& key) const {
    const auto digits = text(key);
    std::int64_t number = 0;
    if (!digits) return std::nullopt;
    const char* const end = digits->data() + digits->size();
    const auto [stop, error] = std::from_chars(digits->data(), end, number);
    return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
  }

 private:
  std::map<std::string, std::optional<std::string>> values_;
};

struct Node {
  ProcessId id{};
  Process process;
  std::string native;
  std::optional<std::int64_t> parent, start_ns, end_ns;
  std::optional<std::string> command, ended;
  std::vector<std::size_t> children;
  std::optional<std::size_t> parent_node;
  // Whether nothing can be learnt from its row, nor from those below it.
  bool quiet = false;
};

template <class T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

class Processes : public Tool {
 public:
  explicit Processes(bool show_all) : show_all_(show_all) {}

  Status consume(std::span<const Event> events, const Context&) override {
    for (const Event& event : events) {
      Seen& seen = lanes_.get(event.lane, [] { return Seen{}; });
      ++seen.events;
      seen.device_work = seen.device_work || kDeviceWork.has(event.kind);
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    std::vector<Node> nodes = nodes_of(context.dictionary());
    Report report{.tool = "processes", .title = "Processes", .parts = {}};
    Table table{.id = "processes",
                .title = "Processes, those that one started below it",
                .columns = {{"process"},
                            {"pid"},
                            {"parent"},
                            {"rank"},
                            {"ended"},
                            {"start", Unit::kNanoseconds},
                            {"duration", Unit::kNanoseconds},
                            {"events", Unit::kCount},
                            {"devices"},
                            {"command"}},
                .rows = {}};
    std::map<ProcessId, Sum> sums;
    for (std::uint32_t id = 0; id < context.dictionary().lane_count(); ++id) {
      const Seen& seen = lanes_.get(LaneId{id}, [] { return Seen{}; });
      if (seen.events == 0) continue;
      const Lane lane = context.dictionary().lane({id});
      Sum& sum = sums[lane.process];
      sum.events += seen.events;
      if (seen.device_work) sum.devices.insert(context.device_label(lane.device));
    }
    std::int64_t quiet = mark_quiet(nodes, sums);
    if (show_all_ || quiet <= kFewQuiet) {
      for (Node& node : nodes) node.quiet = false;
      quiet = 0;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].parent_node) add_rows(nodes, i, sums, context, table);
    }
    if (quiet > 0) {
      report.parts.emplace_back(
          Finding{.id = "not-listed",
                  .level = Finding::Level::kInfo,
                  .text = fmt::format("{} more processes recorded nothing and ended well", quiet),
                  .of = {},
                  .evidence = {{"processes", quiet, Unit::kCount}},
                  .advice = "--opt processes.show=all lists them"});
    }
    std::int64_t unseen = 0;
    for (const Node& node : nodes) unseen += node.ended == "no exit seen" ? 1 : 0;
    if (unseen > 0) {
      report.parts.emplace_back(Finding{
          .id = "no-exit-seen",
          .level = Finding::Level::kInfo,
          .text = unseen == 1 ? "one process ended without saying how"
                              : fmt::format("{} processes ended without saying how", unseen),
          .of = {},
          .evidence = {{"processes", unseen, Unit::kCount}},
          .advice = "it was killed, crashed, or executed a program that is not watched"});
    }
    report.parts.emplace_back(std::move(table));
    return report;
  }

 private:
  struct Seen {
    std::int64_t events = 0;
    bool device_work = false;
  };
  struct Sum {
    std::int64_t events = 0;
    std::set<std::string> devices;
  };

  // In order of their start; those of which it is unknown come last, by number.
  static std::vector<Node> nodes_of(const Dictionary& dictionary) {
    const Facts facts(dictionary);
    std::vector<Node> nodes;
    for (std::uint32_t id = 1; id < dictionary.process_count(); ++id) {
      Node node;
      node.id = {id};
      node.process = dictionary.process({id});
      node.native = node.process.native_text
                        ? std::string(dictionary.text(node.process.native_text))
                        : fmt::to_string(node.process.native_id);
      const std::string key =
          fmt::format("process {} on {} ", node.native, dictionary.text(node.process.host));
      node.parent = facts.number(key + "parent");
      node.start_ns = facts.number(key + "started_ns");
      node.end_ns = facts.number(key + "ended_ns");
      node.command = facts.text(key + "command");
      node.ended = facts.text(key + "ended");
      nodes.push_back(std::move(node));
    }
    std::ranges::stable_sort(nodes, {}, [](const Node& node) {
      return std::tuple(!node.start_ns, node.start_ns.value_or(0));
    });
    // Of several that had a number, the last before the child began.
    std::map<std::pair<StringId, std::string>, std::size_t> by_number;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      if (node.parent) {
        const auto parent = by_number.find({node.process.host, fmt::to_string(*node.parent)});
        if (parent != by_number.end()) {
          nodes[parent->second].children.push_back(i);
          node.parent_node = parent->second;
        }
      }
      if (node.start_ns) {
        by_number[{node.process.host, node.native.substr(0, node.native.find(' '))}] = i;
      }
    }
    return nodes;
  }

  // Marks the quiet ones: how many they are. What the user started, which has no parent here, never
  // is, nor is what started one that is not. Who fails while its parent ends well was meant to,
  // such as a test of a shell script.
  static std::int64_t mark_quiet(std::vector<Node>& nodes, const std::map<ProcessId, Sum>& sums) {
    for (Node& node : nodes) {
      if (!node.parent_node || node.process.rank >= 0 || sums.contains(node.id)) continue;
      node.quiet = node.ended == "exit 0" || (node.ended && node.ended->starts_with("exit ") &&
                                              nodes[*node.parent_node].ended == "exit 0");
    }
    // A parent began before its child, so it comes before it.
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (!nodes[i].quiet && nodes[i].parent_node) nodes[*nodes[i].parent_node].quiet = false;
    }
    return std::ranges::count_if(nodes, &Node::quiet);
  }

  // A process, and below it those that it started.
  static void add_rows(const std::vector<Node>& nodes, std::size_t root,
                       const std::map<ProcessId, Sum>& sums, const Context& context, Table& table) {
    std::vector<std::pair<std::size_t, std::size_t>> next = {{root, 0}};  // node, depth
    while (!next.empty()) {
      const auto [index, depth] = next.back();
      next.pop_back();
      const Node& node = nodes[index];
      for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
        if (!nodes[*child].quiet) next.emplace_back(*child, depth + 1);
      }
      std::optional<std::int64_t> start, duration;
      if (node.start_ns && context.origin_ns() != kNoTime) {
        start = distance_saturated(context.origin_ns(), *node.start_ns);
      }
      if (node.start_ns && node.end_ns) duration = distance_saturated(*node.start_ns, *node.end_ns);
      const std::string name(context.dictionary().text(node.process.name));
      const auto sum = sums.find(node.id);
      const Sum none;
      const auto& [events, devices] = sum == sums.end() ? none : sum->second;
      table.rows.push_back({std::string(2 * std::min(depth, kDeepest), ' ') +
                                (name.empty() ? "process " + node.native : name),
                            node.native, node.parent ? Cell(fmt::to_string(*node.parent)) : Cell(),
                            node.process.rank >= 0 ? Cell(std::int64_t{node.process.rank}) : Cell(),
                            cell_of(node.ended), cell_of(start), cell_of(duration), events,
                            devices.empty() ? "none" : fmt::format("{}", fmt::join(devices, ", ")),
                            cell_of(node.command)});
    }
  }

  bool show_all_;
  Memo<LaneId, Seen> lanes_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  return std::make_unique<Processes>(options.text("show") == "all");
}

}  // namespace

constinit const ToolEntry kProcesses = {
    .name = "processes",
    .help =
        "which processes ran: who started whom, rank, how each ended and when, "
        "its events, and the devices that it used",
    .needs = {},
    .options = kOptions,
    .make = make,
    .also = KindSet::all()};

}  // namespace pasta::tools
