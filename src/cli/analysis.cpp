#include "cli/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"

namespace pasta::cli {
namespace {

using ToolOptions = std::vector<std::pair<std::string, std::string>>;

struct Chosen {
  const ToolEntry* entry;
  ToolOptions given;
};

Result<std::vector<Chosen>> choose_tools(const Settings& settings, const plugins::ToolList& tools,
                                         std::span<const std::string_view> defaults) {
  std::vector<std::string> names = settings.tools;
  if (names.empty()) {
    names.assign(defaults.begin(), defaults.end());
    // Who names a plug-in wants what it brings.
    const auto entries = tools.entries();
    for (std::size_t i = builtin_tools().size(); i < entries.size(); ++i) {
      names.emplace_back(entries[i]->name);
    }
  }
  std::vector<Chosen> chosen;
  for (const std::string& name : names) {
    auto entry = find_tool(tools, name);
    if (!entry) return tl::unexpected(std::move(entry).error());
    if (std::ranges::find(chosen, *entry, &Chosen::entry) == chosen.end()) {
      chosen.push_back({*entry, {}});
    }
  }
  return chosen;
}

bool has_option(const ToolEntry& entry, std::string_view name) {
  return std::ranges::find(entry.options, name, &OptionInfo::name) != entry.options.end();
}

// Gives each --opt to the tools it is for.
Status hand_out(const std::vector<std::string>& options, std::vector<Chosen>& chosen) {
  std::vector<std::string_view> tool_names;
  std::vector<std::string> known;
  for (const Chosen& tool : chosen) {
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
    for (Chosen& tool : chosen) {
      // An option of a named tool is given to it in any case: it knows best what is wrong with it.
      if (only.empty() ? !has_option(*tool.entry, name) : tool.entry->name != only) continue;
      tool.given.emplace_back(name, value);
      taken = true;
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

}  // namespace

const OptionRow kToolRow = {
    "-t,--tool",
    "PASTA_TOOL",
    "NAME",
    "Which analyses to run (default: summary,idle,kernels); see pastaprof tools",
    &Settings::tools,
    {},
    true,
    false,
    tool_names};
const OptionRow kOptRow = {"--opt", "PASTA_OPT", "[TOOL.]NAME=VALUE",
                           "Set an option of a tool; see pastaprof tools NAME",
                           &Settings::tool_options};

Result<Analysis> Analysis::make(const Settings& settings,
                                std::span<const std::string_view> defaults) {
  auto known = tools_of(settings);
  if (!known) return tl::unexpected(std::move(known).error());
  auto chosen = choose_tools(settings, *known, defaults);
  if (!chosen) return tl::unexpected(std::move(chosen).error());
  PASTA_TRY(hand_out(settings.tool_options, *chosen));
  Analysis analysis(std::move(*known), !settings.tools.empty());
  for (const Chosen& choice : *chosen) {
    auto options = Options::parse(choice.entry->name, choice.entry->options, choice.given);
    if (!options) return tl::unexpected(std::move(options).error());
    auto tool = choice.entry->make(*options);
    if (!tool) return tl::unexpected(std::move(tool).error());
    analysis.tools_.emplace_back(choice.entry, std::move(*tool));
  }
  return analysis;
}

void Analysis::add_to(Session& session, KindSet provided) {
  for (auto& [entry, tool] : tools_) {
    // Only what was asked for by name is refused when it cannot be had.
    if (!by_name_ && !provided.contains(entry->needs)) {
      say(fmt::format("left out tool {}: the trace's format cannot give what it needs",
                      entry->name));
      continue;
    }
    session.add(*entry, std::move(tool));
  }
}

}  // namespace pasta::cli
