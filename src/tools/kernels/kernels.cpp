#include "tools/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "stats/quantiles.h"
#include "tools/common/demangle.h"
#include "tools/common/kernel_class.h"
#include "tools/common/memo.h"
#include "tools/common/ratio.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/common/user_frame.h"
#include "tools/kernels/join.h"

namespace pasta::tools {
namespace {

constexpr std::string_view kGroupings[] = {"name", "short", "class", "operator", "module", "line"};
constexpr OptionInfo kOptions[] = {
    {"group",
     "what makes one row: the full name, the name without types, the class, or the operator, "
     "module "
     "or line of the program that launched it",
     "name", kGroupings},
    {"top", "keep only the first N rows; 0 keeps all", "0", {}},
};
// A grouping by what was open around the launch.
struct Around {
  std::string_view grouping;
  ScopeDomain domain;
  std::string_view outside;
};
constexpr Around kArounds[] = {{"operator", ScopeDomain::kOperator, "(outside operators)"},
                               {"module", ScopeDomain::kModule, "(outside modules)"},
                               {"line", ScopeDomain::kPython, "(no line known)"}};

// The kernels of one row.
struct Group {
  std::string name;  // as shown
  std::string raw;   // breaks ties between names that look alike
  KernelClass type{};
  bool mixed = false;  // of several classes
  std::int64_t calls = 0;
  stats::Quantiles times;
};

struct Name {
  KernelClass type;
  std::size_t group;  // meaningless when the grouping does not go by name
};

class Kernels : public Tool {
 public:
  Kernels(std::string_view grouping, std::size_t top) : grouping_(grouping), top_(top) {
    const auto* around = std::ranges::find(kArounds, grouping, &Around::grouping);
    if (around != std::end(kArounds)) around_ = around;
  }

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      const Name& name =
          names_.get(event.name, [&] { return name_of(dictionary.text(event.name)); });
      Group& group =
          groups_[around_ != nullptr ? group_of_path(event.scope, dictionary) : name.group];
      if (group.calls == 0) group.type = name.type;
      group.mixed |= group.type != name.type;
      ++group.calls;
      if (!event.untimed()) group.times.add(distance_saturated(event.start_ns, event.end_ns));
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    std::ranges::sort(groups_, [](const Group& a, const Group& b) {
      return std::tuple(b.times.sum(), std::string_view(a.name), std::string_view(a.raw)) <
             std::tuple(a.times.sum(), std::string_view(b.name), std::string_view(b.raw));
    });
    std::int64_t total = 0;
    for (const Group& group : groups_) total = add_saturated(total, group.times.sum());

    Report report{.tool = "kernels", .title = "Kernels", .parts = {}};
    if (groups_.empty())
      report.parts.emplace_back(info("no-kernels", "no kernel ran in this trace"));
    Table table{.id = "kernels",
                .title = "Kernels by total time",
                .columns = {{"name"},
                            {"calls", Unit::kCount},
                            {"total", Unit::kNanoseconds},
                            {"share", Unit::kShare},
                            {"mean", Unit::kNanoseconds},
                            {"median", Unit::kNanoseconds},
                            {"p95", Unit::kNanoseconds},
                            {"min", Unit::kNanoseconds},
                            {"max", Unit::kNanoseconds},
                            {"class"}},
                .rows = {}};
    const std::size_t kept = top_ == 0 ? groups_.size() : std::min(top_, groups_.size());
    std::int64_t kept_ns = 0;
    for (Group& group : std::span(groups_).first(kept)) {
      kept_ns = add_saturated(kept_ns, group.times.sum());
      table.rows.push_back(row_of(group, total));
    }
    report.parts.emplace_back(std::move(table));
    if (kept < groups_.size()) {
      Finding left_out = info("rows-left-out", fmt::format("top={} leaves out {} of {} rows", top_,
                                                           groups_.size() - kept, groups_.size()));
      if (total > 0) {
        left_out.share = ratio(total - kept_ns, total);
        left_out.of = "kernel time";
      }
      report.parts.emplace_back(std::move(left_out));
    }
    return report;
  }

 private:
  static std::vector<Cell> row_of(Group& group, std::int64_t total) {
    stats::Quantiles& times = group.times;
    const auto timed = static_cast<std::int64_t>(times.count());
    std::vector<Cell> row;
    row.reserve(10);
    row.emplace_back(group.name);
    row.emplace_back(group.calls);
    if (timed == 0) {  // times of calls that have none are unknown, not 0
      row.resize(9);
    } else {
      const std::int64_t rest = times.sum() % timed;
      row.emplace_back(times.sum());
      row.push_back(ratio_cell(times.sum(), total));
      row.emplace_back(times.sum() / timed + (rest >= timed - rest ? 1 : 0));
      row.emplace_back(times.quantile(0.5));
      row.emplace_back(times.quantile(0.95));
      row.emplace_back(times.min());
      row.emplace_back(times.max());
    }
    row.emplace_back(std::string(group.mixed ? "mixed" : class_name(group.type)));
    return row;
  }

  Name name_of(std::string_view raw) {
    const KernelClass type = classify_kernel(raw);
    if (grouping_ == "class") return {type, group_called(std::string(class_name(type)))};
    if (grouping_ == "short") return {type, group_called(short_name(demangle(raw)))};
    if (around_ != nullptr) return {type, 0};
    return {type, add_group(demangle(raw), std::string(raw))};
  }

  // The row of the innermost operator, module or line of the user's that was open around the
  // launch.
  std::size_t group_of_path(FrameId scope, const Dictionary& dictionary) {
    return group_of_frame_.get(scope, [&] {
      for (FrameId id = scope; id;) {
        const Frame frame = dictionary.frame(id);
        const std::string_view name = dictionary.text(frame.name);
        if (frame.domain == around_->domain &&
            (frame.domain != ScopeDomain::kPython || is_user_frame(name))) {
          return group_called(std::string(name));
        }
        id = frame.parent;
      }
      return group_called(std::string(around_->outside));
    });
  }

  std::size_t group_called(std::string name) {
    const auto [known, is_new] = group_by_name_.try_emplace(name, groups_.size());
    return is_new ? add_group(std::move(name), {}) : known->second;
  }

  std::size_t add_group(std::string name, std::string raw) {
    Group& group = groups_.emplace_back();
    group.name = std::move(name);
    group.raw = std::move(raw);
    return groups_.size() - 1;
  }

  std::string_view grouping_;       // one of kGroupings
  const Around* around_ = nullptr;  // none: by the kernel itself
  std::size_t top_;
  Memo<StringId, Name> names_;
  Memo<FrameId, std::size_t> group_of_frame_;
  std::unordered_map<std::string, std::size_t> group_by_name_;
  std::vector<Group> groups_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto top = options.integer("top");
  if (!top) return tl::unexpected<Error>(top.error());
  if (*top < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option kernels.top cannot be {}; give 0 or more", *top));
  }
  const auto* grouping = std::ranges::find(kGroupings, options.text("group"));
  return std::make_unique<Kernels>(*grouping, static_cast<std::size_t>(*top));
}

}  // namespace

constinit const ToolEntry kKernels = {
    .name = "kernels",
    .help = "which kernels the time went to: calls, total, mean, quantiles and class of each",
    .needs = Kind::kKernel,
    .options = kOptions,
    .make = make,
    .join = kernels::join};

}  // namespace pasta::tools
