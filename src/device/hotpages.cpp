#include "device/hotpages.h"

#include <algorithm>
#include <span>
#include <vector>

#include "device/layout.h"
#include "device/result.h"

namespace pasta::device {
namespace {

std::uint64_t place(const Launch& launch, std::uint32_t shift, std::vector<std::uint64_t>& first) {
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    first[i] = blocks;
    blocks += granules_of(launch.objects[i], shift);
  }
  return blocks;
}

}  // namespace

HotpagesPatch::Shared HotpagesPatch::share(const Launch& objects, const Settings& settings,
                                           Layout& layout) {
  Shared shared{};
  shared.copies = std::max(settings.copies, 1u);
  while (std::uint64_t{1} << shared.shift < settings.least_block) ++shared.shift;
  std::vector<std::uint64_t> first(objects.object_count);
  // Each object has one block at least, whatever their size.
  const std::uint64_t most =
      std::max<std::uint64_t>(settings.most_blocks, objects.object_count * 2);
  std::uint64_t count = 0;
  while ((count = place(objects, shared.shift, first)) > most) ++shared.shift;
  shared.rows = static_cast<std::uint32_t>(count + 1);
  constexpr std::uint64_t kFirstRow = kHeaderBytes<HotpagesPatch> / sizeof(BlockCounts);
  const auto places = Pieces::places(objects, [&](std::uint32_t i) {
    return Pieces::Target{.row = shared.shift,
                          .base = static_cast<std::uint32_t>(
                              kFirstRow + first[i] - (objects.objects[i].address >> shared.shift))};
  });
  shared.objects = Pieces::lay_out(
      objects, places, {.row = kNoRow, .base = static_cast<std::uint32_t>(kFirstRow + count)},
      layout);
  return shared;
}

HotpagesPatch::State HotpagesPatch::lay_out(const Launch&, const Shared& shared, const Settings&,
                                            Layout& layout) {
  return {.shared = shared,
          .blocks = layout.counters<BlockCounts>(std::uint64_t{shared.copies} * shared.rows)};
}

PatchResult HotpagesPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects}, blocks{.id = TableId::kBlocks};
  const BlockCounts* next = state.blocks;
  const auto next_counts = [&] {
    return total_row(next++, state.shared.copies, state.shared.rows, 0);
  };
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    const MemoryObject& object = launch.objects[i];
    const std::uint64_t count = granules_of(object, state.shared.shift);
    const std::uint64_t begin = object.address >> state.shared.shift;
    const std::size_t before = blocks.rows();
    BlockRow row;
    const auto end_row = [&] {
      if (row.blocks > 0) append_row(blocks, row);
      row = {};
    };
    for (std::uint64_t at = 0; at < count; ++at) {
      const BlockCounts counts = next_counts();
      if (counts == BlockCounts{}) {
        end_row();
        continue;
      }
      if (row.blocks == 0 || row.counts != counts) {
        end_row();
        row = {.object = object.number,
               .address = (begin + at) << state.shared.shift,
               .block_bytes = std::uint64_t{1} << state.shared.shift,
               .blocks = 0,
               .counts = counts};
      }
      ++row.blocks;
    }
    end_row();
    if (blocks.rows() > before) append_object(objects, object, names);
  }
  const BlockCounts unknown = next_counts();
  if (unknown != BlockCounts{}) append_row(blocks, BlockRow{.counts = unknown});
  return result_of(launch, {std::move(objects), std::move(blocks)});
}

}  // namespace pasta::device
