#include "tools/operators/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "stats/id_set.h"
#include "tools/common/memo.h"
#include "tools/common/saturate.h"
#include "tools/operators/call_chains.h"
#include "tools/operators/host_calls.h"
#include "tools/operators/path_tree.h"
#include "tools/operators/rows.h"
#include "tools/operators/scopes.h"

namespace pasta::tools {
namespace {

using namespace operators;

// The values of the option `scopes`, in the order of all_scopes().
constexpr std::string_view kScopeChoices[] = {"operator", "module", "python", "annotation", "all"};
constexpr std::string_view kGroupings[] = {"name", "shape", "module", "line"};
constexpr OptionInfo kOptions[] = {
    {"scopes", "which ranges of the host make rows", "operator", kScopeChoices},
    {"group",
     "what makes one row: the name, or the name and the shapes of the inputs; module and line are "
     "scopes=module and scopes=python",
     "name", kGroupings},
    {"min_share",
     "paths of the tree below this share of the device time are one, (other)",
     "0.1%",
     {}},
    {"depth", "levels of the tree; 0 is all", "0", {}},
};
// A tree deeper than this is of use to nobody, and a danger for who walks it.
constexpr std::uint32_t kDeepest = 200;

struct Settings {
  const Scopes* scopes;
  bool by_shape;
  double min_share;
  std::size_t depth;
};

// Device work of one place.
struct DeviceWork {
  std::int64_t ns = 0;
  std::int64_t number = 0;
  std::int64_t timed = 0;
  std::int64_t kernels = 0;
  std::int64_t launches = 0;

  void add(const DeviceWork& other) {
    ns = add_saturated(ns, other.ns);
    number += other.number;
    timed += other.timed;
    kernels += other.kernels;
    launches += other.launches;
  }
  // Nothing took no time; work that is all without times took an unknown time.
  [[nodiscard]] Number time() const { return timed > 0 || number == 0 ? Number(ns) : Number(); }
};

// What is known of one row while it is added up.
struct Sums {
  StringId name;
  std::uint32_t shape = 0;
  std::int64_t calls = 0;
  std::int64_t timed = 0;
  std::int64_t host_total = 0;
  std::int64_t host_self = 0;
  bool has_path = false;  // else device work cannot be told to be under it
  bool unclear = false;   // some of that work may be of its backward pass, or not
  DeviceWork total, self, backward;
  std::size_t seen_by = 0;  // the place whose work was added last
};

// The value of "Input Dims" in a JSON object of arguments, or "".
std::string_view shape_in(std::string_view arguments) {
  constexpr std::string_view kKey = "\"Input Dims\":";
  const std::size_t key = arguments.find(kKey);
  if (key == std::string_view::npos) return {};
  const std::string_view value = arguments.substr(key + kKey.size());
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    in_string = c == '"';
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth < 0 || (depth == 0 && c == ',')) return value.substr(0, i);
  }
  return {};
}

class Operators : public Tool {
 public:
  explicit Operators(const Settings& settings) : settings_(settings) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (event.kind == Kind::kScope || event.kind == Kind::kApi) {
        if (!on_host(event, dictionary)) continue;
        if (event.untimed()) {
          if (event.kind == Kind::kScope && settings_.scopes->has(domain_of(event))) {
            calls_.add_untimed(calls_.site(event, shape_of(event, dictionary), dictionary));
          }
          continue;
        }
        if (!tied_.empty() && tied_.front().end_ns != event.end_ns) settle(dictionary);
        tied_.push_back(event);
      } else {
        add_work(event);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    settle(dictionary);
    if (settings_.by_shape) {
      chains_.close();
      spread_by_chains(dictionary);
    } else {
      spread_by_paths(dictionary);
    }
    add_host_times(dictionary);
    saw_work_ = std::ranges::any_of(work_, [](const DeviceWork& work) { return work.number > 0; });

    std::vector<Row> rows;
    rows.reserve(sums_.size() + 1);
    for (const Sums& sums : sums_) rows.push_back(row_of(sums, dictionary));
    if (outside_.number > 0) {
      rows.push_back({.name = std::string(settings_.scopes->outside),
                      .shape = {},
                      .calls = {},
                      .host_total = {},
                      .host_self = {},
                      .device_total = outside_.time(),
                      .device_self = outside_.time(),
                      .device_backward = settings_.by_shape ? Number() : Number(0),
                      .kernels = outside_.kernels,
                      .launches = outside_.launches});
    }
    return make_report(std::move(rows), *settings_.scopes, settings_.by_shape, tree(dictionary));
  }

 private:
  struct ShapedWork {
    std::uint64_t correlation;
    std::int64_t ns;
    FrameId scope;
    bool timed, kernel, launches;
  };

  static ScopeDomain domain_of(const Event& event) {
    return static_cast<ScopeDomain>(event.detail);
  }

  // Whether a host event can hold others or, of calls, launch work.
  bool on_host(const Event& event, const Dictionary& dictionary) {
    if ((event.flags & (kAnnotation | kInstant)) != 0) return false;
    if (event.kind == Kind::kApi) {
      if (!settings_.by_shape || event.correlation == 0) return false;
    } else if (domain_of(event) == ScopeDomain::kIteration) {
      return false;
    }
    return is_thread_.get(event.lane,
                          [&] { return dictionary.lane(event.lane).type == LaneType::kThread; });
  }

  void add_work(const Event& event) {
    const bool first = (event.flags & kLinked) != 0 && event.correlation != 0 &&
                       launches_.insert(event.correlation);
    const std::int64_t ns = event.untimed() ? 0 : distance_saturated(event.start_ns, event.end_ns);
    if (event.scope.value >= work_.size()) work_.resize(std::size_t{event.scope.value} + 1);
    work_[event.scope.value].add({.ns = ns,
                                  .number = 1,
                                  .timed = event.untimed() ? 0 : 1,
                                  .kernels = event.kind == Kind::kKernel ? 1 : 0,
                                  .launches = first ? 1 : 0});
    if (!settings_.by_shape) return;
    shaped_.push_back({.correlation = event.correlation,
                       .ns = ns,
                       .scope = event.scope,
                       .timed = !event.untimed(),
                       .kernel = event.kind == Kind::kKernel,
                       .launches = first});
  }

  // Host events that end together come in any order: gives the inner ones first. Of equal ranges
  // the inner one lies deeper in the tree.
  void settle(const Dictionary& dictionary) {
    if (tied_.size() > 1) {
      const auto depth = [&](const Event& event) {
        std::uint32_t levels = event.kind == Kind::kApi ? 1 : 0;
        for (FrameId id = event.scope; id; id = dictionary.frame(id).parent) ++levels;
        return levels;
      };
      std::ranges::stable_sort(tied_, [&](const Event& a, const Event& b) {
        if (a.lane != b.lane) return a.lane.value < b.lane.value;
        if (a.start_ns != b.start_ns) return a.start_ns > b.start_ns;
        return depth(a) > depth(b);
      });
    }
    for (const Event& event : tied_) add_host(event, dictionary);
    tied_.clear();
  }

  void add_host(const Event& event, const Dictionary& dictionary) {
    if (event.kind == Kind::kApi) {
      chains_.launch(event.lane, event.start_ns, event.correlation);
      return;
    }
    const bool counted = settings_.scopes->has(domain_of(event));
    const std::uint32_t shape = counted ? shape_of(event, dictionary) : 0;
    const std::uint32_t site = calls_.site(event, shape, dictionary);
    calls_.note_nesting(site, event);
    if (!counted) return;
    calls_.add_counted(site, event);
    // A range without duration holds nothing.
    if (settings_.by_shape && event.end_ns > event.start_ns) {
      chains_.call(event.lane, event.start_ns, row_called(event.name, shape));
    }
  }

  // A number for each distinct shape; 0 where the source does not say.
  std::uint32_t shape_of(const Event& event, const Dictionary& dictionary) {
    if (!settings_.by_shape || !event.range.arguments) return 0;
    return shape_of_arguments_.get(event.range.arguments, [&] {
      const std::string_view shape = shape_in(dictionary.text(event.range.arguments));
      if (shape.empty()) return std::uint32_t{0};
      const auto next = static_cast<std::uint32_t>(shapes_.size());
      const auto [known, is_new] = shape_numbers_.try_emplace(std::string(shape), next);
      if (is_new) shapes_.emplace_back(shape);
      return known->second;
    });
  }

  std::uint32_t row_called(StringId name, std::uint32_t shape) {
    const std::uint64_t key = std::uint64_t{name.value} << 32 | shape;
    const auto [known, is_new] =
        row_numbers_.try_emplace(key, static_cast<std::uint32_t>(sums_.size()));
    if (is_new) {
      Sums& sums = sums_.emplace_back();
      sums.name = name;
      sums.shape = shape;
    }
    return known->second;
  }

  // Adds the work of each path to the operators on it: to the innermost its own, to each the total
  // once. What lies above a backward operator launched it only by way of the backward pass.
  void spread_by_paths(const Dictionary& dictionary) {
    for (std::uint32_t id = 0; id < work_.size(); ++id) {
      const DeviceWork& work = work_[id];
      if (work.number == 0) continue;
      auto nesting = HostCalls::Nesting::kInside;
      bool innermost = true;
      for (FrameId at{id}; at;) {
        const Frame frame = dictionary.frame(at);
        if (settings_.scopes->has(frame.domain)) {
          Sums& sums = sums_[row_called(frame.name, 0)];
          sums.has_path = true;
          if (innermost) sums.self.add(work);
          if (sums.seen_by != std::size_t{id} + 1) {
            sums.seen_by = std::size_t{id} + 1;
            sums.unclear |= nesting == HostCalls::Nesting::kUnknown;
            (nesting == HostCalls::Nesting::kInside ? sums.total : sums.backward).add(work);
          }
          innermost = false;
        }
        if (frame.parent && nesting == HostCalls::Nesting::kInside) {
          nesting = calls_.nesting(at, frame.parent);
        }
        at = frame.parent;
      }
      if (innermost) outside_.add(work);
    }
  }

  // The same by shape. A path has no shapes, so the calls around the launch say them; where they
  // are not known or are others than the path says, the shape is unknown.
  void spread_by_chains(const Dictionary& dictionary) {
    std::size_t number = 0;
    for (const ShapedWork& item : shaped_) {
      const DeviceWork work{.ns = item.ns,
                            .number = 1,
                            .timed = item.timed ? 1 : 0,
                            .kernels = item.kernel ? 1 : 0,
                            .launches = item.launches ? 1 : 0};
      const StringId innermost = innermost_on(item.scope, dictionary);
      if (!innermost) {
        outside_.add(work);
        continue;
      }
      std::vector<std::uint32_t> rows = chains_.rows(chains_.chain_of(item.correlation));
      if (rows.empty() || sums_[rows.back()].name != innermost) rows = {row_called(innermost, 0)};
      sums_[rows.back()].self.add(work);
      ++number;
      for (const std::uint32_t row : rows) {
        Sums& sums = sums_[row];
        sums.has_path = true;
        if (sums.seen_by == number) continue;
        sums.seen_by = number;
        sums.total.add(work);
      }
    }
  }

  StringId innermost_on(FrameId scope, const Dictionary& dictionary) const {
    for (FrameId at = scope; at;) {
      const Frame frame = dictionary.frame(at);
      if (settings_.scopes->has(frame.domain)) return frame.name;
      at = frame.parent;
    }
    return {};
  }

  void add_host_times(const Dictionary& dictionary) {
    for (const Site& site : calls_.sites()) {
      if (!settings_.scopes->has(site.domain)) continue;
      Sums& sums = sums_[row_called(site.name, site.shape)];
      sums.calls += site.calls;
      sums.timed += site.timed;
      sums.host_self = add_saturated(sums.host_self, site.self_ns);
      sums.has_path |= static_cast<bool>(site.frame);
      if (!inside_its_own(site, dictionary)) {
        sums.host_total = add_saturated(sums.host_total, site.total_ns);
      }
    }
  }

  // Whether the calls of a site run inside calls of the same name.
  bool inside_its_own(const Site& site, const Dictionary& dictionary) const {
    constexpr auto kElsewhere = HostCalls::Nesting::kElsewhere;
    if (site.frame && calls_.nesting(site.frame, site.scope) == kElsewhere) return false;
    for (FrameId at = site.scope; at;) {
      const Frame frame = dictionary.frame(at);
      if (frame.name == site.name && settings_.scopes->has(frame.domain) && calls_.seen(at)) {
        return true;
      }
      if (calls_.nesting(at, frame.parent) == kElsewhere) return false;
      at = frame.parent;
    }
    return false;
  }

  Row row_of(const Sums& sums, const Dictionary& dictionary) const {
    const auto known = [](bool is_known, std::int64_t value) {
      return is_known ? Number(value) : Number();
    };
    // Where no device was watched, nobody knows what was launched.
    const bool work_is_known = saw_work_ && sums.has_path;
    const auto device = [&](bool is_known, const DeviceWork& work) {
      return is_known && work_is_known ? work.time() : Number();
    };
    return {.name = std::string(dictionary.text(sums.name)),
            .shape = sums.shape == 0 ? std::nullopt : std::optional(shapes_[sums.shape]),
            .calls = sums.calls,
            .host_total = known(sums.timed > 0, sums.host_total),
            .host_self = known(sums.timed > 0, sums.host_self),
            .device_total = device(!sums.unclear, sums.total),
            .device_self = device(true, sums.self),
            .device_backward = device(!sums.unclear && !settings_.by_shape, sums.backward),
            .kernels = known(work_is_known, sums.self.kernels),
            .launches = known(work_is_known, sums.self.launches)};
  }

  // Device time by path, of the chosen ranges only; none when no work has a time.
  std::optional<TreeNode> tree(const Dictionary& dictionary) const {
    struct Node {
      std::uint32_t parent;
      std::uint32_t depth;
      StringId name;
      std::int64_t ns = 0;
    };
    std::vector<Node> nodes = {{.parent = 0, .depth = 0, .name = {}}};
    std::map<std::pair<std::uint32_t, StringId>, std::uint32_t> known;
    // A parent's id is less than its children's: its node is there before theirs.
    std::vector<std::uint32_t> node_of_frame(std::max<std::size_t>(work_.size(), 1), 0);
    std::int64_t total = 0;
    for (std::uint32_t id = 1; id < work_.size(); ++id) {
      const Frame frame = dictionary.frame({id});
      std::uint32_t node = node_of_frame[frame.parent.value];
      if (settings_.scopes->has(frame.domain) && nodes[node].depth < kDeepest) {
        const auto [place, is_new] =
            known.try_emplace({node, frame.name}, static_cast<std::uint32_t>(nodes.size()));
        if (is_new) {
          nodes.push_back({.parent = node, .depth = nodes[node].depth + 1, .name = frame.name});
        }
        node = place->second;
      }
      node_of_frame[id] = node;
    }
    for (std::uint32_t id = 0; id < work_.size(); ++id) {
      total = add_saturated(total, work_[id].ns);
      std::int64_t& ns = nodes[node_of_frame[id]].ns;
      ns = add_saturated(ns, work_[id].ns);
    }
    if (total == 0) return std::nullopt;
    const std::int64_t outside = nodes[0].ns;
    std::vector<TreeNode> trees(nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      TreeNode& tree = trees[i];
      tree.name = dictionary.text(nodes[i].name);
      tree.value += static_cast<double>(nodes[i].ns);
      if (i == 0) break;
      if (tree.value == 0) continue;
      TreeNode& parent = trees[nodes[i].parent];
      parent.value += tree.value;
      parent.children.push_back(std::move(tree));
    }
    TreeNode root = std::move(trees[0]);
    root.name = "device time";
    if (outside > 0) {
      root.children.push_back({.name = std::string(settings_.scopes->outside),
                               .value = static_cast<double>(outside),
                               .children = {}});
    }
    prune(root, settings_.min_share, settings_.depth);
    return root;
  }

  Settings settings_;
  HostCalls calls_;
  std::vector<Event> tied_;       // host events of the latest end time
  std::vector<DeviceWork> work_;  // by the path of its launch
  DeviceWork outside_;
  bool saw_work_ = false;  // of any device; known at the end
  stats::IdSet launches_;
  Memo<LaneId, bool> is_thread_;
  std::vector<Sums> sums_;
  std::unordered_map<std::uint64_t, std::uint32_t> row_numbers_;  // by name and shape
  // Only by shape:
  CallChains chains_;
  std::vector<ShapedWork> shaped_;
  Memo<StringId, std::uint32_t> shape_of_arguments_;
  std::unordered_map<std::string, std::uint32_t> shape_numbers_;
  std::vector<std::string> shapes_ = {""};
};

// "0.1%" or "0.001".
std::optional<double> share_from(std::string_view text) {
  double scale = 1;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    scale = 100;
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  value /= scale;
  return value >= 0 && value <= 1 ? std::optional(value) : std::nullopt;
}

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto depth = options.integer("depth");
  if (!depth) return tl::unexpected<Error>(depth.error());
  if (*depth < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option operators.depth cannot be {}; give 0 or more", *depth));
  }
  const auto min_share = share_from(options.text("min_share"));
  if (!min_share) {
    return fail(ErrorCode::kUsage,
                fmt::format("option operators.min_share cannot be \"{}\"; give a share such as "
                            "0.1% or 0.001",
                            options.text("min_share")));
  }
  const std::string_view grouping = options.text("group");
  const auto scopes = std::ranges::find(all_scopes(),
                                        grouping == "module" ? "module"
                                        : grouping == "line" ? "python"
                                                             : options.text("scopes"),
                                        &Scopes::id);
  return std::make_unique<Operators>(Settings{.scopes = &*scopes,
                                              .by_shape = grouping == "shape",
                                              .min_share = *min_share,
                                              .depth = static_cast<std::size_t>(*depth)});
}

}  // namespace

constinit const ToolEntry kOperators = {
    .name = "operators",
    .help =
        "which host operators ran how long, and what device time they and their backward "
        "pass caused; a tree of call paths",
    .needs = Kind::kKernel | Kind::kScope,
    .options = kOptions,
    .make = make,
    .join = operators::join,
    .also = kDeviceWork | Kind::kApi};

}  // namespace pasta::tools
