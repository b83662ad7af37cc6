#include "device/hotpages.h"

#include <algorithm>
#include <span>
#include <vector>

#include "device/layout.h"
#include "device/result.h"

namespace pasta::device {
namespace {

std::uint64_t blocks_of(const MemoryObject& object, std::uint32_t shift) {
  if (object.bytes == 0) return 1;
  return ((object.address + (object.bytes - 1)) >> shift) - (object.address >> shift) + 1;
}

std::uint64_t place(const Launch& launch, std::uint32_t shift, std::vector<std::uint64_t>& first) {
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    first[i] = blocks;
    blocks += blocks_of(launch.objects[i], shift);
  }
  return blocks;
}

}  // namespace

HotpagesPatch::State HotpagesPatch::lay_out(const Launch& launch, const Settings& settings,
                                            Layout& layout) {
  State state{};
  state.copies = std::max(settings.copies, 1u);
  while (std::uint64_t{1} << state.shift < settings.least_block) ++state.shift;
  std::vector<std::uint64_t> first(launch.object_count);
  // Each object has one block at least, whatever their size.
  const std::uint64_t most = std::max<std::uint64_t>(settings.most_blocks, launch.object_count * 2);
  while ((state.block_count = place(launch, state.shift, first)) > most) ++state.shift;
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    places.push_back({launch.objects[i].address, launch.objects[i].bytes, first[i]});
  }
  state.places = layout.table(std::span<const Place>(places));
  state.blocks = layout.counters<BlockCounts>(state.copies * (state.block_count + 1));
  state.hints = {layout.scratch<std::uint32_t>(ObjectHints::kCount)};
  return state;
}

PatchResult HotpagesPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects}, blocks{.id = TableId::kBlocks};
  const std::uint64_t all = state.block_count + 1;
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    const MemoryObject& object = launch.objects[i];
    const std::uint64_t count = blocks_of(object, state.shift);
    const std::uint64_t begin = object.address >> state.shift;
    const std::size_t before = blocks.rows();
    BlockRow row;
    const auto end_row = [&] {
      if (row.blocks > 0) append_row(blocks, row);
      row = {};
    };
    for (std::uint64_t at = 0; at < count; ++at) {
      const auto counts =
          total_row(state.blocks, state.copies, all, state.places[i].first_block + at);
      if (counts == BlockCounts{}) {
        end_row();
        continue;
      }
      if (row.blocks == 0 || row.counts != counts) {
        end_row();
        row = {.object = object.number,
               .address = (begin + at) << state.shift,
               .block_bytes = std::uint64_t{1} << state.shift,
               .blocks = 0,
               .counts = counts};
      }
      ++row.blocks;
    }
    end_row();
    if (blocks.rows() > before) append_object(objects, object, names);
  }
  const auto unknown = total_row(state.blocks, state.copies, all, state.block_count);
  if (unknown != BlockCounts{}) append_row(blocks, BlockRow{.counts = unknown});
  return result_of(launch, {std::move(objects), std::move(blocks)});
}

}  // namespace pasta::device
