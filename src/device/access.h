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

// What an access of a warp was whose lanes are all of one object, or of none: of which the same
// come again and again, so that each is one number to count. All of it is in a key of two halves.
// What finds no room in one is none of these.
struct Outcome {
  std::uint32_t place = 0;  // what it is of: see at_place()
  Access access = Access::kRead;
  std::uint32_t row = 0;  // of the tables of the patch
  std::uint32_t lanes = 0, width = 0;
  Pattern pattern = Pattern::kSingle;
  std::uint32_t crowd = 0;  // of atomics
  // Of global memory; parts x width: bytes that are asked for, each once.
  std::uint32_t sectors = 0, parts = 0;
  bool misaligned = false;
  // Of shared memory.
  std::uint32_t passes = 0, passes_without_conflicts = 0;

  struct Key {
    std::uint32_t low, high;
    [[nodiscard]] PASTA_DEVICE std::uint64_t both() const {
      return std::uint64_t{high} << 32 | low;
    }
  };
  // Objects have rows below these.
  static constexpr unsigned kRowBits = 15;
  static constexpr std::uint32_t kSharedRow = (1u << kRowBits) - 1, kLocalRow = kSharedRow - 1,
                                 kEndOfRows = kLocalRow;

  // Of a place there are so many bits; those below it, of each number of a place, are 0.
  static constexpr unsigned kPlaceBits = 19;
  PASTA_DEVICE static bool has_place(std::uint64_t site, unsigned site_bits) {
    return (site & ~(std::uint64_t{(1u << kPlaceBits) - 1} << site_bits)) == 0;
  }
  PASTA_DEVICE static bool is_kept(std::uint32_t width) {
    return width <= kSectorBytes && (width & (width - 1)) == 0;
  }
  // The lower half, without the pattern.
  PASTA_DEVICE static std::uint32_t at_place(std::uint64_t site, unsigned site_bits, Access access,
                                             std::uint32_t width, std::uint32_t lanes) {
    return static_cast<std::uint32_t>(site) << (32 - kPlaceBits - site_bits) |
           static_cast<std::uint32_t>(access) << 11 | lowest_bit(width) << 8 | (lanes - 1) << 3;
  }
  PASTA_DEVICE static std::uint32_t width_bits_of(std::uint32_t low) { return low >> 8 & 7; }
  PASTA_DEVICE static std::uint32_t width_of(std::uint32_t low) { return 1u << width_bits_of(low); }
  PASTA_DEVICE static std::uint32_t lanes_of(std::uint32_t low) { return low >> 3 & 31; }
  PASTA_DEVICE static std::uint64_t site_of(std::uint32_t low, unsigned site_bits) {
    return std::uint64_t{low >> (32 - kPlaceBits)} << site_bits;
  }
  PASTA_DEVICE static Access access_of(std::uint32_t low) {
    return static_cast<Access>(low >> 11 & 3);
  }
  PASTA_DEVICE static Pattern pattern_of(std::uint32_t low) {
    return static_cast<Pattern>(low & 7);
  }
  // The upper half, which is never 0. What is 1 at least, as lanes, is less 1 everywhere here.
  PASTA_DEVICE static std::uint32_t of_row(std::uint32_t row) { return row << 17 | 1; }
  PASTA_DEVICE static std::uint32_t row_of(std::uint32_t high) { return high >> 17; }
  PASTA_DEVICE static std::uint32_t of_sectors(std::uint32_t more) { return more << 11; }
  // Of lanes that are a unit, of which there are as many parts as lanes, their span.
  PASTA_DEVICE static std::uint32_t of_parts(std::uint32_t more) { return more << 6; }
  PASTA_DEVICE static bool is_one_part(std::uint32_t high) { return (high >> 6 & 31) == 0; }
  PASTA_DEVICE static std::uint32_t of_passes(std::uint32_t more) { return more << 10; }
  PASTA_DEVICE static std::uint32_t of_least_passes(std::uint32_t more) { return more << 6; }
  PASTA_DEVICE static std::uint32_t of_crowd(std::uint32_t more) { return more << 1; }
  static Outcome of_key(std::uint64_t key);
};

struct AccessPatch {
  static constexpr std::string_view kFormat = "access/2";
  static constexpr std::uint32_t kTimes = 8;        // of what outcomes count, on a GPU
  static constexpr std::uint32_t kOutcomes = 2048;  // there
  // Before the rows of the objects, and behind them.
  enum Row : std::uint32_t { kNoObjectRow, kFirstObjectRow };
  enum Extra : std::uint32_t { kSharedRow, kLocalRow, kExtraRows };
  struct Settings {
    bool on_gpu = false;         // outcomes are before the header, and there are kOutcomes
    std::uint32_t sites = 1024;  // powers of two
    std::uint32_t outcomes = 4096;
    Marks::Room marks = {.together = std::uint64_t{1} << 30, .each = std::uint64_t{8} << 20};
  };
  // From the least to the most of steps of strided warps, in bytes + kStepBias; `least` as ~value.
  struct Steps {
    std::uint64_t most, least;
  };
  struct Shared {
    Pieces::Table objects;  // of which each has its row
    std::uint64_t words;    // of marks
  };
  // Objects, sites and extremes are of what finds no room among the outcomes, or is none.
  struct State {
    Shared shared;
    std::uint32_t* words;    // of marks, which the block begins with
    std::uint64_t* times;    // copies x outcomes
    Steps* steps;            // of outcomes that are strided
    AccessCounts* objects;   // rows
    SiteCounts* sites;       // sites + 1
    SiteExtremes* extremes;  // as many
    KeyTable keys;           // of sites
    KeyTable outcomes;
    std::uint32_t site_bits;  // of the number of each site, so many are 0
    std::uint32_t times_copies, rows;
  };
  static Shared share(const Launch& objects, const Settings& settings, Layout& layout);
  static State lay_out(const Launch& launch, const Shared& shared, const Settings& settings,
                       Layout& layout);
  // On a GPU, before the header: the keys of outcomes and how often each was.
  static constexpr std::uint32_t kTimesBytesBefore = kTimes * kOutcomes * sizeof(std::uint64_t);
  static constexpr std::uint32_t kBytesBefore =
      kTimesBytesBefore + kOutcomes * sizeof(std::uint64_t);
  static constexpr std::uint32_t kResultBytesBefore = kBytesBefore;

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0) return;
    typename AnyWarp::Kept::Memory memory;
    typename AnyWarp::Kept kept(memory, warp.space);
    AsideHalves site;
    if constexpr (AnyWarp::kWide) {
      kept = warp;
      site = warp.site;
    } else {
      // What of the warp is needed later is made of the key again, for which there is a register.
      if (Outcome::is_kept(warp.width) && Outcome::has_place(warp.site, AnyWarp::kSiteBits)) {
        Outcome::Key key = {late(Outcome::at_place(warp.site, AnyWarp::kSiteBits, warp.access,
                                                   warp.width, warp.lanes())),
                            0};
        if (count_at_once(state, warp, key)) return;
        kept = warp.with(Outcome::access_of(late(key.low)), Outcome::width_of(late(key.low)));
        site = Outcome::site_of(late(key.low), AnyWarp::kSiteBits);
      } else {
        kept = warp;
        site = warp.site;
      }
    }
    kept.now().gather();
    look_at(state, launch, kept, site);
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // --- Without a look at each lane

  // What most warps do; false: it was not counted. The lower half of the key is there but for the
  // pattern.
  template <class AnyWarp>
  PASTA_DEVICE static bool count_at_once(const State& state, const AnyWarp& warp,
                                         Outcome::Key& key) {
    if (warp.space == Space::kGlobal) {
      if (!see_global(state, warp, key)) return false;
    } else {
      see_other(warp, key);
    }
    const std::uint32_t at = find(state, key);
    if (at == outcomes(state)) return false;
    add_one(state, warp, at);
    if (Outcome::pattern_of(key.low) == Pattern::kStrided) {
      const std::uint64_t step = static_cast<std::uint64_t>(warp.step()) + kStepBias;
      raise_steps(state, warp, at, step, ~step);
    }
    return true;
  }
  // Of lanes in the order of their addresses, of one object of which pieces tell. Of such lanes
  // what differs from the lane before is new. Marks are set, too, whatever becomes of it.
  template <class AnyWarp>
  PASTA_DEVICE static bool see_global(const State& state, const AnyWarp& warp, Outcome::Key& key) {
    const Pieces::Table& table = state.shared.objects;
    const bool here = Pieces::holds(
        fixed(fixed(table.pieces)[Pieces::index(fixed(table.last_piece), warp.address)].ends),
        warp.address, Outcome::width_of(key.low));
    // Where the lane before begins; the first has itself before it, and is no different.
    std::uint32_t before;
    const bool is_near = warp.is_near_lane_before(before);
    const auto at = static_cast<std::uint32_t>(warp.address);
    if (!warp.all_of(here & is_near & (at >= before))) return false;
    // All less 1, as keys have them. What is known goes into the key at once, as there are no
    // registers for it.
    const std::uint32_t parts = count_bits(warp.lanes_with(at != before));
    key.high = Outcome::of_row(0) + Outcome::of_parts(parts);
    if (Outcome::access_of(key.low) == Access::kAtomic) {
      // How many lanes ask for the same is not seen so where some do.
      const std::uint32_t lanes = Outcome::lanes_of(key.low);
      if (parts != lanes && parts != 0) return false;
      key.high += Outcome::of_crowd(lanes - parts);
    }
    const std::uint32_t pieces = count_bits(
        warp.lanes_with(at - before != warp.from_lane_before() << Outcome::width_bits_of(key.low)));
    if (pieces == 0) key.high += Outcome::of_parts(warp.span() - 1 - Outcome::lanes_of(key.low));
    key.low = opaque(key.low | static_cast<std::uint32_t>(warp.template pattern_of<true>(
                                   Outcome::lanes_of(key.low), pieces, at - before,
                                   [&] { return Outcome::is_one_part(key.high); })));
    const std::uint32_t sectors = count_bits(warp.lanes_with((at ^ before) / kSectorBytes != 0));
    key.high += Outcome::of_sectors(sectors);
    // Looked for again, as there are no registers for it meanwhile. That this is no earlier is seen
    // to by what is 0, of which compilers do not know that.
    const Pieces::Target target = fixed(
        hint(table.pieces)[Pieces::index(hint(table.last_piece), warp.address + (sectors >> 5))]
            .target);
    // Mostly all lanes are of one piece. Those of several may be of several objects.
    if (!warp.all_of((at ^ before) >> Pieces::kBits == 0) &&
        !warp.all_of(target.row == warp.of_first_lane(target.row))) {
      return false;
    }
    key.high += Outcome::of_row(Marks::row_of(target.row)) - Outcome::of_row(0);
    if (Marks::row_of(target.row) >= Outcome::kEndOfRows) return false;
    marks(state).template in_order<0, false>(warp, target, Outcome::width_bits_of(key.low),
                                             warp.rank() == 0, at, before);
    return true;
  }
  template <class AnyWarp>
  PASTA_DEVICE static void see_other(const AnyWarp& warp, Outcome::Key& key) {
    const Pattern pattern = warp.pattern_of_low(Outcome::width_bits_of(key.low));
    key.low = opaque(key.low | static_cast<std::uint32_t>(pattern));
    if (warp.space == Space::kShared) {
      const std::uint32_t least =
          warp.passes_without_conflicts(Outcome::width_bits_of(key.low)) - 1;
      key.high = Outcome::of_row(Outcome::kSharedRow) + Outcome::of_least_passes(least) +
                 Outcome::of_passes(least);
      // One word, or those that follow one another, are in no conflict.
      if (pattern > Pattern::kUnit) {
        key.high += Outcome::of_passes(warp.conflicts(Outcome::width_bits_of(key.low)));
      }
    } else {
      key.high = Outcome::of_row(Outcome::kLocalRow);
    }
    if (Outcome::access_of(key.low) == Access::kAtomic) {
      key.high += Outcome::of_crowd(warp.crowd_of_low() - 1);
    }
  }

  // --- Outcomes

  // On a GPU nothing has to be read to find where these are, nor how many there are.
  PASTA_DEVICE static std::uint64_t* times(const State& state) {
#ifdef PASTA_ON_GPU
    return reinterpret_cast<std::uint64_t*>(header_of<AccessPatch>(state) - kTimesBytesBefore);
#else
    return state.times;
#endif
  }
  PASTA_DEVICE static std::uint64_t& key_at(const State& state, std::uint32_t at) {
#ifdef PASTA_ON_GPU
    return *reinterpret_cast<std::uint64_t*>(header_of<AccessPatch>(state) +
                                             at * sizeof(std::uint64_t) - kBytesBefore);
#else
    return state.outcomes.keys[at];
#endif
  }
  PASTA_DEVICE static std::uint32_t outcomes(const State& state) {
#ifdef PASTA_ON_GPU
    static_cast<void>(state);
    return kOutcomes;
#else
    return state.outcomes.capacity;
#endif
  }
  // Which it is; as many as there are: there is no room for it. First as far as this
  // multiprocessor has seen, as a key that is there stays for ever.
  PASTA_DEVICE static std::uint32_t find(const State& state, const Outcome::Key& key) {
    if (outcomes(state) == 0) return 0;
    std::uint32_t at = first_of(state, key);
    if (is(hint(key_at(state, at)), key)) return at;
    at = (at + 1) & (outcomes(state) - 1);
    if (is(hint(key_at(state, at)), key)) return at;
    return find_far(state, key);
  }
  PASTA_DEVICE static std::uint32_t first_of(const State& state, const Outcome::Key& key) {
    return (key.low * 0x9e3779b1u + key.high) * 0x85ebca6bu >> 12 & (outcomes(state) - 1);
  }
  // The number of the step is above where it is, so that both are in one register.
  PASTA_DEVICE static std::uint32_t find_far(const State& state, const Outcome::Key& key) {
    PASTA_ROLLED for (std::uint32_t at = first_of(state, key); at < kFarSteps * kStep;
                      at += kStep + 1) {
      const std::uint32_t here = at & (outcomes(state) - 1);
      std::uint64_t& there = key_at(state, here);
      const std::uint64_t seen = latest(there);
      if (seen == 0 ? claims(there, key) : is(seen, key)) {
        forget_hints();
        return here;
      }
    }
    return outcomes(state);
  }
  static constexpr std::uint32_t kFarSteps = 8, kStep = 1u << 20, kMostOutcomes = kStep / 2;
  static_assert(kOutcomes <= kMostOutcomes);
  PASTA_DEVICE static bool is(std::uint64_t seen, const Outcome::Key& key) {
    return seen == key.both();
  }
  PASTA_DEVICE static bool claims(std::uint64_t& there, const Outcome::Key& key) {
    const std::uint64_t before = replace_zero(there, key.both());
    return before == 0 || is(before, key);
  }
  template <class AnyWarp>
  PASTA_DEVICE static void add_one(const State& state, const AnyWarp& warp, std::uint32_t outcome) {
    warp.add(warp.active, times(state)[warp.template copy<kTimes>() * outcomes(state) + outcome],
             1);
  }
  template <class AnyWarp, class Value>
  PASTA_DEVICE static void raise_steps(const State& state, const AnyWarp& warp,
                                       std::uint32_t outcome, const Value& step,
                                       const Value& least) {
    warp.raise(warp.active, state.steps[outcome].most, step);
    warp.raise(warp.active, state.steps[outcome].least, least);
  }

  // --- Objects

  PASTA_DEVICE static Pieces::Target target(const State& state, const Launch& launch,
                                            std::uint64_t address, std::uint32_t bytes) {
    return Pieces::find(launch, state.shared.objects, address, bytes);
  }
  PASTA_DEVICE static Marks marks(const State& state) {
    return {behind_header<AccessPatch, std::uint32_t>(state, state.words, 0)};
  }

  // --- With a look at each lane

  // Seldom needed: so everything lies in memory meanwhile.
  template <class KeptWarp>
  PASTA_DEVICE static void look_at(const State& state, const Launch& launch, const KeptWarp& kept,
                                   const AsideHalves& site) {
    if (kept.now().space != Space::kGlobal) {
      count_other(state, kept, site);
      return;
    }
    kept.now().match(
        [&](std::uint64_t address) {
          return Marks::row_of(target(state, launch, address, kept.now().width).row);
        },
        [&](std::uint32_t row, std::uint32_t mask) { count(state, kept, site, row, mask); });
    kept.now().each(kept.now().active, [&](std::uint64_t address) {
      const Pieces::Target of = target(state, launch, address, kept.now().width);
      if (Marks::has_object(of.row)) marks(state).one(of, address, kept.now().width);
    });
  }
  // How the lanes ask, all of them.
  struct How {
    Aside<std::uint32_t> pattern, crowd, sectors, parts;
    Aside<std::uint64_t> step, least_step;  // as Steps have them
  };
  // Of global memory: what these lanes ask for, all of which is of one row.
  template <class KeptWarp>
  PASTA_DEVICE static void count(const State& state, const KeptWarp& kept, const AsideHalves& site,
                                 Aside<std::uint32_t> row, Aside<std::uint32_t> lanes) {
    const bool one = kept.now().all_of(lanes == kept.now().active);
    How how;
    look_how(kept, how);
    how.sectors = kept.now().sectors(kept.now().active);
    how.parts = kept.now().parts(kept.now().active);
    if (one && row < Outcome::kEndOfRows && how.sectors - 1u < 32 && how.parts != 0 &&
        may_be_outcome(kept, site)) {
      Aside<std::uint32_t> high(Outcome::of_row(row) | Outcome::of_sectors(how.sectors - 1));
      const bool unit = pattern_of(how) == Pattern::kUnit;
      const Aside<std::uint32_t> parts(unit ? kept.now().span() : std::uint32_t{how.parts});
      high = high | Outcome::of_parts(parts - 1);
      if (count_key(state, kept, site, how, high)) return;
    }
    count_rows(state, kept, site, how, row, lanes);
  }
  template <class KeptWarp>
  PASTA_DEVICE static void look_how(const KeptWarp& kept, How& how) {
    how.step = 0;
    how.least_step = 0;
    how.pattern = static_cast<std::uint32_t>(kept.pattern([&](std::int64_t bytes) {
      how.step = static_cast<std::uint64_t>(bytes) + kStepBias;
      how.least_step = ~how.step;
    }));
    how.crowd = kept.now().access == Access::kAtomic ? kept.now().crowd() : 0;
  }
  PASTA_DEVICE static Pattern pattern_of(const How& how) {
    return static_cast<Pattern>(static_cast<std::uint32_t>(how.pattern));
  }
  template <class KeptWarp>
  PASTA_DEVICE static bool may_be_outcome(const KeptWarp& kept, const AsideHalves& site) {
    return Outcome::has_place(site, KeptWarp::kSiteBits) && Outcome::is_kept(kept.now().width);
  }
  // Whether there was room for it. `high` is the upper half of the key without the crowd.
  template <class KeptWarp>
  PASTA_DEVICE static bool count_key(const State& state, const KeptWarp& kept,
                                     const AsideHalves& site, const How& how,
                                     const Aside<std::uint32_t>& high) {
    const Aside<std::uint32_t> low(Outcome::at_place(site, KeptWarp::kSiteBits, kept.now().access,
                                                     kept.now().width, kept.now().lanes()));
    const Aside<std::uint32_t> crowd(
        kept.now().access == Access::kAtomic ? Outcome::of_crowd(how.crowd - 1) : 0);
    const Outcome::Key key = {low | how.pattern, high | crowd};
    const Aside<std::uint32_t> at(find(state, key));
    if (at == outcomes(state)) return false;
    add_one(state, kept.now(), at);
    if (pattern_of(how) == Pattern::kStrided) {
      raise_steps(state, kept.now(), at, how.step, how.least_step);
    }
    return true;
  }
  // What is no outcome. Of several objects each has its row, and all of them that of the site.
  template <class KeptWarp>
  PASTA_DEVICE static void count_rows(const State& state, const KeptWarp& kept,
                                      const AsideHalves& key, const How& how,
                                      const Aside<std::uint32_t>& row,
                                      const Aside<std::uint32_t>& lanes) {
    {
      const Aside<std::uint32_t> bytes(kept.now().bytes(lanes));
      const Aside<std::uint32_t> sectors(kept.now().sectors(lanes));
      const auto add_to_row = [&](std::uint32_t number, std::uint32_t more) {
        add(kept, lanes, state.objects[row], number, more);
      };
      add_to_row(lanes_number(kept.now().access), count_bits(lanes));
      add_to_row(PASTA_NUMBER(AccessCounts, warps), 1);
      add_to_row(PASTA_NUMBER(AccessCounts, asked_bytes), count_bits(lanes) * kept.now().width);
      add_to_row(PASTA_NUMBER(AccessCounts, used_bytes), bytes);
      add_to_row(PASTA_NUMBER(AccessCounts, sectors), sectors);
    }
    if (lanes != kept.now().active && !kept.now().is_turn(lanes)) return;
    const Aside<std::uint32_t> site(site_row(state, kept, key));
    const Aside<std::uint32_t> bytes(kept.now().bytes(kept.now().active));
    count_site(state, kept, site, how);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, used_bytes), bytes);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, sectors), how.sectors);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, needed_sectors), sectors_for(bytes));
    const Aside<std::uint32_t> span(kept.now().span());
    const Aside<std::uint32_t> misaligned(
        is_misaligned(pattern_of(how), how.sectors, span, kept.now().width) ? 1 : 0);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, misaligned), misaligned);
    const bool of_several = lanes != kept.now().active;
    const Aside<std::uint64_t> object(of_several ? ~std::uint64_t{0} : std::uint64_t{row});
    const Aside<std::uint64_t> least(of_several ? ~std::uint64_t{0} : ~std::uint64_t{row});
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, object), object);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, least_object), least);
  }
  template <class KeptWarp>
  PASTA_DEVICE static std::uint32_t site_row(const State& state, const KeptWarp& kept,
                                             const AsideHalves& site) {
    return state.keys.find(site_key(site, kept.now().space, kept.now().access));
  }
  // One number after the other: all at once would need as many registers.
  template <class KeptWarp, class Row>
  PASTA_DEVICE static void add(const KeptWarp& kept, std::uint32_t lanes, Row& row,
                               std::uint32_t number, std::uint32_t more) {
    kept.now().add(lanes, reinterpret_cast<std::uint64_t*>(&row)[number], more);
  }
  template <class KeptWarp>
  PASTA_DEVICE static void add_to_site(const State& state, const KeptWarp& kept, std::uint32_t site,
                                       std::uint32_t number, std::uint32_t more) {
    add(kept, kept.now().active, state.sites[site], number, more);
  }
  template <class KeptWarp, class Value>
  PASTA_DEVICE static void raise_at_site(const State& state, const KeptWarp& kept,
                                         std::uint32_t site, std::uint32_t number,
                                         const Value& value) {
    kept.now().raise(kept.now().active,
                     reinterpret_cast<std::uint64_t*>(&state.extremes[site])[number], value);
  }
  // What is counted of each memory.
  template <class KeptWarp>
  PASTA_DEVICE static void count_site(const State& state, const KeptWarp& kept,
                                      const Aside<std::uint32_t>& site, const How& how) {
    add_to_site(state, kept, site, pattern_number(pattern_of(how)), 1);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, crowds), how.crowd);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, crowd), how.crowd);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, warps), 1);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, lanes), kept.now().lanes());
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, asked_bytes),
                kept.now().lanes() * kept.now().width);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, width), kept.now().width);
    if (pattern_of(how) != Pattern::kStrided) return;
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, step), how.step);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, least_step), how.least_step);
  }
  // Of shared and local memory. What a place counts is the memory's, too, but of places that found
  // no room.
  template <class KeptWarp>
  PASTA_DEVICE static void count_other(const State& state, const KeptWarp& kept,
                                       const AsideHalves& key) {
    const bool shared = kept.now().space == Space::kShared;
    How how;
    look_how(kept, how);
    const Passes passes = shared ? kept.now().passes() : Passes{1, 1};
    const Aside<std::uint32_t> needed(passes.needed), least(passes.without_conflicts);
    if (needed < 1u << 6 && least < 1u << 4 && may_be_outcome(kept, key)) {
      const Aside<std::uint32_t> high(shared ? Outcome::of_row(Outcome::kSharedRow) |
                                                   Outcome::of_passes(needed - 1) |
                                                   Outcome::of_least_passes(least - 1)
                                             : Outcome::of_row(Outcome::kLocalRow));
      if (count_key(state, kept, key, how, high)) return;
    }
    const Aside<std::uint32_t> site(site_row(state, kept, key));
    count_site(state, kept, site, how);
    if (shared) {
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, passes), needed);
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, passes_without_conflicts), least);
      raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, degree), needed);
    }
    if (site != state.keys.capacity) return;
    const std::uint32_t row = state.rows - kExtraRows + (shared ? kSharedRow : kLocalRow);
    const auto add_to_row = [&](std::uint32_t number, std::uint32_t more) {
      add(kept, kept.now().active, state.objects[row], number, more);
    };
    add_to_row(lanes_number(kept.now().access), kept.now().lanes());
    add_to_row(PASTA_NUMBER(AccessCounts, warps), 1);
    add_to_row(PASTA_NUMBER(AccessCounts, asked_bytes), kept.now().lanes() * kept.now().width);
    if (!shared) return;
    add_to_row(PASTA_NUMBER(AccessCounts, passes), needed);
    add_to_row(PASTA_NUMBER(AccessCounts, passes_without_conflicts), least);
  }

  // A sector more only for where a unit begins. Lanes that stay out leave gaps, which are not for
  // that.
  PASTA_DEVICE static bool is_misaligned(Pattern pattern, std::uint32_t sectors, std::uint32_t span,
                                         std::uint32_t width) {
    return (pattern == Pattern::kUnit) & (sectors > sectors_for(span * width));
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

  friend Outcome;
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
