#include "plugins/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "plugins/c_view.h"
#include "report/render.h"

namespace pasta::plugins {
namespace {

struct Closer {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

// A tool of a plug-in, and what its tools need of it.
struct Row {
  std::string plugin;  // its file, for messages
  const pasta_plugin_tool* functions;
  std::vector<OptionInfo> options;
};

ErrorCode error_code(pasta_status status) {
  switch (status) {
    case PASTA_USAGE:
      return ErrorCode::kUsage;
    case PASTA_NOT_FOUND:
      return ErrorCode::kNotFound;
    case PASTA_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    case PASTA_BAD_INPUT:
      return ErrorCode::kBadInput;
    case PASTA_IO:
      return ErrorCode::kIo;
    default:
      return ErrorCode::kVendor;
  }
}

// What a plug-in sees of the session during one call.
class CContext {
 public:
  CContext(const Context& context, const pasta_lookup* lookup,
           std::map<std::uint32_t, std::string>& labels)
      : view_{{sizeof(pasta_context), lookup, device_label, blob, origin_ns}, &context, &labels} {}
  [[nodiscard]] const pasta_context* get() const { return &view_.functions; }

 private:
  // C code gets the address of `functions` and gives it back, so it comes first.
  struct View {
    pasta_context functions;
    const Context* context;
    std::map<std::uint32_t, std::string>* labels;
  };
  static const View& view_of(const pasta_context* context) {
    return *reinterpret_cast<const View*>(context);
  }
  static pasta_text device_label(const pasta_context* context, std::uint32_t device) {
    const View& view = view_of(context);
    const auto known = view.labels->find(device);
    if (known != view.labels->end()) return c_view(known->second);
    if (device >= view.context->dictionary().device_count()) return c_view("");
    std::string& label = (*view.labels)[device];
    label = view.context->device_label(DeviceId{device});
    return c_view(label);
  }
  static pasta_text blob(const pasta_context* context, std::uint32_t id) {
    const auto bytes = view_of(context).context->blob(BlobId{id});
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::int64_t origin_ns(const pasta_context* context) {
    return view_of(context).context->origin_ns();
  }
  View view_;
};

class PluginTool : public Tool {
 public:
  explicit PluginTool(const Row& row) : row_(&row) {}
  ~PluginTool() override {
    if (tool_ != nullptr) row_->functions->destroy(tool_);
  }
  PluginTool(const PluginTool&) = delete;
  PluginTool& operator=(const PluginTool&) = delete;

  Status make(std::span<const pasta_setting> settings) {
    Status made = checked(row_->functions->make(settings.data(), settings.size(), &tool_));
    if (made && tool_ == nullptr) return refusal(ErrorCode::kVendor, "made no tool");
    return made;
  }

  Status consume(std::span<const Event> events, const Context& context) override {
    const CContext view(context, lookup(context), labels_);
    return checked(
        row_->functions->consume(tool_, c_view(events.data()), events.size(), view.get()));
  }

  Result<Report> finish(const Context& context) override {
    const CContext view(context, lookup(context), labels_);
    pasta_text json{nullptr, 0};
    PASTA_TRY(checked(row_->functions->finish(tool_, view.get(), &json)));
    if (json.data == nullptr) return refusal(ErrorCode::kVendor, "gave no report");
    auto report = report::parse_report({json.data, json.size});
    if (!report) return refusal(ErrorCode::kVendor, "gave a bad report: " + report.error().message);
    if (report->tool != row_->functions->name) {
      return refusal(ErrorCode::kVendor, "gave a report of tool \"" + report->tool + "\"");
    }
    return report;
  }

 private:
  // The dictionary is known with the first call only, and does not change.
  const pasta_lookup* lookup(const Context& context) {
    if (!lookup_) lookup_ = std::make_unique<Lookup>(context.dictionary());
    return lookup_->table();
  }
  [[nodiscard]] Status checked(pasta_status status) const {
    if (status == PASTA_OK) return {};
    const char* why = nullptr;
    if (tool_ != nullptr && row_->functions->error != nullptr) {
      why = row_->functions->error(tool_);
    }
    return refusal(error_code(status), why != nullptr && *why != '\0' ? why : "failed");
  }
  [[nodiscard]] tl::unexpected<Error> refusal(ErrorCode code, std::string_view why) const {
    return fail(code, fmt::format("plug-in {}: {}", row_->plugin, why));
  }

  const Row* row_;
  void* tool_ = nullptr;
  std::unique_ptr<Lookup> lookup_;
  std::map<std::uint32_t, std::string> labels_;
};

Result<std::unique_ptr<Tool>> make_tool(const void* holder, const Options& options) {
  const Row& row = *static_cast<const Row*>(holder);
  std::deque<std::string> values;  // settings point into it
  std::vector<pasta_setting> settings;
  for (const OptionInfo& option : row.options) {
    values.emplace_back(options.text(option.name));
    settings.push_back({option.name.data(), values.back().c_str()});
  }
  auto tool = std::make_unique<PluginTool>(row);
  const Status made = tool->make(settings);
  if (made) return tool;
  return fail(made.error().code,
              fmt::format("tool {}: {}", row.functions->name, made.error().message));
}

// What is wrong with a tool's table; "" when nothing is.
std::string_view fault_of(const pasta_plugin_tool* tool) {
  if (tool == nullptr) return "a tool is missing";
  if (!has_member(tool, &pasta_plugin_tool::destroy)) return "a tool's table is too short";
  if (tool->name == nullptr || *tool->name == '\0') return "a tool has no name";
  if (tool->help == nullptr) return "a tool has no help";
  if (tool->make == nullptr || tool->consume == nullptr || tool->finish == nullptr ||
      tool->destroy == nullptr) {
    return "a tool lacks one of make, consume, finish and destroy";
  }
  constexpr std::uint32_t kKinds = (1u << kKindCount) - 1;
  if ((tool->needs & ~kKinds) != 0) return "a tool needs a kind that this version does not know";
  if (tool->option_count > 0 && tool->options == nullptr) return "a tool's options are missing";
  for (std::uint32_t i = 0; i < tool->option_count; ++i) {
    const pasta_option* option = tool->options[i];
    if (option == nullptr || !has_member(option, &pasta_option::fallback) ||
        option->name == nullptr || option->help == nullptr || option->fallback == nullptr) {
      return "an option lacks its name, help or fallback";
    }
  }
  return "";
}

KindSet kinds_of(std::uint32_t bits) {
  KindSet kinds;
  for (unsigned i = 0; i < kKindCount; ++i) {
    if ((bits >> i & 1u) != 0) kinds = kinds | static_cast<Kind>(i);
  }
  return kinds;
}

}  // namespace

struct Plugin::Impl {
  Library library;
  std::deque<Row> rows;  // makers point into it
  std::vector<ToolEntry> entries;
};

Plugin::Plugin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plugin::~Plugin() = default;
Plugin::Plugin(Plugin&&) noexcept = default;
Plugin& Plugin::operator=(Plugin&&) noexcept = default;
std::span<const ToolEntry> Plugin::entries() const { return impl_->entries; }

Result<Plugin> Plugin::load(const std::string& path) {
  // Without a slash the loader would look in its own folders instead of here.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  Library library(dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    const std::string_view why = dlerror();  // most often begins with the path
    return fail(ErrorCode::kNotFound, why.starts_with(place)
                                          ? fmt::format("cannot load plug-in {}", why)
                                          : fmt::format("cannot load plug-in {}: {}", path, why));
  }
  const auto tools =
      reinterpret_cast<pasta_plugin_function>(dlsym(library.get(), PASTA_PLUGIN_SYMBOL));
  if (tools == nullptr) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} is no plug-in of pastaprof: it exports no {}; see pasta/c.h", path,
                            PASTA_PLUGIN_SYMBOL));
  }
  auto plugin = adopt(path, tools());
  if (plugin) plugin->impl_->library = std::move(library);
  return plugin;
}

Result<Plugin> Plugin::adopt(const std::string& name, const pasta_plugin* table) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kUnsupported, fmt::format("cannot use plug-in {}: {}", name, why));
  };
  if (table == nullptr) return refuse("it gives no table");
  if (!has_member(table, &pasta_plugin::abi_version)) return refuse("its table is too short");
  if (table->abi_version != PASTA_ABI_VERSION) {
    return refuse(
        fmt::format("it was built for version {} of the border, this program has {}; "
                    "build it with this program's pasta/c.h",
                    table->abi_version, PASTA_ABI_VERSION));
  }
  if (!has_member(table, &pasta_plugin::tools)) return refuse("its table is too short");
  if (table->tool_count == 0 || table->tools == nullptr) return refuse("it has no tools");
  auto impl = std::make_unique<Impl>();
  for (std::uint32_t i = 0; i < table->tool_count; ++i) {
    const pasta_plugin_tool* tool = table->tools[i];
    if (const std::string_view fault = fault_of(tool); !fault.empty()) return refuse(fault);
    Row& row = impl->rows.emplace_back(Row{name, tool, {}});
    for (std::uint32_t k = 0; k < tool->option_count; ++k) {
      const pasta_option& option = *tool->options[k];
      row.options.push_back({option.name, option.help, option.fallback, {}});
    }
    impl->entries.push_back(
        {tool->name, tool->help, kinds_of(tool->needs), row.options, ToolMaker(make_tool, &row)});
  }
  return Plugin(std::move(impl));
}

}  // namespace pasta::plugins
