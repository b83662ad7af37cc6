// The patch `access`: what a launch asks of each object, what memory moves for it, and at which
// places of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/launch.h"
#include "device/reducers.h"
#include "device/warp.h"

namespace pasta::device {

class Layout;
struct Names;
struct PatchResult;

// Sums over accesses.
struct AccessCounts {
  std::uint64_t reads = 0, writes = 0, atomics = 0;  // of lanes
  std::uint64_t warps = 0;                           // accesses of warps
  std::uint64_t asked_bytes = 0;                     // by lanes: twice what two of them ask for
  // Of global memory:
  std::uint64_t used_bytes = 0;  // of the sectors: what a warp asks for, once
  std::uint64_t sectors = 0;
  std::uint64_t touched = 0;  // bytes; in results only, in states by the marks
  // Of shared memory:
  std::uint64_t passes = 0;
  std::uint64_t passes_without_conflicts = 0;
  bool operator==(const AccessCounts&) const = default;
};

struct SiteCounts {
  std::uint64_t warps = 0, lanes = 0;
  std::uint64_t asked_bytes = 0, used_bytes = 0;
  std::uint64_t sectors = 0;
  std::uint64_t needed_sectors = 0;  // that would hold what each warp asks for
  std::uint64_t misaligned = 0;      // warps that touch a sector more only for where they begin
  std::uint64_t single = 0, broadcast = 0, unit = 0, strided = 0, pieces = 0, gather = 0;  // warps
  std::uint64_t passes = 0, passes_without_conflicts = 0;
  std::uint64_t crowds = 0;  // of atomics: for each warp, the lanes at the address with the most
  bool operator==(const SiteCounts&) const = default;
};
// The most of all accesses; what begins with `least` is kept as ~value, so that it is that, too.
struct SiteExtremes {
  std::uint64_t width = 0;
  std::uint64_t object = 0, least_object = 0;  // index in the launch + 1
  std::uint64_t step = 0, least_step = 0;      // of strided warps: bytes + kStepBias
  std::uint64_t degree = 0;                    // passes of one access
  std::uint64_t crowd = 0;
};
inline constexpr std::uint64_t kStepBias = std::uint64_t{1} << 63;

// What an access of a warp was that is of one object, or of memory that has none. The same come
// again and again, so each is one number to count: by a key of two halves, of who accesses what,
// and how.
struct Outcome {
  enum Kind : std::uint32_t { kAll = 1, kOfSite, kPart };  // what it counts for; a part for none
  std::uint32_t kind = 0, site = 0, row = 0;               // in the tables of the patch
  std::uint32_t lanes = 0, width = 0;
  std::uint32_t sectors = 0, parts = 0;  // parts x width: bytes that are asked for, each once
  std::uint32_t passes = 0, passes_without_conflicts = 0;  // of shared memory, which has no sectors
  std::uint32_t crowd = 0;                                 // of atomics
  Pattern pattern = Pattern::kSingle;
  bool misaligned = false;

  // What is behind them is in the row of no object, and has no site of its own.
  static constexpr unsigned kRowBits = 19;
  static constexpr std::uint32_t kMostSites = 1u << 11, kMostRows = 1u << kRowBits;
  PASTA_DEVICE static std::uint32_t who(Kind kind, std::uint32_t site, std::uint32_t row) {
    return static_cast<std::uint32_t>(kind) << 30 | site << kRowBits | row;
  }
  PASTA_DEVICE static Kind kind_of(std::uint32_t who) { return static_cast<Kind>(who >> 30); }
  PASTA_DEVICE static std::uint32_t site_of(std::uint32_t who) {
    return (who >> kRowBits) % kMostSites;
  }
  PASTA_DEVICE static std::uint32_t row_of(std::uint32_t who) { return who % kMostRows; }

  // Of few bits each, with which `counts` and the width are, or are not.
  PASTA_DEVICE static std::uint32_t how(Pattern pattern, bool misaligned, unsigned lanes,
                                        unsigned crowd) {
    return static_cast<std::uint32_t>(pattern) << 12 | (misaligned ? 1u << 11 : 0) |
           (lanes - 1) << 6 | crowd;
  }
  PASTA_DEVICE static bool is_kept(std::uint32_t width) {
    return width <= kSectorBytes && (width & (width - 1)) == 0;
  }
  PASTA_DEVICE static std::uint32_t with(std::uint32_t how, std::uint32_t counts,
                                         std::uint32_t width) {
    return counts << 18 | lowest_bit(width) << 15 | how;
  }
  // Parts and passes are never 0, but of memory that has neither.
  PASTA_DEVICE static bool is_whole(std::uint32_t how) { return how >> 18 != 0; }
  PASTA_DEVICE static Pattern pattern_of(std::uint32_t how) {
    return static_cast<Pattern>(how >> 12 & 7);
  }
  PASTA_DEVICE static bool is_misaligned(std::uint32_t how) { return (how >> 11 & 1) != 0; }
  PASTA_DEVICE static unsigned crowd_of(std::uint32_t how) { return how & 63; }
  static Outcome of_key(std::uint64_t key, bool global);
};

struct AccessPatch {
  static constexpr std::string_view kFormat = "access/2";
  static constexpr std::uint32_t kCopies = 8;  // of all counters, on a GPU
  // Before the rows of the objects, and behind them.
  enum Row : std::uint32_t { kNoObjectRow, kFirstObjectRow };
  enum Extra : std::uint32_t { kSharedRow, kLocalRow, kExtraRows };
  struct Settings {
    std::uint32_t copies = 1;                     // on a GPU kCopies
    std::uint32_t sites = 1024, outcomes = 4096;  // powers of two
    Marks::Room marks = {.together = std::uint64_t{1} << 30, .each = std::uint64_t{8} << 20};
  };
  // What finds no room among the outcomes, or is none, is counted in the rows.
  struct State {
    std::uint64_t* times;    // copies x outcomes
    AccessCounts* objects;   // copies x rows
    SiteCounts* sites;       // copies x (sites + 1)
    SiteExtremes* extremes;  // sites + 1
    KeyTable keys;           // of sites
    KeyTable outcomes;
    Marks marks;
    ObjectHints hints;
    std::uint32_t copies, rows;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0) return;
    const std::uint32_t site = state.keys.find(site_key(warp.site, warp.space, warp.access));
    if (warp.space != Space::kGlobal) {
      count_other(state, warp, site);
      return;
    }
    warp.match(
        [&](std::uint64_t address) {
          const std::uint32_t row =
              state.hints.find(launch, state.marks.places, address, warp.width) + 1;
          return site << Outcome::kRowBits | (row < Outcome::kMostRows ? row : kNoObjectRow);
        },
        [&](std::uint32_t who, std::uint32_t mask) { count(state, warp, who, mask); });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // Accesses that are never alike are to cost little more than their rows.
  static constexpr std::uint32_t kFewSteps = 8;

  // Of global memory: what these lanes ask for, all of which is of one row.
  template <class AnyWarp>
  PASTA_DEVICE static void count(const State& state, const AnyWarp& warp, std::uint32_t who,
                                 std::uint32_t lanes) {
    // What the lanes are is known again from what they ask of.
    const bool one = warp.all_of(lanes == warp.active);
    who = opaque(who | static_cast<std::uint32_t>(one ? Outcome::kAll : Outcome::kPart) << 30);
    const std::uint32_t how = how_of(state, warp, who);
    const bool counted = Outcome::kind_of(who) == Outcome::kAll && Outcome::is_whole(how) &&
                         count_key(state, warp, std::uint64_t{who} << 32 | how);
    if (warp.all_of(counted && Outcome::row_of(who) != kNoObjectRow)) {
      state.marks.touch(warp, warp.active, Outcome::row_of(who) - kFirstObjectRow);
      return;
    }
    count_rows(state, warp.kept(), {who, how, warp.lanes_of(who, lanes), counted ? 1u : 0u});
  }
  // How all lanes do.
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t how_of(const State& state, const AnyWarp& warp,
                                           std::uint32_t who) {
    const Pattern pattern = warp.pattern(
        [&](std::int64_t bytes) { raise_step(state, warp, Outcome::site_of(who), bytes); });
    const std::uint32_t sectors = warp.sectors(warp.active);
    const std::uint32_t how =
        Outcome::how(pattern, misaligned(warp, pattern, sectors), warp.lanes(),
                     warp.access == Access::kAtomic ? warp.crowd() : 0);
    const std::uint32_t parts = warp.parts(warp.active);
    if (sectors >= 1u << 7 || parts == 0 || !Outcome::is_kept(warp.width)) return how;
    return Outcome::with(how, sectors << 6 | parts, warp.width);
  }
  // Whether it was counted.
  template <class AnyWarp>
  PASTA_DEVICE static bool count_key(const State& state, const AnyWarp& warp, std::uint64_t key) {
    if (Outcome::site_of(static_cast<std::uint32_t>(key >> 32)) >= state.keys.capacity) {
      return false;
    }
    const std::uint32_t at = state.outcomes.find(key, kFewSteps);
    if (at == state.outcomes.capacity) return false;
    warp.add(warp.active, state.times[warp.template copy<kCopies>() * state.outcomes.capacity + at],
             1);
    return true;
  }
  // What was not counted. Of several objects each has its row, and all of them that of the site.
  struct Rest {
    Aside<std::uint32_t> who, how, lanes, counted;
  };
  template <class KeptWarp>
  PASTA_DEVICE static void count_rows(const State& state, const KeptWarp& kept, const Rest& rest) {
    const Footprint part = kept.now().footprint(rest.lanes);
    if (rest.counted == 0) {
      const auto& warp = kept.now();
      const std::uint32_t number = count_bits(rest.lanes);
      warp.add(
          rest.lanes,
          state.objects[warp.template copy<kCopies>() * state.rows + Outcome::row_of(rest.who)],
          {{lanes_number(warp.access), number},
           {PASTA_NUMBER(AccessCounts, warps), 1},
           {PASTA_NUMBER(AccessCounts, asked_bytes), std::uint64_t{number} * warp.width},
           {PASTA_NUMBER(AccessCounts, used_bytes), part.bytes},
           {PASTA_NUMBER(AccessCounts, sectors), part.sectors}});
    }
    const Footprint all = kept.now().footprint(kept.now().active);
    const bool several = rest.lanes != kept.now().active;
    if (several ? kept.now().is_turn(rest.lanes) : rest.counted == 0) {
      count_site(state, kept.now(), rest.how, Outcome::site_of(rest.who), all);
      const std::uint64_t of_all = Outcome::row_of(rest.who), of_several = ~std::uint64_t{0};
      kept.now().raise(
          kept.now().active, state.extremes[Outcome::site_of(rest.who)],
          {{PASTA_NUMBER(SiteExtremes, object), several ? of_several : of_all},
           {PASTA_NUMBER(SiteExtremes, least_object), several ? of_several : ~of_all}});
    }
    if (Outcome::row_of(rest.who) != kNoObjectRow) {
      state.marks.touch(kept.now(), rest.lanes, Outcome::row_of(rest.who) - kFirstObjectRow);
    }
  }
  template <class AnyWarp>
  PASTA_DEVICE static void count_site(const State& state, const AnyWarp& warp, std::uint32_t how,
                                      std::uint32_t site, const Footprint& all) {
    const bool is_misaligned =
        misaligned(warp, Outcome::pattern_of(how), static_cast<std::uint32_t>(all.sectors));
    warp.add(warp.active,
             state.sites[warp.template copy<kCopies>() * (state.keys.capacity + 1) + site],
             {{PASTA_NUMBER(SiteCounts, warps), 1},
              {PASTA_NUMBER(SiteCounts, lanes), warp.lanes()},
              {PASTA_NUMBER(SiteCounts, asked_bytes), std::uint64_t{warp.lanes()} * warp.width},
              {PASTA_NUMBER(SiteCounts, used_bytes), all.bytes},
              {PASTA_NUMBER(SiteCounts, sectors), all.sectors},
              {PASTA_NUMBER(SiteCounts, needed_sectors), sectors_for(all.bytes)},
              {PASTA_NUMBER(SiteCounts, misaligned), is_misaligned ? 1u : 0u},
              {PASTA_NUMBER(SiteCounts, crowds), Outcome::crowd_of(how)},
              {pattern_number(Outcome::pattern_of(how)), 1}});
    warp.raise(warp.active, state.extremes[site],
               {{PASTA_NUMBER(SiteExtremes, width), warp.width},
                {PASTA_NUMBER(SiteExtremes, crowd), Outcome::crowd_of(how)}});
  }
  template <class AnyWarp>
  PASTA_DEVICE static bool misaligned(const AnyWarp& warp, Pattern pattern, std::uint32_t sectors) {
    // Lanes that stay out leave gaps, which are not for where the warp begins.
    const bool more = sectors > sectors_for(warp.span() * warp.width);
    return (pattern == Pattern::kUnit) & more;
  }
  // Of shared and local memory. What a place counts is the memory's, too, but of places that found
  // no room.
  template <class AnyWarp>
  PASTA_DEVICE static void count_other(const State& state, const AnyWarp& warp,
                                       std::uint32_t site) {
    const bool shared = warp.space == Space::kShared;
    const Pattern pattern =
        warp.pattern([&](std::int64_t bytes) { raise_step(state, warp, site, bytes); });
    const Passes passes = shared ? warp.passes() : Passes{0, 0};
    const unsigned crowd = warp.access == Access::kAtomic ? warp.crowd() : 0;
    const std::uint32_t how = Outcome::how(pattern, false, warp.lanes(), crowd);
    if (passes.needed < 1u << 9 && passes.without_conflicts < 1u << 4 &&
        Outcome::is_kept(warp.width)) {
      const std::uint32_t who = Outcome::who(Outcome::kOfSite, site, kNoObjectRow);
      const std::uint32_t counts = passes.needed << 4 | passes.without_conflicts;
      if (count_key(state, warp,
                    std::uint64_t{who} << 32 | Outcome::with(how, counts, warp.width))) {
        return;
      }
    }
    const std::uint64_t asked = std::uint64_t{warp.lanes()} * warp.width;
    warp.add(warp.active,
             state.sites[warp.template copy<kCopies>() * (state.keys.capacity + 1) + site],
             {{PASTA_NUMBER(SiteCounts, warps), 1},
              {PASTA_NUMBER(SiteCounts, lanes), warp.lanes()},
              {PASTA_NUMBER(SiteCounts, asked_bytes), asked},
              {PASTA_NUMBER(SiteCounts, passes), passes.needed},
              {PASTA_NUMBER(SiteCounts, passes_without_conflicts), passes.without_conflicts},
              {PASTA_NUMBER(SiteCounts, crowds), crowd},
              {pattern_number(pattern), 1}});
    warp.raise(warp.active, state.extremes[site],
               {{PASTA_NUMBER(SiteExtremes, width), warp.width},
                {PASTA_NUMBER(SiteExtremes, crowd), crowd},
                {PASTA_NUMBER(SiteExtremes, degree), passes.needed}});
    if (site != state.keys.capacity) return;
    const std::uint32_t row = state.rows - kExtraRows + (shared ? kSharedRow : kLocalRow);
    warp.add(warp.active, state.objects[warp.template copy<kCopies>() * state.rows + row],
             {{lanes_number(warp.access), warp.lanes()},
              {PASTA_NUMBER(AccessCounts, warps), 1},
              {PASTA_NUMBER(AccessCounts, asked_bytes), asked},
              {PASTA_NUMBER(AccessCounts, passes), passes.needed},
              {PASTA_NUMBER(AccessCounts, passes_without_conflicts), passes.without_conflicts}});
  }
  template <class AnyWarp>
  PASTA_DEVICE static void raise_step(const State& state, const AnyWarp& warp, std::uint32_t site,
                                      std::int64_t bytes) {
    const std::uint64_t step = static_cast<std::uint64_t>(bytes) + kStepBias;
    warp.raise(warp.active, state.extremes[site],
               {{PASTA_NUMBER(SiteExtremes, step), step},
                {PASTA_NUMBER(SiteExtremes, least_step), ~step}});
  }

  template <class Bytes>
  PASTA_DEVICE static Bytes sectors_for(Bytes bytes) {
    return (bytes + (kSectorBytes - 1)) / kSectorBytes;
  }
  // In the order of the enumerations.
  PASTA_DEVICE static std::uint32_t lanes_number(Access access) {
    return PASTA_NUMBER(AccessCounts, reads) + static_cast<std::uint32_t>(access);
  }
  PASTA_DEVICE static std::uint32_t pattern_number(Pattern pattern) {
    return PASTA_NUMBER(SiteCounts, single) + static_cast<std::uint32_t>(pattern);
  }
  static_assert(PASTA_NUMBER(AccessCounts, atomics) ==
                PASTA_NUMBER(AccessCounts, reads) + static_cast<std::uint32_t>(Access::kAtomic));
  static_assert(PASTA_NUMBER(SiteCounts, gather) ==
                PASTA_NUMBER(SiteCounts, single) + static_cast<std::uint32_t>(Pattern::kGather));

  struct Totals;
};

// --- Rows of the result

struct AccessRow {
  std::uint64_t object = 0;  // its number, or one of those in result.h
  // `counts.touched` is bytes here, of pieces of so many, so at most so many too large for each;
  // 1: exact.
  std::uint64_t granule = 1;
  AccessCounts counts = {};
  bool operator==(const AccessRow&) const = default;
};
struct SiteRow {
  std::uint64_t site = 0;               // kOtherSites: all that found no room in the table
  std::uint64_t space = 0, access = 0;  // as the enumerations
  std::uint64_t width = 0;              // of the widest access
  std::uint64_t object = 0;             // its number, or one of those in result.h
  SiteCounts counts = {};
  std::int64_t least_step = 0, most_step = 0;  // bytes from lane to lane, of strided warps
  std::uint64_t degree = 0;                    // the most passes that one access took
  std::uint64_t crowd = 0;                     // the most lanes at one address, of atomics
  bool operator==(const SiteRow&) const = default;
};
}  // namespace pasta::device
