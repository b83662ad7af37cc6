// pastaprof tools: what analyses there are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/console.h"
#include "cli/json_object.h"
#include "cli/options.h"
#include "cli/tool_names.h"
#include "pasta/tool.h"

namespace pasta::cli {
namespace {

constexpr std::array<std::string_view, 4> kFormats = {"text", "table", "json", "markdown"};
const OptionRow kFormatRowOfTools = {"--format",        "PASTA_FORMAT",
                                     "FORMAT",          "text, json or markdown; table is text",
                                     &Settings::format, kFormats};

std::vector<std::string_view> kinds_of(const ToolEntry& entry) {
  std::vector<std::string_view> kinds;
  for (unsigned i = 0; i < kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    if (entry.needs.has(kind)) kinds.push_back(kind_name(kind));
  }
  return kinds;
}

std::string needs_of(const ToolEntry& entry) {
  return entry.needs.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds_of(entry), ", "));
}

std::string as_line(const ToolEntry& entry) {
  return fmt::format("{:<12} {}\n", entry.name, entry.help);
}

std::string as_page(const ToolEntry& entry) {
  std::string page = fmt::format("{}: {}\n\nneeds: {}\n", entry.name, entry.help, needs_of(entry));
  if (entry.options.empty()) return page + "options: none\n";
  page += "options, as --opt NAME=VALUE:\n";
  for (const OptionInfo& option : entry.options) {
    page += fmt::format("  {:<12} {} (default: {}", option.name, option.help,
                        option.fallback.empty() ? "none" : option.fallback);
    if (!option.choices.empty()) page += fmt::format("; {}", fmt::join(option.choices, ", "));
    page += ")\n";
  }
  return page;
}

std::string as_json(const ToolEntry& entry) {
  std::vector<std::string> options;
  for (const OptionInfo& option : entry.options) {
    options.push_back(JsonObject()
                          .text("name", option.name)
                          .text("help", option.help)
                          .text("default", option.fallback)
                          .texts("choices", option.choices)
                          .done());
  }
  return JsonObject()
      .text("name", entry.name)
      .text("help", entry.help)
      .texts("needs", kinds_of(entry))
      .raw("options", fmt::format("[{}]", fmt::join(options, ", ")))
      .done();
}

// Those of plug-ins have no page here.
bool is_builtin(const ToolEntry& entry) {
  const auto builtin = builtin_tools();
  return std::ranges::find(builtin, entry.name, &ToolEntry::name) != builtin.end();
}

// Of docs/tools.md.
std::string as_section(const ToolEntry& entry) {
  std::string section = fmt::format(
      "\n## {}\n\nSays {}.\n\nNeeds {}{}.{}\n", entry.name, entry.help,
      entry.needs.empty() ? "" : "events of kind ", needs_of(entry),
      is_builtin(entry) ? fmt::format(" [All about it](../src/tools/{}/tool.md).", entry.name)
                        : "");
  if (entry.options.empty()) return section;
  section += "\n| option | default | meaning |\n|---|---|---|\n";
  for (const OptionInfo& option : entry.options) {
    section += fmt::format("| `{}` | {} | {}", option.name,
                           option.fallback.empty() ? "none" : fmt::format("`{}`", option.fallback),
                           option.help);
    if (!option.choices.empty()) {
      section += fmt::format(": `{}`", fmt::join(option.choices, "`, `"));
    }
    section += " |\n";
  }
  return section;
}

Result<int> run(const Settings& settings) {
  const auto tools = tools_of(settings);
  if (!tools) return tl::unexpected(tools.error());
  std::vector<const ToolEntry*> entries = tools->entries();
  if (!settings.operands.empty()) {
    auto entry = find_tool(*tools, settings.operands[0]);
    if (!entry) return tl::unexpected(std::move(entry).error());
    entries.assign(1, *entry);
  }
  std::string text;
  if (settings.format == "json") {
    std::vector<std::string> objects;
    for (const ToolEntry* entry : entries) objects.push_back(as_json(*entry));
    text = fmt::format("{{\"tools\": [\n{}\n]}}\n", fmt::join(objects, ",\n"));
  } else if (settings.format == "markdown") {
    text =
        "# Tools\n\nEvery analysis of the program: `pastaprof report TRACE --tool NAME`, with "
        "options "
        "as `--opt NAME=VALUE`.\nThis page is what `pastaprof tools --format markdown` prints.\n";
    for (const ToolEntry* entry : entries) {
      text += as_section(*entry);
    }
  } else if (settings.operands.empty()) {
    for (const ToolEntry* entry : entries) text += as_line(*entry);
  } else {
    text = as_page(*entries[0]);
  }
  PASTA_TRY(print(text));
  return kComplete;
}

}  // namespace

const Verb kTools = {"tools",
                     "What analyses there are, what each needs, and its options",
                     "NAME",
                     "Only this tool, with its options",
                     true,
                     false,
                     {&kFormatRowOfTools, &kPluginRow},
                     run,
                     tool_names};

}  // namespace pasta::cli
