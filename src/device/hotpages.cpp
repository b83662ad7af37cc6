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

HotpagesPatch::State HotpagesPatch::lay_out(const Launch& launch, const Settings& settings,
                                            Layout& layout) {
  State state{};
  const std::uint32_t pieces = Pieces::count(launch);
  state.last_piece = pieces - 1;
  state.copies = std::max(settings.copies, 1u);
  while (std::uint64_t{1} << state.shift < settings.least_block) ++state.shift;
  std::vector<std::uint64_t> first(launch.object_count);
  // Each object has one block at least, whatever their size.
  const std::uint64_t most = std::max<std::uint64_t>(settings.most_blocks, launch.object_count * 2);
  std::uint64_t count = 0;
  while ((count = place(launch, state.shift, first)) > most) ++state.shift;
  state.rows = static_cast<std::uint32_t>(count + 1);
  // The rows lie behind the other arrays.
  const std::uint64_t first_row =
      (kHeaderBytes<HotpagesPatch> + Layout::rounded(pieces * sizeof(Pieces::Piece)) +
       Layout::rounded(launch.object_count * sizeof(Pieces::Place))) /
      sizeof(BlockCounts);
  const auto places = Pieces::places(launch, [&](std::uint32_t i) {
    return Pieces::Target{.row = state.shift,
                          .base = static_cast<std::uint32_t>(
                              first_row + first[i] - (launch.objects[i].address >> state.shift))};
  });
  state.nothing = {.row = kNoRow, .base = static_cast<std::uint32_t>(first_row + count)};
  state.pieces = layout.table<Pieces::Piece>(
      pieces, [&](std::span<Pieces::Piece> made) { Pieces::plan(places, made); });
  state.places = layout.table(std::span<const Pieces::Place>(places));
  state.blocks = layout.counters<BlockCounts>(std::uint64_t{state.copies} * state.rows);
  return state;
}

PatchResult HotpagesPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects}, blocks{.id = TableId::kBlocks};
  const BlockCounts* next = state.blocks;
  const auto next_counts = [&] { return total_row(next++, state.copies, state.rows, 0); };
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    const MemoryObject& object = launch.objects[i];
    const std::uint64_t count = granules_of(object, state.shift);
    const std::uint64_t begin = object.address >> state.shift;
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
  const BlockCounts unknown = next_counts();
  if (unknown != BlockCounts{}) append_row(blocks, BlockRow{.counts = unknown});
  return result_of(launch, {std::move(objects), std::move(blocks)});
}

}  // namespace pasta::device
