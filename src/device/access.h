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
  static constexpr bool kAsksFirst = true;       // see GpuWarp::low_of_last()
  static constexpr std::uint32_t kCopies = 2;    // of rows, on a GPU
  static constexpr std::uint32_t kTimes = 8;     // of what outcomes count, which lie
  static constexpr std::uint32_t kApart = 1024;  // so far apart
  // Before the rows of the objects, and behind them.
  enum Row : std::uint32_t { kNoObjectRow, kFirstObjectRow };
  enum Extra : std::uint32_t { kSharedRow, kLocalRow, kExtraRows };
  struct Settings {
    bool on_gpu = false;                          // shapes and times are before the header
    std::uint32_t copies = 1;                     // on a GPU kCopies
    std::uint32_t sites = 1024, outcomes = 4096;  // powers of two
    Marks::Room marks = {.together = std::uint64_t{1} << 30, .each = std::uint64_t{8} << 20};
  };
  // What finds no room among the outcomes, or is none, is counted in the rows.
  struct State {
    std::uint64_t* times;    // as many as outcomes; on a GPU kTimes x kApart
    AccessCounts* objects;   // copies x rows
    SiteCounts* sites;       // copies x (sites + 1)
    SiteExtremes* extremes;  // sites + 1
    KeyTable keys;           // of sites
    KeyTable outcomes;
    Marks marks;
    ObjectHints hints;
    Shapes shapes;
    std::uint32_t copies, times_copies, rows;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);
  // On a GPU, before the header: the shapes' offsets, their slots, and the times.
  static constexpr std::uint32_t kResultBytesBefore = kTimes * kApart * sizeof(std::uint64_t);
  static constexpr std::uint32_t kSlotBytesBefore =
      kResultBytesBefore + rounded_to_block(Shapes::kSlots * sizeof(Shapes::Slot));
  static constexpr std::uint32_t kBytesBefore =
      kSlotBytesBefore + rounded_to_block(Shapes::kSlots * sizeof(Shapes::Offsets));

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0) return;
    const std::uint64_t key = site_key(warp.site, warp.space, warp.access);
    typename AnyWarp::Kept::Memory memory;
    typename AnyWarp::Kept kept(memory, warp.space);
    AsideHalves kept_key;
    if constexpr (AnyWarp::kBulk) {
      kept = warp;
      kept_key = key;
    } else {
      const std::uint32_t last = warp.first_last_low();
      if (Shapes::may_be_known(warp, key)) {
        // What of the warp is needed later is made of `place` and `what` again, for which there are
        // registers.
        const auto place = opaque(static_cast<std::uint32_t>(key));
        const auto what = opaque(Shapes::what_of(warp, last));
        const auto again = [&]() -> decltype(auto) {
          return warp.with(access_of_key(late(place)), Shapes::width_of(late(what)));
        };
        const auto known = [&](std::uint32_t outcome, const Shapes::Window& window) {
          count_known(state, again(), outcome, window);
        };
        const std::uint32_t at = Shapes::likely(warp, place, what, last);
        const Where where{state};
        if (Shapes::look(where, at, warp, place, what, last, known)) return;
        // Seldom: so what is needed for nothing else is found out again.
        const std::uint32_t same = warp.last_low();
        const std::uint32_t other = Shapes::likely(warp, late(place), late(what), same) + 1;
        if (Shapes::look(where, other, warp, late(place), late(what), same, known)) return;
        kept = again();
        kept_key = late(place);
      } else {
        kept = warp;
        kept_key = key;
      }
    }
    look_at(state, launch, kept, kept_key);
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // What was found out of one like it.
  template <class AnyWarp>
  PASTA_DEVICE static void count_known(const State& state, const AnyWarp& warp,
                                       std::uint32_t outcome, const Shapes::Window& window) {
    warp.add(warp.active, times(state)[warp.template copy<kTimes>() * kApart + outcome], 1);
    if (warp.space != Space::kGlobal) return;
    const Shapes::Marked marked = Shapes::Marked::of(window.part.marks);
    Marks::touch(words(state), warp, marked.run, static_cast<std::uint32_t>(window.begin),
                 marked.first_word, marked.shift);
  }
  // On a GPU nothing has to be read to find where these are.
  PASTA_DEVICE static std::uint64_t* times(const State& state) {
#ifdef PASTA_ON_GPU
    return reinterpret_cast<std::uint64_t*>(header_of<AccessPatch>(state) - kResultBytesBefore);
#else
    return state.times;
#endif
  }
  PASTA_DEVICE static const Shapes::Slot& slot(const State& state, std::uint32_t at) {
#ifdef PASTA_ON_GPU
    // What is known when this is compiled is added last, so that it is a part of what reads.
    return *reinterpret_cast<const Shapes::Slot*>(header_of<AccessPatch>(state) +
                                                  at * sizeof(Shapes::Slot) - kSlotBytesBefore);
#else
    return state.shapes.slots[at];
#endif
  }
  PASTA_DEVICE static const std::uint32_t* offsets(const State& state, std::uint32_t at) {
#ifdef PASTA_ON_GPU
    return reinterpret_cast<const std::uint32_t*>(header_of<AccessPatch>(state) +
                                                  at * sizeof(Shapes::Offsets) - kBytesBefore);
#else
    return state.shapes.offsets[at].of_lanes;
#endif
  }
  struct Where {
    const State& state;
    PASTA_DEVICE const Shapes::Slot& slot(std::uint32_t at) const {
      return AccessPatch::slot(state, at);
    }
    PASTA_DEVICE const std::uint32_t* offsets(std::uint32_t at) const {
      return AccessPatch::offsets(state, at);
    }
  };
  // From which on words are numbered in what Shapes keep.
  PASTA_DEVICE static std::uint32_t* words(const State& state) {
#ifdef PASTA_ON_GPU
    return reinterpret_cast<std::uint32_t*>(header_of<AccessPatch>(state));
#else
    return state.marks.words;
#endif
  }
  template <class AnyWarp>
  PASTA_DEVICE static void count_times(const State& state, const AnyWarp& warp,
                                       std::uint32_t outcome) {
    warp.add(warp.active, state.times[warp.template copy<kTimes>() * kApart + outcome], 1);
  }
  // Accesses that are never alike are to cost little more than their rows.
  static constexpr std::uint32_t kFewSteps = 8;

  // Each lane is looked at, which is seldom needed: so everything lies in memory meanwhile.
  template <class KeptWarp>
  PASTA_DEVICE static void look_at(const State& state, const Launch& launch, const KeptWarp& kept,
                                   const AsideHalves& key) {
    Aside<std::uint32_t> ours(Shapes::kCount);
    if (!KeptWarp::kBulk && Shapes::may_be_known(kept.now(), key)) {
      const std::uint32_t at = state.shapes.enter(kept, key, ours);
      if (at != Shapes::kCount) {
        const Shapes::Slot& slot = state.shapes.slots[at];
        count_known(state, kept.now(), Shapes::found(latest(slot.head.what)),
                    {latest(slot.window.begin), {0, latest(slot.window.part.marks)}});
        return;
      }
    }
    const Aside<std::uint32_t> site(state.keys.find(key));
    if (kept.now().space != Space::kGlobal) {
      count_other(state, kept, site, ours);
    } else {
      kept.now().match(
          [&](std::uint64_t address) {
            const std::uint32_t row =
                state.hints.find(launch, state.marks.places, address, kept.now().width) + 1;
            return site << Outcome::kRowBits | (row < Outcome::kMostRows ? row : kNoObjectRow);
          },
          [&](std::uint32_t who, std::uint32_t mask) { count(state, kept, who, mask, ours); });
    }
    if (ours != Shapes::kCount) state.shapes.leave_empty(kept, ours);
  }
  // Of global memory: what these lanes ask for, all of which is of one row.
  template <class KeptWarp>
  PASTA_DEVICE static void count(const State& state, const KeptWarp& kept, std::uint32_t of,
                                 std::uint32_t lanes, const Aside<std::uint32_t>& ours) {
    // What the lanes are is known again from what they ask of.
    const bool one = kept.now().all_of(lanes == kept.now().active);
    const Aside<std::uint32_t> who(
        of | static_cast<std::uint32_t>(one ? Outcome::kAll : Outcome::kPart) << 30);
    const Aside<std::uint32_t> how(how_of(state, kept, who));
    const bool may_be = Outcome::kind_of(who) == Outcome::kAll && Outcome::is_whole(how);
    const std::uint32_t outcome = may_be
                                      ? count_key(state, kept.now(), std::uint64_t{who} << 32 | how)
                                      : state.outcomes.capacity;
    const bool counted = outcome != state.outcomes.capacity;
    if (kept.now().all_of(counted && Outcome::row_of(who) != kNoObjectRow)) {
      if (ours != Shapes::kCount) {
        keep(state, kept, ours, Outcome::row_of(who) - kFirstObjectRow, outcome);
      }
      state.marks.touch(kept.now(), kept.now().active, Outcome::row_of(who) - kFirstObjectRow);
      return;
    }
    count_rows(state, kept, {who, how, kept.now().lanes_of(who, lanes), counted ? 1u : 0u});
  }
  // Of lanes that are all of this object.
  template <class KeptWarp>
  PASTA_DEVICE static void keep(const State& state, const KeptWarp& kept,
                                const Aside<std::uint32_t>& ours, Aside<std::uint32_t> object,
                                Aside<std::uint32_t> outcome) {
    const Aside<std::uint32_t> run(kept.now().is_run() ? 1 : 0);
    state.shapes.keep(kept, ours, outcome, [&](Shapes::Slot& slot, std::uint64_t address) {
      const Marks::Place& there = state.marks.places[object];
      const Aside<std::uint32_t> window(
          static_cast<std::uint32_t>((address - fixed(there.begin)) >> Shapes::kWindowBits));
      // A word has the marks of 32 granules.
      const Aside<std::uint32_t> word(static_cast<std::uint32_t>(state.marks.words - words(state)) +
                                      fixed(there.first_word) +
                                      (window << (Shapes::kWindowBits - 5 - fixed(there.shift))));
      if (!Shapes::Marked::has_room(word)) return false;
      leave(slot.window.begin, fixed(there.begin) + (std::uint64_t{window} << Shapes::kWindowBits));
      const std::uint64_t bytes =
          fixed(there.bytes) - (std::uint64_t{window} << Shapes::kWindowBits);
      // Where a lane may begin.
      leave(slot.window.part.bytes,
            (bytes >> Shapes::kWindowBits == 0 ? static_cast<std::uint32_t>(bytes)
                                               : 1u << Shapes::kWindowBits) -
                kept.now().width + 1);
      leave(slot.window.part.marks, Shapes::Marked{word, fixed(there.shift), run != 0}.packed());
      return true;
    });
  }
  // How all lanes do.
  template <class KeptWarp>
  PASTA_DEVICE static std::uint32_t how_of(const State& state, const KeptWarp& kept,
                                           const Aside<std::uint32_t>& who) {
    const Aside<std::uint32_t> pattern(static_cast<std::uint32_t>(kept.pattern(
        [&](std::int64_t bytes) { raise_step(state, kept, Outcome::site_of(who), bytes); })));
    const Aside<std::uint32_t> sectors(kept.now().sectors(kept.now().active));
    const Pattern found = static_cast<Pattern>(static_cast<std::uint32_t>(pattern));
    const Aside<std::uint32_t> how(
        Outcome::how(found, misaligned(kept, found, sectors), kept.now().lanes(),
                     kept.now().access == Access::kAtomic ? kept.now().crowd() : 0));
    const std::uint32_t parts = kept.now().parts(kept.now().active);
    if (sectors >= 1u << 7 || parts == 0 || !Outcome::is_kept(kept.now().width)) return how;
    return Outcome::with(how, sectors << 6 | parts, kept.now().width);
  }
  // As which outcome; their capacity: it was not counted.
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t count_key(const State& state, const AnyWarp& warp,
                                              std::uint64_t key) {
    if (Outcome::site_of(static_cast<std::uint32_t>(key >> 32)) >= state.keys.capacity) {
      return state.outcomes.capacity;
    }
    const std::uint32_t at = state.outcomes.find(key, kFewSteps);
    if (at != state.outcomes.capacity) count_times(state, warp, at);
    return at;
  }
  // What was not counted. Of several objects each has its row, and all of them that of the site.
  struct Rest {
    Aside<std::uint32_t> who, how, lanes, counted;
  };
  template <class KeptWarp>
  PASTA_DEVICE static void count_rows(const State& state, const KeptWarp& kept, const Rest& rest) {
    if (rest.counted == 0) {
      const Aside<std::uint32_t> bytes(kept.now().bytes(rest.lanes));
      const Aside<std::uint32_t> sectors(kept.now().sectors(rest.lanes));
      const std::uint32_t row = Outcome::row_of(rest.who);
      const auto add_to_row = [&](std::uint32_t number, std::uint32_t more) {
        add(kept, rest.lanes, state.objects, state.rows, row, number, more);
      };
      add_to_row(lanes_number(kept.now().access), count_bits(rest.lanes));
      add_to_row(PASTA_NUMBER(AccessCounts, warps), 1);
      add_to_row(PASTA_NUMBER(AccessCounts, asked_bytes),
                 count_bits(rest.lanes) * kept.now().width);
      add_to_row(PASTA_NUMBER(AccessCounts, used_bytes), bytes);
      add_to_row(PASTA_NUMBER(AccessCounts, sectors), sectors);
    }
    const Aside<std::uint32_t> sectors(kept.now().sectors(kept.now().active));
    const Aside<std::uint32_t> bytes(kept.now().bytes(kept.now().active));
    const bool several = rest.lanes != kept.now().active;
    if (several ? kept.now().is_turn(rest.lanes) : rest.counted == 0) {
      const Aside<std::uint32_t> site(Outcome::site_of(rest.who));
      const Pattern pattern = Outcome::pattern_of(rest.how);
      count_site(state, kept, site, pattern, Outcome::crowd_of(rest.how));
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, used_bytes), bytes);
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, sectors), sectors);
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, needed_sectors), sectors_for(bytes));
      add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, misaligned),
                  misaligned(kept, Outcome::pattern_of(rest.how), sectors) ? 1 : 0);
      const std::uint64_t of_all = Outcome::row_of(rest.who);
      raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, object),
                    several ? ~std::uint64_t{0} : of_all);
      raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, least_object),
                    several ? ~std::uint64_t{0} : ~of_all);
    }
    if (Outcome::row_of(rest.who) != kNoObjectRow) {
      state.marks.touch(kept.now(), rest.lanes, Outcome::row_of(rest.who) - kFirstObjectRow);
    }
  }
  // One number after the other: all at once would need as many registers.
  template <class KeptWarp, class Row>
  PASTA_DEVICE static void add(const KeptWarp& kept, std::uint32_t lanes, Row* rows,
                               std::uint32_t apart, std::uint32_t row, std::uint32_t number,
                               std::uint32_t more) {
    const std::uint32_t at = kept.now().template copy<kCopies>() * apart + row;
    kept.now().add(lanes, reinterpret_cast<std::uint64_t*>(&rows[at])[number], more);
  }
  template <class KeptWarp>
  PASTA_DEVICE static void add_to_site(const State& state, const KeptWarp& kept, std::uint32_t site,
                                       std::uint32_t number, std::uint32_t more) {
    add(kept, kept.now().active, state.sites, state.keys.capacity + 1, site, number, more);
  }
  template <class KeptWarp>
  PASTA_DEVICE static void raise_at_site(const State& state, const KeptWarp& kept,
                                         std::uint32_t site, std::uint32_t number,
                                         std::uint64_t value) {
    kept.now().raise(kept.now().active,
                     reinterpret_cast<std::uint64_t*>(&state.extremes[site])[number], value);
  }
  // What is counted of each memory.
  template <class KeptWarp>
  PASTA_DEVICE static void count_site(const State& state, const KeptWarp& kept,
                                      const Aside<std::uint32_t>& site, Pattern pattern,
                                      std::uint32_t crowd) {
    add_to_site(state, kept, site, pattern_number(pattern), 1);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, crowds), crowd);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, crowd), crowd);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, warps), 1);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, lanes), kept.now().lanes());
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, asked_bytes),
                kept.now().lanes() * kept.now().width);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, width), kept.now().width);
  }
  template <class KeptWarp>
  PASTA_DEVICE static bool misaligned(const KeptWarp& kept, Pattern pattern,
                                      std::uint32_t sectors) {
    // Lanes that stay out leave gaps, which are not for where the warp begins.
    const bool more = sectors > sectors_for(kept.now().span() * kept.now().width);
    return (pattern == Pattern::kUnit) & more;
  }
  // Of shared and local memory. What a place counts is the memory's, too, but of places that found
  // no room.
  template <class KeptWarp>
  PASTA_DEVICE static void count_other(const State& state, const KeptWarp& kept,
                                       const Aside<std::uint32_t>& site,
                                       const Aside<std::uint32_t>& ours) {
    const bool shared = kept.now().space == Space::kShared;
    const Aside<std::uint32_t> pattern(static_cast<std::uint32_t>(
        kept.pattern([&](std::int64_t bytes) { raise_step(state, kept, site, bytes); })));
    const Passes passes = shared ? kept.now().passes() : Passes{0, 0};
    const Aside<std::uint32_t> needed(passes.needed), least(passes.without_conflicts);
    const Aside<std::uint32_t> how(Outcome::how(
        static_cast<Pattern>(static_cast<std::uint32_t>(pattern)), false, kept.now().lanes(),
        kept.now().access == Access::kAtomic ? kept.now().crowd() : 0));
    if (needed < 1u << 9 && least < 1u << 4 && Outcome::is_kept(kept.now().width)) {
      const std::uint32_t who = Outcome::who(Outcome::kOfSite, site, kNoObjectRow);
      const std::uint32_t outcome = count_key(
          state, kept.now(),
          std::uint64_t{who} << 32 | Outcome::with(how, needed << 4 | least, kept.now().width));
      if (outcome != state.outcomes.capacity) {
        if (ours != Shapes::kCount) {
          state.shapes.keep(kept, ours, outcome,
                            [](const Shapes::Slot&, std::uint64_t) { return true; });
        }
        return;
      }
    }
    count_site(state, kept, site, static_cast<Pattern>(static_cast<std::uint32_t>(pattern)),
               Outcome::crowd_of(how));
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, passes), needed);
    add_to_site(state, kept, site, PASTA_NUMBER(SiteCounts, passes_without_conflicts), least);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, degree), needed);
    if (site != state.keys.capacity) return;
    const std::uint32_t row = state.rows - kExtraRows + (shared ? kSharedRow : kLocalRow);
    const auto add_to_row = [&](std::uint32_t number, std::uint32_t more) {
      add(kept, kept.now().active, state.objects, state.rows, row, number, more);
    };
    add_to_row(lanes_number(kept.now().access), kept.now().lanes());
    add_to_row(PASTA_NUMBER(AccessCounts, warps), 1);
    add_to_row(PASTA_NUMBER(AccessCounts, asked_bytes), kept.now().lanes() * kept.now().width);
    add_to_row(PASTA_NUMBER(AccessCounts, passes), needed);
    add_to_row(PASTA_NUMBER(AccessCounts, passes_without_conflicts), least);
  }
  template <class KeptWarp>
  PASTA_DEVICE static void raise_step(const State& state, const KeptWarp& kept, std::uint32_t site,
                                      std::int64_t bytes) {
    const Aside<std::uint64_t> step(static_cast<std::uint64_t>(bytes) + kStepBias);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, step), step);
    raise_at_site(state, kept, site, PASTA_NUMBER(SiteExtremes, least_step), ~step);
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
