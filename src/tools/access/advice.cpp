#include "tools/access/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

void SiteSum::add(const SiteSum& other) {
  object = counts.warps == 0 || object == other.object ? other.object : device::kSeveralObjects;
  if (other.counts.strided > 0) {
    const bool first = counts.strided == 0;
    least_step = first ? other.least_step : std::min(least_step, other.least_step);
    most_step = first ? other.most_step : std::max(most_step, other.most_step);
  }
  device::add_row(counts, other.counts);
  width = std::max(width, other.width);
  degree = std::max(degree, other.degree);
  crowd = std::max(crowd, other.crowd);
}

void SiteSum::add(const device::SiteRow& row) {
  add(SiteSum{.counts = row.counts,
              .width = row.width,
              .degree = row.degree,
              .crowd = row.crowd,
              .least_step = row.least_step,
              .most_step = row.most_step,
              .object = row.object});
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

double used_share(const SiteSum& site) {
  const double moved = static_cast<double>(site.counts.sectors) * device::kSectorBytes;
  return moved > 0 ? static_cast<double>(site.counts.used_bytes) / moved : 1;
}

Fault fault_of(const SiteSum& site) {
  constexpr double kPoor = 0.5;         // of what is moved
  constexpr double kManySectors = 1.2;  // for each that is needed
  constexpr std::uint64_t kFewBytes = 128;
  const device::SiteCounts& c = site.counts;
  const Main main = main_pattern(c);
  const bool misaligned = c.misaligned > 0 && excess_sectors(site) >= kManySectors;
  if (used_share(site) >= kPoor) return misaligned ? Fault::kMisaligned : Fault::kNone;
  // Without what alignment costs.
  const bool gaps =
      ratio(c.sectors - std::min(c.misaligned, c.sectors), c.needed_sectors) >= kManySectors;
  switch (main) {
    case Main::kSingle:
      return Fault::kFew;
    case Main::kBroadcast:
      return Fault::kBroadcast;
    case Main::kUnit:
      return gaps ? Fault::kGaps : misaligned ? Fault::kMisaligned : Fault::kFew;
    case Main::kStrided: {
      const auto stride = stride_of(site);
      if (!stride) return Fault::kMixed;
      return size_of(*stride) <= kFewBytes ? Fault::kStructures : Fault::kRows;
    }
    case Main::kPieces:
      return Fault::kMixed;
    case Main::kGather:
      break;
  }
  return Fault::kGather;
}

std::string sector_advice(const SiteSum& site, double times) {
  constexpr double kOneLane = 1.05;  // would be written as 1.0
  const double fewer = excess_sectors(site);
  const double touched = ratio(site.counts.sectors, site.counts.warps);
  const double lanes = ratio(site.counts.lanes, site.counts.warps);
  // As many elements as this are in a sector.
  const double held = static_cast<double>(device::kSectorBytes) /
                      static_cast<double>(std::max<std::uint64_t>(site.width, 1));
  switch (fault_of(site)) {
    case Fault::kMisaligned:
      return fmt::format(
          "let rows begin at multiples of 32 bytes, by padding them or by beginning earlier: "
          "{:.1f} "
          "times fewer sectors",
          fewer);
    case Fault::kBroadcast: {
      const std::string often =
          times >= 2 ? fmt::format(", {:.1f} times in each warp", times) : std::string();
      return fmt::format(
          "all lanes access the same {}{}: let each read another element and pass it on through "
          "shared memory, or read several at once: up to {:.1f} times fewer sectors",
          base::format_bytes(site.width), often, held);
    }
    case Fault::kFew:
      return fmt::format(
          "{} {} of a sector of 32 bytes: let the warp's lanes share the work, up to {:.1f} times "
          "fewer sectors",
          lanes < kOneLane ? std::string("one lane of a warp accesses")
                           : fmt::format("{:.1f} lanes of a warp access", lanes),
          base::format_bytes(static_cast<std::uint64_t>(
              std::llround(ratio(site.counts.used_bytes, site.counts.warps)))),
          1 / used_share(site));
    case Fault::kGaps:
      return fmt::format(
          "{:.1f} lanes of a warp take part, with others between them that do not: let those that "
          "have work follow one another, as by a list of what there is to do: {:.1f} times fewer "
          "sectors",
          lanes, fewer);
    case Fault::kStructures: {
      const std::uint64_t bytes = size_of(*stride_of(site));
      return fmt::format(
          "lanes are {} apart, as in structures of which a field is accessed: keep each field in "
          "an "
          "array of its own, or read structures as a whole, through a tile in shared memory: "
          "{:.1f} "
          "times fewer sectors",
          base::format_bytes(bytes), fewer);
    }
    case Fault::kRows:
      return fmt::format(
          "row pitch {}: a warp touches {:.1f} sectors; swap the loops so that lanes next to each "
          "other access elements next to each other, or go through a tile in shared memory: "
          "{:.1f} times fewer sectors",
          elements(*stride_of(site), site.width), touched, fewer);
    case Fault::kGather:
      return fmt::format(
          "a warp touches {:.1f} sectors: sort the indices, or put what is used together next to "
          "each other: up to {:.1f} times fewer sectors",
          touched, fewer);
    case Fault::kMixed:
    case Fault::kNone:
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
  // What a lane accesses at once lies in so many banks, and so many lanes are served at once.
  const std::uint64_t width = std::max<std::uint64_t>(site.width, kWordBytes);
  const std::uint64_t together = kBanks * kWordBytes / width;
  if (stride && std::has_single_bit(width) && together > 1 && bytes % width == 0) {
    const std::uint64_t apart = bytes / width;
    // Lanes meet in a bank as often as the stride and the banks have a common divisor.
    std::uint64_t padding = 0;
    while (std::gcd(apart + padding, together) != 1) ++padding;
    const std::string what =
        width == kWordBytes ? "words" : fmt::format("elements of {} bytes", width);
    if (padding > 0) {
      return fmt::format(
          "lanes are {} {} apart: pad rows to {}, so that each lane has a bank of its own: {:.1f} "
          "times fewer passes",
          apart, what, apart + padding, excess_passes(site));
    }
  }
  return fmt::format(
      "let the lanes of a warp access words of different banks, or pad rows by one "
      "word: up to {:.1f} times fewer passes",
      excess_passes(site));
}

std::string contention_advice(const SiteSum& site, double of_group) {
  const double lanes = ratio(site.counts.lanes, site.counts.warps);
  const std::string fewer =
      of_group > 0 ? fmt::format(": {:.1f} times fewer at each address", of_group) : std::string();
  if (main_pattern(site.counts) == Main::kBroadcast) {
    return fmt::format(
        "reduce within the warp first, and let one lane do the atomic operation: {:.1f} times "
        "fewer; or within the group{}",
        lanes, fewer);
  }
  return fmt::format(
      "{:.1f} of {:.1f} lanes wait for one another: keep a copy for each {} in shared memory, and "
      "add them up at the end{}",
      mean_crowd(site), lanes, site.object == device::kSharedMemory ? "warp" : "group", fewer);
}

}  // namespace pasta::tools
