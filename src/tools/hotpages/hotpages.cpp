#include "tools/hotpages/hotpages.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "device/hotpages.h"
#include "device/warp.h"
#include "tools/common/device_results.h"
#include "tools/common/ratio.h"

namespace pasta::tools {
namespace {

using device::BlockCounts;
using device::BlockRow;
using device::kSectorBytes;

constexpr std::size_t kMostColumns = 32;  // of the heat map: launches are put together
// No patch counts more; a damaged result says anything.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20;
constexpr std::size_t kMostRows = 40;  // of the heat map: the coolest are left out

constexpr OptionInfo kOptions[] = {
    {"block", "size of the pieces of memory, a power of two: 64KiB, 2MiB", "2MiB", {}}};

struct ObjectKey {
  std::uint32_t process;
  std::uint64_t number;
  auto operator<=>(const ObjectKey&) const = default;
};
struct Block {
  BlockCounts counts;
  std::uint64_t launches = 0;
  std::uint64_t last_launch = ~std::uint64_t{0};  // by number in the order they came
  std::vector<std::uint64_t> heat;                // sectors by column
};
struct Object {
  std::string label;
  ProcessId process;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0, address = 0;
  std::map<std::uint64_t, Block> blocks;  // by address
};

class HotpagesTool : public Tool {
 public:
  explicit HotpagesTool(std::uint64_t block) : block_(block) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      if (const auto launch = results_.take(event, context)) take(*launch);
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    Report report{.tool = "hotpages", .title = "Hot pieces of memory", .parts = {}};
    if (coarse_ > 0) {
      report.parts.emplace_back(
          Finding{.id = "coarser-blocks",
                  .level = Finding::Level::kInfo,
                  .text = fmt::format("blocks of {} were counted, as smaller ones were too many",
                                      base::format_bytes(coarse_)),
                  .of = {},
                  .evidence = {{"block", count_cell(coarse_), Unit::kBytes}},
                  .advice = {}});
    }
    double unknown = 0;
    for (const auto& [key, object] : objects_) {
      if (key.number == device::kUnknownObject) unknown += moved_bytes(total(object).sectors);
    }
    add_unknown_objects(report, unknown, all_moved());
    results_.add_findings(report);
    report.parts.emplace_back(objects());
    report.parts.emplace_back(blocks());
    report.parts.emplace_back(heat());
    return report;
  }

 private:
  struct Line {
    const Object* object;
    std::uint64_t address;
    const Block* block;
  };

  void take(const LaunchResult& launch) {
    if (launch.first) begin_launch();
    for (const device::ResultTable& table : launch.result.tables) {
      if (table.id != device::TableId::kBlocks) continue;
      for (const BlockRow& row : device::rows_of<BlockRow>(table)) take(launch, row);
    }
  }

  void take(const LaunchResult& launch, const BlockRow& row) {
    Object& object = objects_[{launch.process.value, row.object}];
    object.process = launch.process;
    object.number = row.object;
    if (const auto* known = results_.object(launch.process, row.object)) {
      object.label = results_.label(launch.process, row.object);
      object.bytes = known->bytes;
      object.address = known->address;
    } else if (object.label.empty()) {
      object.label = results_.label(launch.process, row.object);
    }
    if (row.object == device::kUnknownObject) {
      add(object.blocks[0], row.counts);
      return;
    }
    if (row.block_bytes > block_) coarse_ = std::max(coarse_, row.block_bytes);
    const std::uint64_t size = std::max(block_, row.block_bytes);
    if (row.block_bytes == 0 || row.blocks > kMostBlocks) {
      results_.refuse();
      return;
    }
    for (std::uint64_t i = 0; i < row.blocks; ++i) {
      add(object.blocks[(row.address + i * row.block_bytes) / size * size], row.counts);
    }
  }

  void add(Block& block, const BlockCounts& counts) {
    device::add_row(block.counts, counts);
    if (block.last_launch != launch_) ++block.launches;
    block.last_launch = launch_;
    block.heat.resize(std::max(block.heat.size(), column() + 1));
    block.heat[column()] += counts.sectors;
  }

  // The launch under way, from 0, and where it is in the heat map.
  [[nodiscard]] std::size_t column() const { return launch_ / launches_a_column_; }
  void begin_launch() {
    launch_ = launches_++;
    if (column() < kMostColumns) return;
    launches_a_column_ *= 2;
    for (auto& [key, object] : objects_) {
      for (auto& [address, block] : object.blocks) {
        std::vector<std::uint64_t>& heat = block.heat;
        for (std::size_t i = 0; i < heat.size(); ++i) {
          if (i % 2 == 0) {
            heat[i / 2] = heat[i];
          } else {
            heat[i / 2] += heat[i];
          }
        }
        heat.resize((heat.size() + 1) / 2);
      }
    }
  }

  [[nodiscard]] double all_moved() const {
    double moved = 0;
    for (const auto& [key, object] : objects_) moved += moved_bytes(total(object).sectors);
    return moved;
  }
  static BlockCounts total(const Object& object) {
    BlockCounts sum;
    for (const auto& [address, block] : object.blocks) device::add_row(sum, block.counts);
    return sum;
  }

  [[nodiscard]] Table objects() const {
    Table table{.id = "objects",
                .title = "Objects, the hottest first",
                .columns = {{"object"},
                            {"size", Unit::kBytes},
                            {"blocks", Unit::kCount},
                            {"reads", Unit::kCount},
                            {"writes", Unit::kCount},
                            {"atomics", Unit::kCount},
                            {"moved", Unit::kBytes},
                            {"share", Unit::kShare},
                            {"hottest", Unit::kShare},
                            {"uncovered"}},
                .rows = {}};
    const double moved = all_moved();
    std::vector<std::pair<BlockCounts, const Object*>> order;
    for (const auto& [key, object] : objects_) order.emplace_back(total(object), &object);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto& line) { return line.first.sectors; });
    for (const auto& [sum, object] : order) {
      std::uint64_t hottest = 0;
      for (const auto& [address, block] : object->blocks) {
        hottest = std::max(hottest, block.counts.sectors);
      }
      const bool known = object->bytes > 0;
      table.rows.push_back({object->label, known ? count_cell(object->bytes) : Cell(),
                            known ? count_cell(object->blocks.size()) : Cell(),
                            count_cell(sum.reads), count_cell(sum.writes), count_cell(sum.atomics),
                            moved_cell(sum.sectors), ratio_cell(moved_bytes(sum.sectors), moved),
                            ratio_cell(hottest, sum.sectors),
                            results_.uncovered_cell(object->process, object->number)});
    }
    return table;
  }

  // In the order of objects and addresses.
  [[nodiscard]] std::vector<Line> lines() const {
    std::vector<Line> lines;
    for (const auto& [key, object] : objects_) {
      for (const auto& [address, block] : object.blocks) {
        lines.push_back({&object, address, &block});
      }
    }
    return lines;
  }

  // "+4.0 MiB": where in the object a block begins.
  static Cell offset_of(const Line& line) {
    if (line.object->bytes == 0) return {};
    return count_cell(line.address > line.object->address ? line.address - line.object->address
                                                          : 0);
  }

  [[nodiscard]] Table blocks() const {
    Table table{
        .id = "blocks",
        .title = fmt::format("Blocks of {}{}, the hottest first", base::format_bytes(block_),
                             coarse_ > 0 ? " to " + base::format_bytes(coarse_) : ""),
        .columns = {{"object"},
                    {"offset", Unit::kBytes},
                    {"launches", Unit::kCount},
                    {"reads", Unit::kCount},
                    {"writes", Unit::kCount},
                    {"atomics", Unit::kCount},
                    {"moved", Unit::kBytes},
                    {"share", Unit::kShare},
                    {"uncovered"}},
        .rows = {}};
    const double moved = all_moved();
    std::vector<Line> order = lines();
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const Line& line) { return line.block->counts.sectors; });
    for (const Line& line : order) {
      const BlockCounts& counts = line.block->counts;
      table.rows.push_back({line.object->label, offset_of(line), count_cell(line.block->launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.atomics), moved_cell(counts.sectors),
                            ratio_cell(moved_bytes(counts.sectors), moved),
                            results_.uncovered_cell(line.object->process, line.object->number)});
    }
    return table;
  }

  // "1088 KiB": tells blocks apart that one decimal would not.
  static std::string exact_size(std::int64_t bytes) {
    constexpr std::int64_t kKi = 1024;
    if (bytes % kKi != 0 || bytes == 0) return fmt::format("{} B", bytes);
    if (bytes % (kKi * kKi) != 0) return fmt::format("{} KiB", bytes / kKi);
    return fmt::format("{} MiB", bytes / (kKi * kKi));
  }

  [[nodiscard]] HeatMap heat() const {
    HeatMap map{.id = "heat",
                .title = "Bytes moved, by block over launches",
                .unit = Unit::kBytes,
                .rows = {},
                .columns = {},
                .values = {}};
    for (std::uint64_t first = 0; first < launches_; first += launches_a_column_) {
      const std::uint64_t last = std::min(first + launches_a_column_, launches_);
      map.columns.push_back(last == first + 1 ? fmt::format("{}", last)
                                              : fmt::format("{}-{}", first + 1, last));
    }
    const std::vector<Line> all = lines();
    std::vector<std::size_t> hottest(all.size());
    std::iota(hottest.begin(), hottest.end(), std::size_t{0});
    std::ranges::stable_sort(hottest, std::ranges::greater(),
                             [&](std::size_t i) { return all[i].block->counts.sectors; });
    hottest.resize(std::min(hottest.size(), kMostRows));
    std::ranges::sort(hottest);
    double shown = 0;
    for (const std::size_t at : hottest) {
      const Line& line = all[at];
      std::vector<double> row(map.columns.size(), 0);
      for (std::size_t i = 0; i < line.block->heat.size() && i < row.size(); ++i) {
        row[i] += moved_bytes(line.block->heat[i]);
      }
      shown += moved_bytes(line.block->counts.sectors);
      const Cell offset = offset_of(line);
      const auto* bytes = std::get_if<std::int64_t>(&offset);
      map.rows.push_back(bytes == nullptr
                             ? line.object->label
                             : fmt::format("{} +{}", line.object->label, exact_size(*bytes)));
      map.values.push_back(std::move(row));
    }
    // Together, the others would be hotter than any.
    if (map.rows.size() < all.size()) {
      map.title += fmt::format(": the hottest {} of {} blocks, {:.1f} % of all", map.rows.size(),
                               all.size(), 100 * ratio(shown, all_moved()));
    }
    return map;
  }

  std::uint64_t block_;
  DeviceResults results_{device::HotpagesPatch::kFormat, "hotpages", false};
  std::map<ObjectKey, Object> objects_;
  std::uint64_t launches_ = 0, launch_ = 0, launches_a_column_ = 1;
  std::uint64_t coarse_ = 0;  // size of the largest blocks that are larger than ours
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const std::string text(options.text("block"));
  std::uint64_t block = 0;
  if (!base::parse_bytes(text, block) || !std::has_single_bit(block)) {
    return fail(ErrorCode::kUsage,
                fmt::format("option hotpages.block cannot be \"{}\"; give a size that is a power "
                            "of two, such as 64KiB or 2MiB",
                            text));
  }
  return std::make_unique<HotpagesTool>(block);
}

}  // namespace

constinit const ToolEntry kHotpages = {
    .name = "hotpages",
    .help = "which pieces of which memory objects kernels access, and how that moves over launches",
    .needs = kDeviceResultKinds,
    .options = kOptions,
    .make = make,
    .also = kObjectNameKinds,
    .patch = "hotpages"};

}  // namespace pasta::tools
