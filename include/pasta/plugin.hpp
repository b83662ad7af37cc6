// A plug-in in C++: a class with consume() and finish(), and one line that exports it. Needs C++20
// and pasta/c.h, and links to nothing.
//
//   class Launches {
//    public:
//     void consume(std::span<const pasta_event> events, const pasta::plugin::Context& context);
//     pasta::plugin::Report finish(const pasta::plugin::Context& context);
//   };
//   constexpr pasta_plugin_tool kLaunches = pasta::plugin::tool<Launches>(
//       "launches", "how often each kernel ran", PASTA_KIND_BIT(PASTA_KIND_KERNEL));
//   PASTA_PLUGIN(kLaunches)
//
// An exception that a tool throws ends its analysis with the exception's words. A tool that has
// options takes a pasta::plugin::Settings in its constructor.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pasta/c.h"

namespace pasta::plugin {

// What events refer to. Valid while the call runs; the text it gives, as long as the tool.
class Context {
 public:
  explicit Context(const pasta_context* context) : context_(context) {}
  [[nodiscard]] std::string_view string(std::uint32_t id) const {
    return view(context_->lookup->string(context_->lookup, id));
  }
  [[nodiscard]] pasta_lane lane(std::uint32_t id) const {
    return entry<pasta_lane>(context_->lookup->lane, id);
  }
  [[nodiscard]] pasta_process process(std::uint32_t id) const {
    return entry<pasta_process>(context_->lookup->process, id);
  }
  [[nodiscard]] pasta_device device(std::uint32_t id) const {
    return entry<pasta_device>(context_->lookup->device, id);
  }
  [[nodiscard]] pasta_frame frame(std::uint32_t id) const {
    return entry<pasta_frame>(context_->lookup->frame, id);
  }
  [[nodiscard]] pasta_attributes attributes(std::uint32_t id) const {
    return entry<pasta_attributes>(context_->lookup->attributes, id);
  }
  [[nodiscard]] pasta_collective collective(std::uint32_t id) const {
    return entry<pasta_collective>(context_->lookup->collective, id);
  }
  [[nodiscard]] std::string_view device_label(std::uint32_t device) const {
    return view(context_->device_label(context_, device));
  }
  [[nodiscard]] std::string_view blob(std::uint32_t id) const {
    return view(context_->blob(context_, id));
  }
  // PASTA_NO_TIME when no event has times.
  [[nodiscard]] std::int64_t origin_ns() const { return context_->origin_ns(context_); }

 private:
  static std::string_view view(pasta_text text) { return {text.data, text.size}; }
  template <class Entry>
  [[nodiscard]] Entry entry(void (*get)(const pasta_lookup*, std::uint32_t, Entry*),
                            std::uint32_t id) const {
    Entry found{};
    found.size = sizeof found;
    get(context_->lookup, id, &found);
    return found;
  }
  const pasta_context* context_;
};

// The values of a tool's options.
class Settings {
 public:
  explicit Settings(std::span<const pasta_setting> settings) : settings_(settings) {}
  // "" for a name that is no option.
  [[nodiscard]] std::string_view text(std::string_view name) const {
    for (const pasta_setting& setting : settings_) {
      if (setting.name == name) return setting.value;
    }
    return {};
  }

 private:
  std::span<const pasta_setting> settings_;
};

// A cell of a table: text, a number, or unknown.
class Cell {
 public:
  Cell() : json_("null") {}
  Cell(std::string_view text) : json_(quoted(text)) {}
  Cell(const char* text) : Cell(std::string_view(text)) {}
  Cell(const std::string& text) : Cell(std::string_view(text)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> Cell(Number value) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(value)) {
        json_ = "null";
        return;
      }
    }
    char buffer[64];
    json_.assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
    // A whole double stays a double.
    if (std::is_floating_point_v<Number> && json_.find_first_of(".e") == std::string::npos) {
      json_ += ".0";
    }
  }
  [[nodiscard]] const std::string& json() const { return json_; }

  // `text` as a JSON string. It must be UTF-8.
  static std::string quoted(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20) {
        out += "\\u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
        continue;
      }
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out += '"';
  }

 private:
  std::string json_;
};

// A column of a table. `unit` is "", "ns", "bytes", "count" or "share" (0..1).
struct Column {
  std::string_view name;
  std::string_view unit = {};
};

// One table; rows have as many cells as there are columns.
class Table {
 public:
  Table(std::string_view id, std::string_view title, std::initializer_list<Column> columns) {
    head_ = "{\"type\": \"table\", \"id\": " + Cell::quoted(id) +
            ", \"title\": " + Cell::quoted(title) + ", \"columns\": [";
    std::string_view comma;
    for (const Column& column : columns) {
      (head_ += comma) += "{\"name\": " + Cell::quoted(column.name);
      if (!column.unit.empty()) head_ += ", \"unit\": " + Cell::quoted(column.unit);
      head_ += '}';
      comma = ", ";
    }
    head_ += "], \"rows\": [";
  }
  Table& row(std::initializer_list<Cell> cells) {
    if (!rows_.empty()) rows_ += ", ";
    std::string_view comma = "[";
    for (const Cell& cell : cells) {
      (rows_ += comma) += cell.json();
      comma = ", ";
    }
    rows_ += cells.size() == 0 ? "[]" : "]";
    return *this;
  }
  [[nodiscard]] std::string json() const { return head_ + rows_ + "]}"; }

 private:
  std::string head_;
  std::string rows_;
};

// What finish() gives. Parts that are no tables are added as JSON (see docs/design.md).
class Report {
 public:
  // `tool` is the name of the tool.
  Report(std::string_view tool, std::string_view title)
      : head_("{\"tool\": " + Cell::quoted(tool) + ", \"title\": " + Cell::quoted(title) +
              ", \"parts\": [") {}
  Report& add(const Table& table) { return add_json(table.json()); }
  Report& add_json(std::string_view part) {
    if (!parts_.empty()) parts_ += ", ";
    parts_ += part;
    return *this;
  }
  [[nodiscard]] std::string json() const { return head_ + parts_ + "]}"; }

 private:
  std::string head_;
  std::string parts_;
};

namespace detail {

// A Tool as C code holds it. Nothing is thrown across the border.
template <class Tool>
class Holder {
 public:
  static pasta_status make(const pasta_setting* settings, size_t count, void** out) {
    auto* holder = new (std::nothrow) Holder();
    *out = holder;
    if (holder == nullptr) return PASTA_IO;
    return holder->guard([&] {
      if constexpr (std::is_constructible_v<Tool, const Settings&>) {
        holder->tool_ = std::make_unique<Tool>(Settings({settings, count}));
      } else {
        holder->tool_ = std::make_unique<Tool>();
      }
    });
  }
  static pasta_status consume(void* self, const pasta_event* events, size_t count,
                              const pasta_context* context) {
    return of(self).guard(
        [&] { of(self).tool_->consume(std::span(events, count), Context(context)); });
  }
  static pasta_status finish(void* self, const pasta_context* context, pasta_text* json) {
    return of(self).guard([&] {
      std::string& kept = of(self).json_;
      kept = of(self).tool_->finish(Context(context)).json();
      *json = {kept.data(), kept.size()};
    });
  }
  static const char* error(const void* self) {
    return static_cast<const Holder*>(self)->error_.c_str();
  }
  static void destroy(void* self) { delete static_cast<Holder*>(self); }

 private:
  static Holder& of(void* self) { return *static_cast<Holder*>(self); }
  template <class Act>
  pasta_status guard(Act&& act) noexcept {
    error_.clear();
    try {
      act();
      return PASTA_OK;
    } catch (const std::exception& exception) {
      keep(exception.what());
    } catch (...) {
      keep("an unknown exception");
    }
    return PASTA_VENDOR;
  }
  void keep(const char* why) noexcept {
    try {
      error_ = why;
    } catch (const std::exception&) {
      error_.clear();  // no memory for the words; that it failed is known
    }
  }

  std::unique_ptr<Tool> tool_;
  std::string json_;
  std::string error_;
};

template <class... Tools>
constexpr std::array<const pasta_plugin_tool*, sizeof...(Tools)> addresses_of(
    const Tools&... tools) {
  return {&tools...};
}

}  // namespace detail

// The table of functions of one tool. Its texts and options must be constants of the library.
template <class Tool>
constexpr pasta_plugin_tool tool(const char* name, const char* help, std::uint32_t needs,
                                 std::span<const pasta_option* const> options = {}) {
  using Held = detail::Holder<Tool>;
  return {sizeof(pasta_plugin_tool),
          name,
          help,
          needs,
          static_cast<std::uint32_t>(options.size()),
          options.data(),
          Held::make,
          Held::consume,
          Held::finish,
          Held::error,
          Held::destroy};
}

}  // namespace pasta::plugin

// Exports a plug-in. Takes the names of its tools: constants made by pasta::plugin::tool().
#define PASTA_PLUGIN(...)                                                              \
  extern "C" PASTA_EXPORT const pasta_plugin* pasta_plugin_tools(void) {               \
    static constexpr auto kTools = ::pasta::plugin::detail::addresses_of(__VA_ARGS__); \
    static constexpr pasta_plugin kPlugin{sizeof(pasta_plugin), PASTA_ABI_VERSION,     \
                                          static_cast<std::uint32_t>(kTools.size()),   \
                                          kTools.data()};                              \
    return &kPlugin;                                                                   \
  }
