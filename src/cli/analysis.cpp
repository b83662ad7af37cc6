#include "cli/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "cli/console.h"

namespace pasta::cli {
namespace {

using ToolOptions = std::vector<std::pair<std::string, std::string>>;

// Of which traces a usual tool has something to say.
enum class Tells : unsigned char { kOfDevices, kOfHosts, kOfSeveralProcesses };

}  // namespace

struct UsualTool {
  std::string_view name;
  Tells tells;
  // Of the tool, where the user does not give it.
  std::string_view option = {}, value = {};
};

namespace {

// Where the time went, why devices were idle, and which kernels took it; without a device, which
// ranges took it.
constexpr std::array kUsualTools = {
    UsualTool{"processes", Tells::kOfSeveralProcesses}, UsualTool{"summary", Tells::kOfDevices},
    UsualTool{"idle", Tells::kOfDevices}, UsualTool{"kernels", Tells::kOfDevices},
    UsualTool{"operators", Tells::kOfHosts, "scopes", "all"}};

struct Choice {
  const ToolEntry* entry;
  const UsualTool* usual;
  ToolOptions given;
};

Result<std::vector<Choice>> choose_tools(const Settings& settings, const plugins::ToolList& tools) {
  std::vector<Choice> chosen;
  for (const std::string& name : settings.tools) {
    auto entry = find_tool(tools, name);
    if (!entry) return tl::unexpected(std::move(entry).error());
    if (std::ranges::find(chosen, *entry, &Choice::entry) == chosen.end()) {
      chosen.push_back({*entry, nullptr, {}});
    }
  }
  if (!settings.tools.empty()) return chosen;
  for (const UsualTool& usual : kUsualTools) {
    auto entry = find_tool(tools, std::string(usual.name));
    if (!entry) return tl::unexpected(std::move(entry).error());
    chosen.push_back({*entry, &usual, {}});
  }
  // Who names a plug-in wants what it brings.
  const auto entries = tools.entries();
  for (std::size_t i = builtin_tools().size(); i < entries.size(); ++i) {
    chosen.push_back({entries[i], nullptr, {}});
  }
  return chosen;
}

// One that has nothing to say of devices at work. It is not asked as soon as it is known that it
// will not be heard, so that it costs nothing there.
class OfHosts final : public Tool {
 public:
  explicit OfHosts(std::unique_ptr<Tool> tool) : tool_(std::move(tool)) {}
  Status consume(std::span<const Event> events, const Context& context) override {
    heard_ = heard_ && std::ranges::none_of(
                           events, [](const Event& event) { return kDeviceWork.has(event.kind); });
    return heard_ ? tool_->consume(events, context) : Status();
  }
  Result<Report> finish(const Context& context) override { return tool_->finish(context); }

 private:
  std::unique_ptr<Tool> tool_;
  bool heard_ = true;
};

bool has_option(const ToolEntry& entry, std::string_view name) {
  return std::ranges::find(entry.options, name, &OptionInfo::name) != entry.options.end();
}

// Gives each --opt to the tools it is for.
Status hand_out(const std::vector<std::string>& options, std::vector<Choice>& chosen) {
  std::vector<std::string_view> tool_names;
  std::vector<std::string> known;
  for (const Choice& tool : chosen) {
    tool_names.push_back(tool.entry->name);
    for (const OptionInfo& row : tool.entry->options) {
      known.push_back(fmt::format("{}.{}", tool.entry->name, row.name));
    }
  }
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--opt needs [TOOL.]NAME=VALUE, not \"{}\"", option));
    }
    std::string name = option.substr(0, equals);
    const std::string value = option.substr(equals + 1);
    std::string only;
    if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      only = name.substr(0, dot);
      name = name.substr(dot + 1);
      if (std::ranges::find(tool_names, only) == tool_names.end()) {
        return fail(ErrorCode::kUsage,
                    fmt::format("--opt {}: tool {} does not run; the tools are {}", option, only,
                                fmt::join(tool_names, ", ")));
      }
    }
    bool taken = false;
    // Tools that run only in case others have nothing to say come second.
    for (const bool second : {false, true}) {
      for (Choice& tool : chosen) {
        if (taken && second) break;
        const bool spare = tool.usual != nullptr && tool.usual->tells != Tells::kOfDevices;
        if (only.empty() && spare != second) continue;
        // An option of a named tool is given to it in any case: it knows best what is wrong with
        // it.
        if (only.empty() ? !has_option(*tool.entry, name) : tool.entry->name != only) continue;
        tool.given.emplace_back(name, value);
        if (!only.empty()) tool.usual = nullptr;  // who says how it is to answer wants its answer
        taken = true;
      }
    }
    if (taken) continue;
    return fail(
        ErrorCode::kUsage,
        known.empty()
            ? fmt::format("--opt {}: {} have no options", option, fmt::join(tool_names, " and "))
            : fmt::format("--opt {}: no tool that runs has an option {}; there are {}", option,
                          name, fmt::join(known, ", ")));
  }
  return {};
}

// Whether the report of tool `processes` is of at least two of which a run knows how they ended.
bool several_watched(const Report& report) {
  std::size_t watched = 0;
  for (const Part& part : report.parts) {
    const auto* table = std::get_if<Table>(&part);
    if (table == nullptr) continue;
    const auto ended = std::ranges::find(table->columns, "ended", &Column::name);
    for (const auto& row : table->rows) {
      const auto& cell = row[static_cast<std::size_t>(ended - table->columns.begin())];
      watched += std::holds_alternative<std::monostate>(cell) ? 0 : 1;
    }
  }
  return watched > 1;
}

}  // namespace

const OptionRow kToolRow = {
    "-t,--tool",
    "PASTA_TOOL",
    "NAME",
    "Which analyses to run (default: those of processes, summary, idle, kernels and operators that "
    "have something to say); see pastaprof tools",
    &Settings::tools,
    {},
    true,
    false,
    tool_names};
const OptionRow kOptRow = {"--opt", "PASTA_OPT", "[TOOL.]NAME=VALUE",
                           "Set an option of a tool; see pastaprof tools NAME",
                           &Settings::tool_options};

Result<Analysis> Analysis::make(const Settings& settings) {
  auto known = tools_of(settings);
  if (!known) return tl::unexpected(std::move(known).error());
  auto chosen = choose_tools(settings, *known);
  if (!chosen) return tl::unexpected(std::move(chosen).error());
  PASTA_TRY(hand_out(settings.tool_options, *chosen));
  Analysis analysis(std::move(*known));
  for (Choice& choice : *chosen) {
    const UsualTool* usual = choice.usual;
    if (usual != nullptr && !usual->option.empty() &&
        std::ranges::find(choice.given, usual->option, &ToolOptions::value_type::first) ==
            choice.given.end()) {
      choice.given.emplace_back(usual->option, usual->value);
    }
    auto options = Options::parse(choice.entry->name, choice.entry->options, choice.given);
    if (!options) return tl::unexpected(std::move(options).error());
    auto tool = choice.entry->make(*options);
    if (!tool) return tl::unexpected(std::move(tool).error());
    if (usual != nullptr && usual->tells == Tells::kOfHosts) {
      *tool = std::make_unique<OfHosts>(std::move(*tool));
    }
    analysis.tools_.push_back({choice.entry, usual, std::move(*tool)});
  }
  return analysis;
}

void Analysis::add_to(Session& session, KindSet provided) {
  for (Chosen& chosen : tools_) {
    // Only what was asked for by name is refused when it cannot be had.
    if (chosen.usual != nullptr && !provided.contains(chosen.entry->needs)) {
      if (chosen.usual->tells == Tells::kOfDevices) {
        say(fmt::format("left out tool {}: the trace's format cannot give what it needs",
                        chosen.entry->name));
      }
      continue;
    }
    session.add(*chosen.entry, std::move(chosen.tool));
  }
}

std::string Analysis::patches() const {
  std::vector<std::string_view> names;
  for (const Chosen& chosen : tools_) {
    const std::string_view patch = chosen.entry->patch;
    if (!patch.empty() && std::ranges::find(names, patch) == names.end()) names.push_back(patch);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string Analysis::without_patches() const {
  std::vector<std::string_view> names;
  for (const Chosen& chosen : tools_) {
    const bool asked = chosen.usual == nullptr;
    if (asked && chosen.entry->needs.has(Kind::kKernel)) names.push_back(chosen.entry->name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

bool Analysis::wants_samples() const {
  return std::ranges::any_of(tools_, [](const Chosen& chosen) { return chosen.entry->samples; });
}

void Analysis::keep_telling(Document& document) const {
  bool devices = false, hosts = false;
  for (const auto& [kind, count] : document.trace.events) {
    Kind of{};
    if (!kind_from_name(kind, of) || count == 0) continue;
    devices = devices || kDeviceWork.has(of);
    hosts = hosts || of == Kind::kScope;
  }
  // Of a trace of nothing, one says that there is nothing.
  hosts = hosts && !devices;
  std::erase_if(document.reports, [&](const Report& report) {
    const auto chosen =
        std::ranges::find(tools_, report.tool, [](const Chosen& c) { return c.entry->name; });
    if (chosen == tools_.end() || chosen->usual == nullptr) return false;
    switch (chosen->usual->tells) {
      case Tells::kOfDevices:
        return hosts || (!devices && chosen->usual->name != "summary");
      case Tells::kOfHosts:
        return !hosts;
      case Tells::kOfSeveralProcesses:
        return !several_watched(report);
    }
    return false;
  });
}

}  // namespace pasta::cli
