#include "tools/layers/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tools/common/demangle.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/layers/module_tree.h"

namespace pasta::tools {
namespace {

using layers::Module;
using layers::ModuleTree;

constexpr std::string_view kScopeChoices[] = {"module", "annotation", "python"};
constexpr OptionInfo kOptions[] = {
    {"scopes", "which ranges of the host are the modules", "module", kScopeChoices},
    {"find",
     "only modules whose name has these parts in a row, with their kernels: layer.4",
     "",
     {}},
    {"depth", "levels of the tree; 0 is all", "0", {}},
};
constexpr const char* kOutsideName = "(outside modules)";
// A tree deeper than this is of use to nobody, and a danger for who walks it.
constexpr std::uint32_t kDeepest = 200;

struct Settings {
  ScopeDomain domain;
  std::string find;
  std::uint32_t depth;
};

// The value of a member of a flat JSON object whose texts need no escapes, or "".
std::string_view member_of(std::string_view json, std::string_view key) {
  const std::string quoted = fmt::format("\"{}\":", key);
  const std::size_t at = json.find(quoted);
  if (at == std::string_view::npos) return {};
  std::string_view rest = json.substr(at + quoted.size());
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('"'));
  }
  return rest.substr(0, rest.find_first_of(",}"));
}

// "layer.4" is in "encoder.layer.4.output" and not in "encoder.layer.40".
bool has_parts(std::string_view name, std::string_view parts) {
  for (std::size_t at = name.find(parts); at != std::string_view::npos;
       at = name.find(parts, at + 1)) {
    const std::size_t end = at + parts.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "nn.Module: ";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

// What a module and all that is in it cost.
struct Sums {
  std::int64_t device_ns = 0, work = 0, timed_work = 0, kernels = 0;
};

class Layers : public Tool {
 public:
  explicit Layers(Settings settings) : settings_(std::move(settings)), tree_(settings_.domain) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (event.kind == Kind::kScope) {
        take_range(event, dictionary);
      } else {
        take_work(event, dictionary);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    settle();
    find_sources(dictionary);
    add_up();
    find_names(dictionary);
    Report report{.tool = "layers", .title = "Layers", .parts = {}};
    for (const auto& [key, value] : dictionary.facts()) {
      if (!key.starts_with("process ") || !key.ends_with(" torch")) continue;
      report.parts.emplace_back(info("watched", fmt::format("{}: {}", key, value)));
    }
    if (tree_.count() == 1) {
      report.parts.emplace_back(
          info("no-modules",
               fmt::format("no range in this trace is a module; other ranges make the "
                           "tree by scopes={}",
                           settings_.domain == ScopeDomain::kModule ? "annotation" : "module")));
    } else if (!any_work_) {
      report.parts.emplace_back(info("no-device-work",
                                     "no device work is in the trace: times are of "
                                     "the host"));
    }
    const std::vector<std::uint32_t> shown = rows();
    if (!settings_.find.empty() && shown.empty() && tree_.count() > 1) {
      report.parts.emplace_back(
          info("not-found", fmt::format("no module has the parts \"{}\"", settings_.find)));
    }
    report.parts.emplace_back(table(shown, dictionary));
    if (!settings_.find.empty()) {
      report.parts.emplace_back(kernels(dictionary));
    } else if (tree_.count() > 1) {
      Tree tree{.id = "tree",
                .title = any_work_ ? "Device time by module" : "Host time by module",
                .unit = Unit::kNanoseconds,
                .root = node(ModuleTree::kOutside, dictionary)};
      tree.root.name = "(all)";
      report.parts.emplace_back(std::move(tree));
    }
    return report;
  }

 private:
  void take_range(const Event& event, const Dictionary& dictionary) {
    if (static_cast<ScopeDomain>(event.detail) != settings_.domain ||
        (event.flags & (kAnnotation | kInstant)) != 0) {
      return;
    }
    const std::uint32_t at = tree_.child(tree_.of(event.scope, dictionary), event.name);
    Module& module = tree_[at];
    ++module.calls;
    if (module.source.empty() && event.range.arguments) {
      const std::string_view said = dictionary.text(event.range.arguments);
      const std::string_view file = member_of(said, "file"), line = member_of(said, "line");
      if (!file.empty() && !line.empty()) module.source = fmt::format("{}:{}", file, line);
    }
    if (event.untimed()) return;
    if (module.timed++ == 0 || event.start_ns < module.first_ns) module.first_ns = event.start_ns;
    module.host_ns =
        add_saturated(module.host_ns, distance_saturated(event.start_ns, event.end_ns));
    if (!tied_.empty() && tied_.front().end_ns != event.end_ns) settle();
    tied_.push_back({event.lane, at, event.start_ns, event.end_ns});
  }

  // Ranges that end together come in any order: of those of a thread the inner ones begin later,
  // or lie deeper.
  void settle() {
    std::ranges::stable_sort(tied_, [&](const Range& a, const Range& b) {
      if (a.lane != b.lane) return a.lane.value < b.lane.value;
      if (a.start_ns != b.start_ns) return a.start_ns > b.start_ns;
      return tree_[a.module].depth > tree_[b.module].depth;
    });
    for (const Range& range : tied_) {
      std::vector<Range>& waiting = waiting_[range.lane.value];
      std::int64_t inside_ns = 0;
      while (!waiting.empty() && waiting.back().start_ns >= range.start_ns) {
        inside_ns = add_saturated(
            inside_ns, distance_saturated(waiting.back().start_ns, waiting.back().end_ns));
        waiting.pop_back();
      }
      Module& module = tree_[range.module];
      module.inside_ns = add_saturated(module.inside_ns, inside_ns);
      waiting.push_back(range);
    }
    tied_.clear();
  }

  void take_work(const Event& event, const Dictionary& dictionary) {
    any_work_ = true;
    Module& module = tree_[tree_.of(event.scope, dictionary)];
    ++module.work;
    const std::int64_t ns = event.untimed() ? 0 : distance_saturated(event.start_ns, event.end_ns);
    if (!event.untimed()) ++module.timed_work;
    module.device_ns = add_saturated(module.device_ns, ns);
    if (event.kind == Kind::kKernel) ++module.kernels;
    if (settings_.find.empty()) return;
    KernelSums& sums = by_kernel_[{tree_.of(event.scope, dictionary), event.name.value}];
    ++sums.calls;
    if (event.untimed()) return;
    ++sums.timed;
    sums.ns = add_saturated(sums.ns, ns);
  }

  // Where the ranges do not say it, the frame of the function `forward` that lies in a module does.
  void find_sources(const Dictionary& dictionary) {
    constexpr std::string_view kForward = "): forward";
    for (std::uint32_t i = 1; i < dictionary.frame_count(); ++i) {
      const Frame frame = dictionary.frame(FrameId{i});
      if (frame.domain != ScopeDomain::kPython || !frame.parent) continue;
      const std::string_view name = dictionary.text(frame.name);
      if (!name.ends_with(kForward)) continue;
      const std::uint32_t at = tree_.of(frame.parent, dictionary);
      if (at == ModuleTree::kOutside || !tree_[at].source.empty()) continue;
      const std::string_view place = name.substr(0, name.size() - kForward.size());
      const std::size_t open = place.rfind('(');
      if (open == std::string_view::npos) continue;
      tree_[at].source = fmt::format("{}:{}", place.substr(0, open), place.substr(open + 1));
    }
  }

  void add_up() {
    sums_.resize(tree_.count());
    // A child is always younger than its parent.
    for (std::uint32_t i = tree_.count(); i-- > 0;) {
      Sums& sums = sums_[i];
      const Module& module = tree_[i];
      sums.device_ns = add_saturated(sums.device_ns, module.device_ns);
      sums.work += module.work;
      sums.timed_work += module.timed_work;
      sums.kernels += module.kernels;
      all_ns_ = add_saturated(all_ns_, module.device_ns);
      if (i == ModuleTree::kOutside || module.parent == ModuleTree::kOutside) continue;
      Sums& above = sums_[module.parent];
      above.device_ns = add_saturated(above.device_ns, sums.device_ns);
      above.work += sums.work;
      above.timed_work += sums.timed_work;
      above.kernels += sums.kernels;
    }
    for (std::uint32_t i = 0; i < tree_.count(); ++i) {
      std::ranges::stable_sort(tree_[i].children, [&](std::uint32_t a, std::uint32_t b) {
        const Module &first = tree_[a], &second = tree_[b];
        if ((first.timed > 0) != (second.timed > 0)) return first.timed > 0;
        return first.timed > 0 && first.first_ns < second.first_ns;
      });
    }
  }

  void find_names(const Dictionary& dictionary) {
    if (settings_.find.empty()) return;
    for (std::uint32_t i = 1; i < tree_.count(); ++i) {
      if (has_parts(name_of(i, dictionary), settings_.find)) found_.insert(tree_[i].name.value);
    }
  }

  // In the order of the tree: of siblings the one that ran first.
  std::vector<std::uint32_t> rows() const {
    std::vector<std::uint32_t> result;
    struct Step {
      std::uint32_t module;
      bool wanted;
    };
    std::vector<Step> steps{{ModuleTree::kOutside, settings_.find.empty()}};
    while (!steps.empty()) {
      const Step step = steps.back();
      steps.pop_back();
      const Module& module = tree_[step.module];
      if (step.module != ModuleTree::kOutside && step.wanted &&
          (settings_.depth == 0 || module.depth < settings_.depth)) {
        result.push_back(step.module);
      }
      for (std::size_t i = module.children.size(); i-- > 0;) {
        const std::uint32_t child = module.children[i];
        steps.push_back({child, step.wanted || is_found(child)});
      }
    }
    return result;
  }

  bool is_found(std::uint32_t module) const { return found_.contains(tree_[module].name.value); }

  std::string_view name_of(std::uint32_t module, const Dictionary& dictionary) const {
    return without_prefix(dictionary.text(tree_[module].name));
  }

  Cell device(std::int64_t ns, std::int64_t work, std::int64_t timed) const {
    // Nothing took no time; work that is all without times took an unknown time.
    if (!any_work_ || (work > 0 && timed == 0)) return {};
    return ns;
  }

  std::vector<Cell> row(std::uint32_t at, const Dictionary& dictionary) const {
    const Module& module = tree_[at];
    const Sums& sums = sums_[at];
    std::vector<Cell> cells(11);
    cells[0] = std::string(name_of(at, dictionary));
    cells[1] = std::int64_t{module.depth};
    if (module.calls > 0) cells[2] = module.calls;
    if (module.timed > 0) {
      cells[3] = module.host_ns;
      cells[4] = std::max<std::int64_t>(module.host_ns - module.inside_ns, 0);
    }
    cells[5] = device(sums.device_ns, sums.work, sums.timed_work);
    cells[6] = device(module.device_ns, module.work, module.timed_work);
    if (all_ns_ > 0) {
      cells[7] = static_cast<double>(sums.device_ns) / static_cast<double>(all_ns_);
    }
    if (any_work_) cells[8] = sums.kernels;
    if (any_work_ && module.calls > 0) {
      cells[9] = static_cast<double>(sums.kernels) / static_cast<double>(module.calls);
    }
    if (!module.source.empty()) cells[10] = module.source;
    return cells;
  }

  Table table(const std::vector<std::uint32_t>& shown, const Dictionary& dictionary) const {
    Table table{.id = "layers",
                .title = "Modules, in the order in which they first ran",
                .columns = {{"module"},
                            {"depth", Unit::kCount},
                            {"calls", Unit::kCount},
                            {"host_total", Unit::kNanoseconds},
                            {"host_self", Unit::kNanoseconds},
                            {"device_total", Unit::kNanoseconds},
                            {"device_self", Unit::kNanoseconds},
                            {"share", Unit::kShare},
                            {"kernels", Unit::kCount},
                            {"kernels_per_call"},
                            {"source"}},
                .rows = {}};
    for (const std::uint32_t at : shown) table.rows.push_back(row(at, dictionary));
    const Module& outside = tree_[ModuleTree::kOutside];
    if (settings_.find.empty() && outside.work > 0) {
      std::vector<Cell> cells(11);
      cells[0] = std::string(kOutsideName);
      cells[1] = std::int64_t{0};
      cells[5] = cells[6] = device(outside.device_ns, outside.work, outside.timed_work);
      if (all_ns_ > 0) {
        cells[7] = static_cast<double>(outside.device_ns) / static_cast<double>(all_ns_);
      }
      cells[8] = outside.kernels;
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

  // Of what was found and all that is in it.
  Table kernels(const Dictionary& dictionary) const {
    Table table{
        .id = "kernels",
        .title = fmt::format("Device work of {}", settings_.find),
        .columns = {{"name"}, {"module"}, {"calls", Unit::kCount}, {"total", Unit::kNanoseconds}},
        .rows = {}};
    struct Row {
      std::string name;
      std::uint32_t module;
      KernelSums sums;
    };
    std::vector<Row> found;
    for (const auto& [key, sums] : by_kernel_) {
      bool wanted = false;
      for (std::uint32_t at = key.first; at != ModuleTree::kOutside; at = tree_[at].parent) {
        wanted = wanted || is_found(at);
      }
      if (!wanted) continue;
      found.push_back({demangle(dictionary.text(StringId{key.second})), key.first, sums});
    }
    std::ranges::stable_sort(found, [&](const Row& a, const Row& b) {
      if (a.sums.ns != b.sums.ns) return a.sums.ns > b.sums.ns;
      if (a.name != b.name) return a.name < b.name;
      return name_of(a.module, dictionary) < name_of(b.module, dictionary);
    });
    for (Row& row : found) {
      Cell total;
      if (row.sums.timed > 0) total = row.sums.ns;
      table.rows.push_back({std::move(row.name), std::string(name_of(row.module, dictionary)),
                            row.sums.calls, std::move(total)});
    }
    return table;
  }

  TreeNode node(std::uint32_t at, const Dictionary& dictionary) const {
    const Module& module = tree_[at];
    TreeNode result{.name = std::string(name_of(at, dictionary)), .value = 0, .children = {}};
    result.value = static_cast<double>(any_work_ ? sums_[at].device_ns : module.host_ns);
    const bool deeper = at == ModuleTree::kOutside ||
                        (module.depth + 1 < kDeepest &&
                         (settings_.depth == 0 || module.depth + 1 < settings_.depth));
    if (deeper) {
      for (const std::uint32_t child : module.children) {
        result.children.push_back(node(child, dictionary));
      }
    }
    if (at == ModuleTree::kOutside) {
      const double outside = result.value;
      result.value = 0;
      if (any_work_ && outside > 0) {
        result.children.push_back({.name = kOutsideName, .value = outside, .children = {}});
      }
      for (const TreeNode& child : result.children) result.value += child.value;
    }
    return result;
  }

  struct Range {
    LaneId lane;
    std::uint32_t module;
    std::int64_t start_ns, end_ns;
  };
  struct KernelSums {
    std::int64_t calls = 0, timed = 0, ns = 0;
  };
  Settings settings_;
  ModuleTree tree_;
  std::vector<Range> tied_;  // that end together
  std::unordered_map<std::uint32_t, std::vector<Range>>
      waiting_;  // by lane: ended, in no other yet
  std::map<std::pair<std::uint32_t, std::uint32_t>, KernelSums> by_kernel_;  // by module and name
  std::unordered_set<std::uint32_t> found_;                                  // names
  std::vector<Sums> sums_;  // by module; of the first only what lies in no module
  std::int64_t all_ns_ = 0;
  bool any_work_ = false;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto depth = options.integer("depth");
  if (!depth) return tl::unexpected<Error>(depth.error());
  if (*depth < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option layers.depth cannot be {}; give 0 or more", *depth));
  }
  const std::string_view scopes = options.text("scopes");
  return std::make_unique<Layers>(
      Settings{.domain = scopes == "annotation" ? ScopeDomain::kAnnotation
                         : scopes == "python"   ? ScopeDomain::kPython
                                                : ScopeDomain::kModule,
               .find = std::string(options.text("find")),
               .depth = static_cast<std::uint32_t>(std::min<std::int64_t>(*depth, kDeepest))});
}

}  // namespace

constinit const ToolEntry kLayers = {
    .name = "layers",
    .help = "the modules of a model: device and host time, kernels, and where their code is",
    .needs = Kind::kScope,
    .options = kOptions,
    .make = make,
    .also = kDeviceWork};

}  // namespace pasta::tools
