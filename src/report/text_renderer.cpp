#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/render.h"
#include "report/text_charts.h"
#include "report/text_layout.h"
#include "report/text_number.h"
#include "report/text_style.h"
#include "report/text_table.h"

namespace pasta::report {
namespace {

constexpr std::size_t kListed = 8;  // sources and devices named one by one in the header

std::string plural(std::int64_t count, std::string_view one) {
  return format_count(count) + ' ' + std::string(one) + (count == 1 ? "" : "s");
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string joined;
  for (const std::string& part : parts) {
    if (!joined.empty()) joined += between;
    joined += part;
  }
  return joined;
}

using Counts = std::vector<std::pair<std::string, std::int64_t>>;

std::int64_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

class TextRenderer {
 public:
  explicit TextRenderer(const TextOptions& options) : options_(options), style_(options.colour) {
    options_.width = std::max(options_.width, 40);
  }

  std::string render(const Document& document) {
    header(document.trace);
    findings(document.reports);
    for (const Report& one : document.reports) report(one);
    quality(document.trace);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(options_.width); }
  void line(std::string_view text) { (out_ += text) += '\n'; }
  // Wrapped text whose first line begins with `head` and whose others are as far indented.
  void paragraph(std::string_view head, std::string_view shown_head, std::string_view text) {
    const std::size_t indent = width_of(head);
    bool first = true;
    for (const std::string& part : wrap(text, width() - indent)) {
      line((first ? std::string(shown_head) : std::string(indent, ' ')) + part);
      first = false;
    }
  }
  void paragraph(std::string_view head, std::string_view text) { paragraph(head, head, text); }
  void title(std::string_view text) {
    const std::string shown = shorten(clean(text), width() - 4);
    line("");
    line(style_.bold(shown) + ' ' + style_.dim(repeat("─", width() - width_of(shown) - 1)));
  }

  void header(const TraceSummary& trace) {
    std::vector<std::string> facts;
    if (trace.sources.size() == 1) {
      const TraceSummary::Source& source = trace.sources.front();
      line(style_.bold(shorten(clean(source.path), width())));
      facts.push_back(clean(source.format));
      if (const auto* rank = std::get_if<std::int64_t>(&source.rank)) {
        facts.push_back("rank " + std::to_string(*rank));
      }
    } else {
      line(style_.bold(plural(static_cast<std::int64_t>(trace.sources.size()), "source")));
    }
    facts.push_back(plural(total(trace.events), "event"));
    if (const auto* span_ns = std::get_if<std::int64_t>(&trace.span_ns)) {
      facts.push_back("span " + format_quantity(static_cast<double>(*span_ns), Unit::kNanoseconds,
                                                options_.time_unit));
    } else {
      // Sources whose clocks cannot be compared have times, but no span together.
      facts.emplace_back(trace.untimed == total(trace.events) ? "no times" : "span unknown");
    }
    if (!trace.lanes.empty()) {
      facts.push_back(plural(static_cast<std::int64_t>(trace.lanes.size()), "lane"));
    }
    paragraph("  ", join(facts, " · "));
    if (!trace.filter.empty()) paragraph("  only ", clean(trace.filter));
    devices(trace.devices);
    if (trace.sources.size() > 1) sources(trace.sources);
  }

  // Devices of one model share a line.
  void devices(const std::vector<TraceSummary::DeviceFacts>& devices) {
    std::vector<std::pair<std::string, std::vector<std::string>>> models;
    for (const auto& device : devices) {
      std::string model = clean(device.name.empty() ? device.type : device.name);
      const auto known = std::find_if(models.begin(), models.end(),
                                      [&](const auto& one) { return one.first == model; });
      if (known == models.end()) {
        models.emplace_back(std::move(model), std::vector{clean(device.id)});
      } else {
        known->second.push_back(clean(device.id));
      }
    }
    for (auto& [model, ids] : models) {
      const std::size_t count = ids.size();
      if (count > kListed) {
        ids.resize(kListed);
        ids.push_back("… " + std::to_string(count - kListed) + " more");
      }
      paragraph(count == 1 ? "  device " : "  devices ",
                join(ids, ", ") + (model.empty() ? "" : ": " + model));
    }
  }

  void sources(const std::vector<TraceSummary::Source>& sources) {
    Table table{"",
                "",
                {{"source", Unit::kNone},
                 {"rank", Unit::kNone},
                 {"format", Unit::kNone},
                 {"events", Unit::kCount},
                 {"path", Unit::kNone}},
                {}};
    for (const TraceSummary::Source& source : sources) {
      table.rows.push_back(
          {source.label, source.rank, source.format, total(source.events), source.path});
    }
    TextOptions options = options_;
    options.max_rows = kListed;
    line("");
    append_table(out_, table, options, style_);
  }

  void findings(const std::vector<Report>& reports) {
    std::vector<const Finding*> all;
    for (const Report& one : reports) {
      for (const Part& part : one.parts) {
        const auto* finding = std::get_if<Finding>(&part);
        if (finding == nullptr) continue;
        // Several tools miss the same thing.
        const auto said = [&](const Finding* other) { return other->text == finding->text; };
        if (std::none_of(all.begin(), all.end(), said)) all.push_back(finding);
      }
    }
    if (all.empty()) return;
    // Among equals the order of the tools, who know what matters most.
    std::stable_sort(all.begin(), all.end(),
                     [](const Finding* a, const Finding* b) { return a->level > b->level; });
    title("Findings");
    for (const Finding* finding : all) append(*finding);
  }

  void append(const Finding& finding) {
    std::string head = "  ", shown;
    switch (finding.level) {
      case Finding::Level::kProblem:
        head += "problem  ";
        shown = style_.red(head);
        break;
      case Finding::Level::kWarning:
        head += "warning  ";
        shown = style_.yellow(head);
        break;
      case Finding::Level::kInfo:
        head += "note     ";
        shown = style_.blue(head);
        break;
    }
    paragraph(head, shown, clean(finding.text));
    const std::string indent(width_of(head), ' ');
    std::vector<std::string> facts;
    if (!finding.of.empty()) {
      facts.push_back(format_quantity(finding.share, Unit::kShare, options_.time_unit) + " of " +
                      clean(finding.of));
    }
    for (const Evidence& fact : finding.evidence) {
      facts.push_back(words_of(fact.name) + ' ' + value_text(fact));
    }
    paragraph(indent, join(facts, " · "));
    paragraph(indent + "→ ", clean(finding.advice));
  }

  std::string value_text(const Evidence& fact) const {
    if (const auto* integer = std::get_if<std::int64_t>(&fact.value)) {
      if (fact.unit == Unit::kNone) return format_count(*integer);
      return format_quantity(static_cast<double>(*integer), fact.unit, options_.time_unit);
    }
    if (const auto* number = std::get_if<double>(&fact.value)) {
      return format_quantity(*number, fact.unit, options_.time_unit);
    }
    if (const auto* text = std::get_if<std::string>(&fact.value)) return clean(*text);
    return "-";
  }

  void report(const Report& report) {
    title(report.title);
    // A report of findings alone has said all at the top.
    if (!report.parts.empty() &&
        std::all_of(report.parts.begin(), report.parts.end(), is_finding)) {
      line("  see Findings");
      return;
    }
    if (std::all_of(report.parts.begin(), report.parts.end(), says_nothing)) {
      line("  (nothing)");
      return;
    }
    bool first = true;
    for (const Part& part : report.parts) {
      std::visit([&](const auto& known) { append_part(known, report.title, first); }, part);
    }
  }
  static bool is_finding(const Part& part) { return std::holds_alternative<Finding>(part); }
  // Below the title of its report.
  static bool says_nothing(const Part& part) {
    const auto* table = std::get_if<Table>(&part);
    return is_finding(part) || (table != nullptr && table->rows.empty());
  }
  void append_part(const Finding&, const std::string&, bool&) {}
  template <class Known>
  void append_part(const Known& part, const std::string& report_title, bool& first) {
    if (!first) line("");
    if (!part.title.empty() && part.title != report_title) {
      paragraph("  ", clean(part.title));
      line("");
    }
    first = false;
    append(part);
  }
  void append(const Table& table) { append_table(out_, table, options_, style_); }
  void append(const Series& series) { append_series(out_, series, options_, style_); }
  void append(const Tree& tree) { append_tree(out_, tree, options_, style_); }
  void append(const HeatMap& map) { append_heat_map(out_, map, options_, style_); }

  void quality(const TraceSummary& trace) {
    title("Quality");
    std::vector<std::string> kinds;
    for (const auto& [kind, count] : trace.events)
      kinds.push_back(kind + ' ' + format_count(count));
    paragraph("  events   ", kinds.empty() ? "none" : join(kinds, " · "));
    if (const auto* share = std::get_if<double>(&trace.kernels_linked)) {
      paragraph("  linked   ", format_quantity(*share, Unit::kShare, options_.time_unit) +
                                   " of kernels to the call that launched them");
    }
    if (trace.untimed > 0) {
      paragraph("  untimed  ",
                plural(trace.untimed, "event") + " without usable times, in no sum of times");
    }
    if (trace.lost > 0) {
      paragraph("  lost     ", style_.red("  lost     "),
                plural(trace.lost, "event") + " dropped: every number here may be too small");
    }
    if (trace.sources.size() > 1) events_by_source(trace);
    if (!trace.problems.empty()) {
      line("");
      problems(trace.problems, trace.sources.size() > 1);
    } else if (trace.lost == 0) {
      line("");
      line("  No problems found in the input.");
    }
  }

  void events_by_source(const TraceSummary& trace) {
    Table table{"", "", {{"source", Unit::kNone}}, {}};
    for (const auto& [kind, count] : trace.events) table.columns.push_back({kind, Unit::kCount});
    for (const TraceSummary::Source& source : trace.sources) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.emplace_back(source.label);
      for (const auto& [kind, count] : trace.events) {
        std::int64_t here = 0;
        for (const auto& [name, number] : source.events) {
          if (name == kind) here = number;
        }
        row.emplace_back(here);
      }
    }
    line("");
    append_table(out_, table, options_, style_);
  }

  // One entry for a reason, whichever of `several` sources it is of; the worst first.
  void problems(const std::vector<TraceSummary::ProblemRow>& rows, bool several) {
    struct Entry {
      const TraceSummary::ProblemRow* first;
      std::int64_t count = 0;
      std::size_t sources = 0;
    };
    std::vector<Entry> entries;
    for (const TraceSummary::ProblemRow& row : rows) {
      auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.first->reason == row.reason && entry.first->severity == row.severity;
      });
      if (known == entries.end()) known = entries.insert(known, Entry{&row});
      known->count += row.count;
      ++known->sources;
    }
    constexpr std::array<std::string_view, 4> kOrder{"dropped", "altered", "repaired", "note"};
    const auto place = [&](const Entry& entry) {
      return std::find(kOrder.begin(), kOrder.end(), entry.first->severity);
    };
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
    for (const Entry& entry : entries) {
      const TraceSummary::ProblemRow& row = *entry.first;
      const std::string head = "  " + pad(clean(row.severity), 9, Align::kLeft);
      std::string text = clean(row.reason) + " × " + format_count(entry.count);
      if (entry.sources > 1) text += " in " + std::to_string(entry.sources) + " sources";
      if (options_.explain != nullptr) {
        const std::string help = clean(options_.explain(row.reason));
        if (!help.empty()) text += ": " + help;
      }
      paragraph(head, severity_colour(row.severity, head), text);
      if (row.first.empty()) continue;
      std::string where = "first " + clean(row.first);
      if (several && !row.source.empty()) where += " (" + clean(row.source) + ")";
      // A place may name a kernel of a thousand letters.
      paragraph(std::string(head.size(), ' '), shorten(where, 2 * (width() - head.size())));
    }
  }
  [[nodiscard]] std::string severity_colour(std::string_view severity,
                                            const std::string& text) const {
    if (severity == "dropped") return style_.red(text);
    if (severity == "altered") return style_.yellow(text);
    return severity == "note" ? style_.dim(text) : text;
  }

  TextOptions options_;
  Style style_;
  std::string out_;
};

}  // namespace

std::string render_text(const Document& document, const TextOptions& options) {
  return TextRenderer(options).render(document);
}

}  // namespace pasta::report
