#include "tools/access/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "base/units.h"
#include "device/result.h"
#include "device/warp.h"
#include "tools/common/ratio.h"

namespace pasta::tools {
namespace {

using device::kBanks;
using device::kWordBytes;

// The one stride there is, in bytes.
std::optional<std::int64_t> stride_of(const SiteSum& site) {
  const bool one = site.counts.strided > 0 && site.least_step == site.most_step;
  return one ? std::optional(site.least_step) : std::nullopt;
}

std::uint64_t size_of(std::int64_t step) {
  return step < 0 ? ~static_cast<std::uint64_t>(step) + 1 : static_cast<std::uint64_t>(step);
}

// "512 elements of 4 bytes", or "517 bytes".
std::string elements(std::int64_t step, std::uint64_t width) {
  const std::uint64_t bytes = size_of(step);
  if (width == 0 || bytes % width != 0) return fmt::format("{} bytes", bytes);
  return fmt::format("{} {} of {} {}", bytes / width, bytes == width ? "element" : "elements",
                     width, width == 1 ? "byte" : "bytes");
}

enum class Main : std::uint8_t { kSingle, kBroadcast, kUnit, kStrided, kPieces, kGather };

// Of equals the first.
Main main_pattern(const device::SiteCounts& c) {
  const std::array warps = {c.single, c.broadcast, c.unit, c.strided, c.pieces, c.gather};
  return static_cast<Main>(std::ranges::max_element(warps) - warps.begin());
}

}  // namespace

void SiteSum::add(const device::SiteRow& row) {
  object = counts.warps == 0 || object == row.object ? row.object : device::kSeveralObjects;
  if (row.counts.strided > 0) {
    least_step = counts.strided > 0 ? std::min(least_step, row.least_step) : row.least_step;
    most_step = counts.strided > 0 ? std::max(most_step, row.most_step) : row.most_step;
  }
  device::add_row(counts, row.counts);
  width = std::max(width, row.width);
  degree = std::max(degree, row.degree);
  crowd = std::max(crowd, row.crowd);
}

std::string pattern_of(const SiteSum& site) {
  switch (main_pattern(site.counts)) {
    case Main::kSingle:
      return "single lane";
    case Main::kBroadcast:
      return "broadcast";
    case Main::kUnit:
      return "unit";
    case Main::kPieces:
      return "pieces";
    case Main::kGather:
      return "gather";
    case Main::kStrided:
      break;
  }
  if (const auto stride = stride_of(site)) return fmt::format("strided by {} B", *stride);
  return fmt::format("strided by {} to {} B", site.least_step, site.most_step);
}

double excess_sectors(const SiteSum& site) {
  return ratio(site.counts.sectors, site.counts.needed_sectors);
}
double excess_passes(const SiteSum& site) {
  return ratio(site.counts.passes, site.counts.passes_without_conflicts);
}
double mean_crowd(const SiteSum& site) { return ratio(site.counts.crowds, site.counts.warps); }

std::string sector_advice(const SiteSum& site) {
  const double fewer = excess_sectors(site);
  const double touched = ratio(site.counts.sectors, site.counts.warps);
  switch (main_pattern(site.counts)) {
    case Main::kStrided:
      if (const auto stride = stride_of(site)) {
        return fmt::format(
            "pitch {}: a warp touches {:.1f} sectors; swap the loops so that lanes next to each "
            "other access elements next to each other, or go through a tile in shared memory: "
            "{:.1f} times fewer sectors",
            elements(*stride, site.width), touched, fewer);
      }
      break;
    case Main::kUnit:
      return fmt::format("let rows begin at multiples of 32 bytes: {:.1f} times fewer sectors",
                         fewer);
    case Main::kGather:
      return fmt::format(
          "a warp touches {:.1f} sectors: sort the indices, or put what is used together next to "
          "each other: up to {:.1f} times fewer sectors",
          touched, fewer);
    case Main::kSingle:
      return fmt::format(
          "one lane accesses {} of a sector of 32 bytes: let the warp's lanes share "
          "the work, up to {:.1f} times fewer sectors",
          base::format_bytes(site.width),
          static_cast<double>(device::kSectorBytes) /
              static_cast<double>(std::max<std::uint64_t>(site.width, 1)));
    default:
      break;
  }
  return fmt::format(
      "let lanes next to each other access elements next to each other: up to {:.1f} times fewer "
      "sectors",
      fewer);
}

std::string conflict_advice(const SiteSum& site) {
  const auto stride = stride_of(site);
  const std::uint64_t bytes = stride ? size_of(*stride) : 0;
  if (stride && site.width <= kWordBytes && bytes % kWordBytes == 0) {
    const std::uint64_t words = bytes / kWordBytes;
    // Lanes meet in a bank as often as the stride and the banks have a common divisor.
    std::uint64_t padding = 1;
    while (std::gcd(words + padding, std::uint64_t{kBanks}) != 1) ++padding;
    return fmt::format(
        "lanes are {} words apart: pad rows to {} words, so that each lane has a "
        "bank of its own: {:.1f} times fewer passes",
        words, words + padding, excess_passes(site));
  }
  return fmt::format(
      "let the lanes of a warp access words of different banks, or pad rows by one "
      "word: up to {:.1f} times fewer passes",
      excess_passes(site));
}

std::string contention_advice(const SiteSum& site) {
  const double lanes = ratio(site.counts.lanes, site.counts.warps);
  if (main_pattern(site.counts) == Main::kBroadcast) {
    return fmt::format(
        "reduce within the warp first, and let one lane do the atomic operation: "
        "{:.1f} times fewer",
        lanes);
  }
  return fmt::format(
      "{:.1f} of {:.1f} lanes wait for one another: keep a copy for each {} in "
      "shared memory, and add them up at the end",
      mean_crowd(site), lanes, site.object == device::kSharedMemory ? "warp" : "warp or group");
}

}  // namespace pasta::tools
