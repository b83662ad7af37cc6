#include "tools/patterns/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "tools/common/api_role.h"
#include "tools/common/cycle.h"
#include "tools/common/demangle.h"
#include "tools/common/joining.h"
#include "tools/common/launch_log.h"
#include "tools/common/memo.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/patterns/grammar_tree.h"

namespace pasta::tools {
namespace {

using patterns::Pattern;

constexpr std::uint32_t kLeastForGraph = 8;  // launches that a graph is worth making for

// What makes two pieces of device work the same here: also their shapes, as in a captured graph.
struct Key {
  std::uint32_t name, attributes;
  std::array<std::uint32_t, 3> grid;
  std::uint64_t bytes;
  WorkSort sort;
  auto operator<=>(const Key&) const = default;
};

struct Work {
  LaunchLog log;
  std::map<Key, std::uint32_t> ids;
  std::map<std::uint64_t, std::uint32_t> graphs;  // of what one call launched together
  std::vector<StringId> names;                    // by symbol >> 2; none for a graph
  std::uint64_t calls = 0;                        // that launched one piece of work
  std::int64_t calls_ns = 0;

  std::uint32_t symbol(const Event& event) {
    Key key{.name = event.name.value,
            .attributes = 0,
            .grid = {},
            .bytes = 0,
            .sort = WorkSort::kOther};
    if (event.kind == Kind::kKernel) {
      key.attributes = event.kernel.attributes.value;
      std::copy_n(event.kernel.grid, 3, key.grid.begin());
      key.sort = WorkSort::kCompute;
    } else if (event.kind == Kind::kCopy) {
      const auto direction = static_cast<CopyDirection>(event.detail);
      key.bytes = event.copy.bytes;
      if (direction == CopyDirection::kDeviceToHost) key.sort = WorkSort::kToHost;
      if (direction == CopyDirection::kHostToDevice) key.sort = WorkSort::kToDevice;
    } else {
      key.bytes = event.fill.bytes;
    }
    const auto [known, is_new] = ids.try_emplace(key, next(key.sort));
    if (is_new) names.push_back(event.name);
    return known->second;
  }
  std::uint32_t graph(std::uint64_t signature) {
    const auto [known, is_new] = graphs.try_emplace(signature, next(WorkSort::kCompute));
    if (is_new) names.emplace_back();
    return known->second;
  }

 private:
  [[nodiscard]] std::uint32_t next(WorkSort sort) const {
    return static_cast<std::uint32_t>(names.size() << 2) | static_cast<std::uint32_t>(sort);
  }
};

// The launches of one process, one after the other.
struct Sequence {
  std::vector<std::uint32_t> symbols;
  std::vector<std::int64_t> times_ns;
  std::vector<FrameId> scopes;
  std::uint64_t left_out = 0;

  Sequence(Work& work, std::size_t most) {
    LaunchRecord record;
    std::uint64_t key = 0, signature = 0;
    std::size_t held = 0;
    const auto close = [&] {
      if (held > 1) symbols.back() = work.graph(signature);
    };
    for (LaunchLog::Reader reader(work.log); reader.next(record);) {
      const std::int64_t took = distance_saturated(record.start_ns, record.end_ns);
      if (held > 0 && record.key == key && work.log.by_correlation()) {
        times_ns.back() = add_saturated(times_ns.back(), took);
      } else {
        close();
        if (symbols.size() == most) {
          ++left_out;
          held = 0;
          continue;
        }
        symbols.push_back(record.symbol);
        times_ns.push_back(took);
        scopes.push_back(record.scope);
        key = record.key;
        signature = 0;
        held = 0;
      }
      // Branches of a graph run in any order.
      const std::uint64_t mixed = (record.symbol + 1) * 0x9e3779b97f4a7c15u;
      signature += (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
      ++held;
    }
    close();
  }
};

bool touches_host(std::uint32_t symbol) {
  return sort_of(symbol) == WorkSort::kToHost || sort_of(symbol) == WorkSort::kToDevice;
}

std::int64_t sum(std::span<const std::int64_t> values) {
  std::int64_t all = 0;
  for (const std::int64_t value : values) all = add_saturated(all, value);
  return all;
}

Table grammar_table() {
  return {.id = "grammar",
          .title = "How far the launches reduce",
          .columns = {{"launches", Unit::kCount},
                      {"distinct", Unit::kCount},
                      {"rules", Unit::kCount},
                      {"size", Unit::kCount},
                      {"launch_calls", Unit::kCount},
                      {"launch_time", Unit::kNanoseconds}},
          .rows = {}};
}

Table patterns_table() {
  return {.id = "patterns",
          .title = "Sequences that repeat",
          .columns = {{"pattern"},
                      {"level", Unit::kCount},
                      {"length", Unit::kCount},
                      {"count", Unit::kCount},
                      {"time", Unit::kNanoseconds},
                      {"share", Unit::kShare}},
          .rows = {}};
}

Table graphs_table() {
  return {.id = "graphs",
          .title = "Launch sequences that could be graphs",
          .columns = {{"pattern"},
                      {"length", Unit::kCount},
                      {"count", Unit::kCount},
                      {"time", Unit::kNanoseconds},
                      {"launch_saved", Unit::kNanoseconds}},
          .rows = {}};
}

constexpr std::string_view kNoWork = "no device work with times in this trace";
constexpr std::string_view kTreeTitle = "Levels of repetition";
constexpr std::string_view kRowsLeftOut = "rows-left-out";
constexpr std::string_view kLaunchesLeftOut = "launches-left-out";

// A number that a finding gives.
std::optional<std::int64_t> evidence_of(const Finding& finding, std::string_view name) {
  for (const Evidence& one : finding.evidence) {
    const auto* number = std::get_if<std::int64_t>(&one.value);
    if (one.name == name && number != nullptr) return *number;
  }
  return std::nullopt;
}

// `rows`: of the table before anything was left out.
void cut(Table& table, std::size_t top, std::size_t rows, Report& report) {
  if (top == 0 || rows <= top) return;
  Finding finding =
      info(std::string(kRowsLeftOut),
           fmt::format("top={} leaves out {} of {} rows of {}", top, rows - top, rows, table.id));
  finding.evidence = {{"table", table.id},
                      {"top", static_cast<std::int64_t>(top)},
                      {"rows", static_cast<std::int64_t>(rows)}};
  report.parts.emplace_back(std::move(finding));
  table.rows.resize(std::min(top, table.rows.size()));
}

Finding graph_finding(std::size_t graphs, std::optional<std::int64_t> saved,
                      std::int64_t calls_ns) {
  Finding finding =
      info("graph-candidates",
           fmt::format("launch sequences that come back identically and touch no host memory: {}; "
                       "as a graph, each would be one launch",
                       graphs));
  finding.evidence = {{"sequences", static_cast<std::int64_t>(graphs)}};
  if (calls_ns > 0 && saved) {
    finding.share = std::min(1.0, static_cast<double>(*saved) / static_cast<double>(calls_ns));
    finding.of = "the time in launch calls, at most";
    finding.evidence.emplace_back("launch_saved", *saved, Unit::kNanoseconds);
  }
  finding.advice =
      "capture them: torch.cuda.graph or torch.compile(mode=\"reduce-overhead\"); inputs must "
      "stay where they are";
  return finding;
}

Finding launches_left_out(std::int64_t most, std::int64_t left_out) {
  Finding finding = info(std::string(kLaunchesLeftOut),
                         fmt::format("the first {} launches of each process are looked at; {} "
                                     "pieces of device work come later",
                                     most, left_out));
  finding.evidence = {{"launches", most}, {"left_out", left_out}};
  finding.advice = "--opt patterns.launches=0 looks at all, at some 70 bytes of memory a launch";
  return finding;
}

class Patterns : public Tool {
 public:
  Patterns(std::size_t top, double least_share, std::size_t most)
      : top_(top), least_share_(least_share), most_(most) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (event.untimed()) continue;  // without a place in the order
      ProcessId process = correlation_process(event.correlation);
      if (!process) process = dictionary.lane(event.lane).process;
      if (event.kind != Kind::kApi) {
        Work& work = work_[process];
        work.log.add(event, work.symbol(event));
        continue;
      }
      if (event.correlation == 0) continue;
      Work& work = work_[process];
      work.log.add_call(event);
      const bool launches = launches_.get(
          event.name, [&] { return api_role(dictionary.text(event.name)).launches_one(); });
      if (!launches) continue;
      ++work.calls;
      work.calls_ns =
          add_saturated(work.calls_ns, distance_saturated(event.start_ns, event.end_ns));
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    Report report{.tool = "patterns", .title = "Patterns", .parts = {}};
    std::erase_if(work_, [](const auto& one) { return one.second.log.empty(); });
    several_ = work_.size() > 1;
    Table grammar = grammar_table(), table = patterns_table(), graphs = graphs_table();
    if (several_) {
      for (Table* one : {&grammar, &table, &graphs}) {
        one->columns.insert(one->columns.begin(), {"process"});
      }
    }
    std::vector<Part> trees;
    std::int64_t saved = 0, calls_ns = 0;
    std::uint64_t left_out = 0;
    std::vector<ProcessId> ids;
    for (const auto& [process, work] : work_) ids.push_back(process);
    const std::vector<std::string> labels = process_labels(context.dictionary(), ids);
    std::vector<std::pair<std::string, Work*>> processes;
    for (auto& [process, work] : work_) {
      const std::string& label = labels[processes.size()];
      processes.emplace_back(several_ ? label : "", &work);
    }
    std::ranges::stable_sort(processes, natural_less, &std::pair<std::string, Work*>::first);
    for (const auto& [label, of_process] : processes) {
      Work& work = *of_process;
      work.log.close();
      const Sequence sequence(work, most_);
      left_out += sequence.left_out;
      const auto text = mine::Text::of(mine::Symbols(sequence.symbols));
      if (!text) return tl::unexpected<Error>(text.error());
      const mine::Grammar rules = mine::reduce(*text);
      const patterns::Launches launches{sequence.symbols, sequence.times_ns};
      const std::int64_t all_ns = sum(sequence.times_ns);
      const auto least = static_cast<std::int64_t>(least_share_ * static_cast<double>(all_ns));
      const std::vector<Pattern> found = patterns::patterns_of(rules, launches, least);
      add(grammar, label,
          {static_cast<std::int64_t>(text->size()), static_cast<std::int64_t>(text->alphabet()),
           static_cast<std::int64_t>(rules.rules.size() - 1),
           static_cast<std::int64_t>(rules.size()), static_cast<std::int64_t>(work.calls),
           work.calls_ns});
      Tree tree{.id = "levels",
                .title = label.empty() ? std::string(kTreeTitle)
                                       : fmt::format("{}, {}", kTreeTitle, label),
                .unit = Unit::kNanoseconds,
                .root = {.name = fmt::format("all {} launches", text->size()),
                         .value = static_cast<double>(all_ns),
                         .children = {}}};
      for (std::size_t i = 0; i < found.size() && found[i].level == 0; ++i) {
        add_level(found, i, work, sequence, context, all_ns, label, tree.root, table);
      }
      if (!found.empty()) trees.emplace_back(std::move(tree));
      calls_ns = add_saturated(calls_ns, work.calls_ns);
      for (const Pattern& one :
           patterns::unbroken(rules, launches, kLeastForGraph, 3, touches_host)) {
        Cell of_it;
        if (work.calls > 0) {
          const auto launched = static_cast<double>(one.count) * (one.length - 1);
          const double spared =
              launched * static_cast<double>(work.calls_ns) / static_cast<double>(work.calls);
          of_it = static_cast<std::int64_t>(spared);
          saved = add_saturated(saved, static_cast<std::int64_t>(spared));
        }
        add(graphs, label,
            {name_of(one, work, sequence, context), static_cast<std::int64_t>(one.length),
             static_cast<std::int64_t>(one.count), one.time_ns, std::move(of_it)});
      }
    }
    if (table.rows.empty()) {
      report.parts.emplace_back(info(
          "no-patterns", work_.empty() ? std::string(kNoWork) : "no sequence of launches repeats"));
    }
    if (left_out > 0) {
      report.parts.emplace_back(
          launches_left_out(static_cast<std::int64_t>(most_), static_cast<std::int64_t>(left_out)));
    }
    if (!graphs.rows.empty()) {
      report.parts.emplace_back(graph_finding(graphs.rows.size(), saved, calls_ns));
    }
    cut(table, top_, table.rows.size(), report);
    cut(graphs, top_, graphs.rows.size(), report);
    report.parts.emplace_back(std::move(grammar));
    report.parts.emplace_back(std::move(table));
    report.parts.emplace_back(std::move(graphs));
    for (Part& tree : trees) report.parts.push_back(std::move(tree));
    return report;
  }

 private:
  void add(Table& table, const std::string& label, std::vector<Cell> cells) const {
    if (several_) cells.insert(cells.begin(), label);
    table.rows.push_back(std::move(cells));
  }

  void add_level(const std::vector<Pattern>& found, std::size_t index, const Work& work,
                 const Sequence& sequence, const Context& context, std::int64_t all_ns,
                 const std::string& label, TreeNode& into, Table& table) const {
    const Pattern& one = found[index];
    std::string name = name_of(one, work, sequence, context);
    Cell share;
    if (all_ns > 0) share = static_cast<double>(one.time_ns) / static_cast<double>(all_ns);
    add(table, label,
        {name, static_cast<std::int64_t>(one.level), static_cast<std::int64_t>(one.length),
         static_cast<std::int64_t>(one.count), one.time_ns, std::move(share)});
    TreeNode node{.name = fmt::format("{} ({} launches, {} times)", name, one.length, one.count),
                  .value = static_cast<double>(one.time_ns),
                  .children = {}};
    for (const std::size_t inner : one.inner) {
      add_level(found, inner, work, sequence, context, all_ns, label, node, table);
    }
    into.children.push_back(std::move(node));
  }

  // The operator around all launches of its first occurrence, else the kernel that takes longest.
  static std::string name_of(const Pattern& one, const Work& work, const Sequence& sequence,
                             const Context& context) {
    const Dictionary& dictionary = context.dictionary();
    std::optional<FrameId> around;
    std::unordered_map<std::uint32_t, std::int64_t> times;
    for (std::size_t at = one.first; at < one.first + one.length; ++at) {
      around = around ? common(*around, sequence.scopes[at], dictionary) : sequence.scopes[at];
      std::int64_t& time = times[sequence.symbols[at]];
      time = add_saturated(time, sequence.times_ns[at]);
    }
    if (around && *around) {
      return std::string(dictionary.text(dictionary.frame(*around).name));
    }
    std::uint32_t longest = sequence.symbols[one.first];
    for (const auto& [symbol, time] : times) {
      if (std::pair(time, longest) > std::pair(times[longest], symbol)) longest = symbol;
    }
    const StringId name = work.names[longest >> 2];
    return name ? short_name(demangle(dictionary.text(name))) : std::string("(graph)");
  }

  static FrameId common(FrameId a, FrameId b, const Dictionary& dictionary) {
    // A frame is made after what it lies in.
    while (a != b) {
      FrameId& deeper = a.value > b.value ? a : b;
      deeper = dictionary.frame(deeper).parent;
    }
    return a;
  }

  std::size_t top_;
  double least_share_;
  std::size_t most_;  // launches of a process that are looked at
  std::map<ProcessId, Work> work_;
  Memo<StringId, bool> launches_;
  bool several_ = false;
};

Result<Report> join(std::span<const RankReport> ranks) {
  if (ranks.size() == 1) return ranks.front().report;
  std::vector<RankReport> working;
  for (const RankReport& rank : ranks) {
    const Finding* none = find_finding(rank.report, "no-patterns");
    if (none == nullptr || none->text != kNoWork) working.push_back(rank);
  }
  if (working.empty()) return ranks.front().report;
  Table grammar = grammar_table(), table = patterns_table(), graphs = graphs_table();
  for (Table* one : {&grammar, &table, &graphs}) {
    PASTA_TRY(add_rows_by_process(*one, working, false));
  }
  std::int64_t left_out = 0, most = 0, top = 0, sequences = 0, saved = 0;
  std::int64_t rows_more = 0, graphs_more = 0;  // that were left out
  std::vector<std::pair<std::string, Tree>> trees;
  for (const RankReport& rank : working) {
    for (const Part& part : rank.report.parts) {
      if (const auto* tree = std::get_if<Tree>(&part)) {
        auto& [label, own] = trees.emplace_back(rank.label, *tree);
        if (own.title.size() > kTreeTitle.size() + 2) {
          label = own.title.substr(kTreeTitle.size() + 2);
        } else if (working.size() > 1) {
          own.title = fmt::format("{}, {}", kTreeTitle, label);
        }
      }
      const auto* finding = std::get_if<Finding>(&part);
      if (finding == nullptr) continue;
      const auto number = [&](std::string_view name) {
        return evidence_of(*finding, name).value_or(0);
      };
      if (finding->id == kLaunchesLeftOut) {
        most = number("launches");
        left_out += number("left_out");
      }
      if (finding->id == "graph-candidates") {
        sequences += number("sequences");
        saved = add_saturated(saved, number("launch_saved"));
      }
      if (finding->id != kRowsLeftOut) continue;
      top = number("top");
      const bool of_graphs = finding->evidence.front().value == Cell(graphs.id);
      (of_graphs ? graphs_more : rows_more) += number("rows") - number("top");
    }
  }
  std::ranges::stable_sort(trees, natural_less, &std::pair<std::string, Tree>::first);
  std::int64_t calls_ns = 0;
  for (const std::vector<Cell>& row : grammar.rows) {
    if (const auto* time = std::get_if<std::int64_t>(&row.back())) {
      calls_ns = add_saturated(calls_ns, *time);
    }
  }
  Report report{.tool = "patterns", .title = ranks.front().report.title, .parts = {}};
  if (table.rows.empty()) {
    report.parts.emplace_back(info("no-patterns", "no sequence of launches repeats"));
  }
  if (left_out > 0) report.parts.emplace_back(launches_left_out(most, left_out));
  if (sequences > 0) {
    report.parts.emplace_back(graph_finding(static_cast<std::size_t>(sequences), saved, calls_ns));
  }
  const auto keep = static_cast<std::size_t>(top);  // known where something was left out
  cut(table, keep, table.rows.size() + static_cast<std::size_t>(rows_more), report);
  cut(graphs, keep, graphs.rows.size() + static_cast<std::size_t>(graphs_more), report);
  report.parts.emplace_back(std::move(grammar));
  report.parts.emplace_back(std::move(table));
  report.parts.emplace_back(std::move(graphs));
  for (auto& [label, tree] : trees) report.parts.emplace_back(std::move(tree));
  return report;
}

constexpr OptionInfo kOptions[] = {
    {"top", "keep only the first N rows of each table; 0 keeps all", "40", {}},
    // A grammar takes some 70 bytes a launch while it is made; what repeats shows in as many.
    {"launches", "look at the first N launches of each process; 0 looks at all", "2097152", {}},
    {"min_share", "leave out patterns with a smaller share of the device time", "1%", {}},
};

// "1%" or "0.01".
std::optional<double> share(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (percent) value /= 100;
  if (!(value >= 0 && value <= 1)) return std::nullopt;
  return value;
}

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto top = options.integer("top");
  if (!top) return tl::unexpected<Error>(top.error());
  if (*top < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option patterns.top cannot be {}; give 0 or more", *top));
  }
  const auto least = share(options.text("min_share"));
  if (!least) {
    return fail(
        ErrorCode::kUsage,
        fmt::format("option patterns.min_share cannot be {}; give a share such as 1% or 0.01",
                    options.text("min_share")));
  }
  const auto most = options.integer("launches");
  if (!most) return tl::unexpected<Error>(most.error());
  if (*most < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option patterns.launches cannot be {}; give 0 or more", *most));
  }
  return std::make_unique<Patterns>(
      static_cast<std::size_t>(*top), *least,
      *most == 0 ? mine::Text::kMaxSize : static_cast<std::size_t>(*most));
}

}  // namespace

constinit const ToolEntry kPatterns = {.name = "patterns",
                                       .help =
                                           "which sequences of launches repeat, from iterations "
                                           "down to layers, and which could be graphs",
                                       .needs = Kind::kKernel,
                                       .options = kOptions,
                                       .make = make,
                                       .join = join,
                                       .also = kDeviceWork | Kind::kApi};

}  // namespace pasta::tools
