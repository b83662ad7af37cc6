// What a tool found, as data. Renderers decide how it looks; tools never print.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pasta {

enum class Unit : std::uint8_t {
  kNone,
  kNanoseconds,  // integer
  kBytes,        // integer
  kCount,        // integer
  kShare,        // 0..1
};

// Unknown is std::monostate: it is shown as "-" and is null in JSON, never 0.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

struct Column {
  std::string name;
  Unit unit = Unit::kNone;
  bool operator==(const Column&) const = default;
};

// `id` and the names of columns are an interface: scripts rely on them.
struct Table {
  std::string id;
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
  bool operator==(const Table&) const = default;
};

struct Series {
  std::string id;
  std::string title;
  Unit unit = Unit::kNone;
  std::vector<std::pair<std::int64_t, double>> points;  // time in ns, value
  bool operator==(const Series&) const = default;
};

struct TreeNode {
  std::string name;
  double value = 0;
  std::vector<TreeNode> children;
  bool operator==(const TreeNode&) const = default;
};
struct Tree {
  std::string id;
  std::string title;
  Unit unit = Unit::kNone;
  TreeNode root;
  bool operator==(const Tree&) const = default;
};

struct HeatMap {
  std::string id;
  std::string title;
  Unit unit = Unit::kNone;
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;  // [row][column]
  bool operator==(const HeatMap&) const = default;
};

// One fact that a finding rests on. `name` is an interface like the names of columns.
struct Evidence {
  Evidence() = default;
  Evidence(std::string fact, Cell of_it, Unit in = Unit::kNone)
      : name(std::move(fact)), value(std::move(of_it)), unit(in) {}
  std::string name;
  Cell value;
  Unit unit = Unit::kNone;
  bool operator==(const Evidence&) const = default;
};

struct Finding {
  enum class Level : std::uint8_t { kInfo, kWarning, kProblem };
  std::string id;
  Level level = Level::kInfo;
  std::string text;
  double share = 0;  // of what `of` names, 0..1; meaningless when `of` is empty
  std::string of;
  std::vector<Evidence> evidence;
  std::string advice;
  bool operator==(const Finding&) const = default;
};

using Part = std::variant<Finding, Table, Series, Tree, HeatMap>;

struct Report {
  std::string tool;
  std::string title;
  std::vector<Part> parts;
  bool operator==(const Report&) const = default;
};

// What stands above the reports: where the events came from and how far they can be trusted.
struct TraceSummary {
  struct Source {
    std::string path, format, label;
    Cell rank;  // unknown when the source does not say
    std::vector<std::pair<std::string, std::int64_t>> events;  // by kind, kinds with none left out
    bool operator==(const Source&) const = default;
  };
  struct Lane {
    std::string name, type, process, device;
    bool operator==(const Lane&) const = default;
  };
  struct DeviceFacts {
    std::string id, name, type;
    bool operator==(const DeviceFacts&) const = default;
  };
  struct ProblemRow {
    std::string source, reason, severity;
    std::int64_t count = 0;
    std::string first;
    bool operator==(const ProblemRow&) const = default;
  };
  std::vector<Source> sources;
  Cell span_ns;  // first start to last end of timed events; unknown when there is none
  std::vector<std::pair<std::string, std::int64_t>> events;  // by kind, of all sources
  std::vector<Lane> lanes;
  std::vector<DeviceFacts> devices;
  Cell kernels_linked;  // share of kernels whose launch is in the trace; unknown without kernels
  std::int64_t untimed = 0;
  std::int64_t lost = 0;  // events that were dropped
  std::vector<ProblemRow> problems;
  std::string filter;  // what part of the trace the reports are of; empty = all
  bool operator==(const TraceSummary&) const = default;
};

// One answer of the program: what `pastaprof report` renders.
struct Document {
  TraceSummary trace;
  std::vector<Report> reports;
  bool operator==(const Document&) const = default;
};

}  // namespace pasta
