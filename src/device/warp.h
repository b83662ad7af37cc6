// What a patch sees of one access: the 32 lanes of a warp at one place of the program.
//
// On a GPU a warp is a warp. On the host, where a simulator or a recording gives the accesses of
// work-items one by one, it is made of them by this rule, so that sectors, conflicts and active
// lanes mean the same in both:
//   - lane n of warp w is work-item 32 * w + n of its group, numbered x first, then y, then z;
//   - the k-th time that a lane passes a place of the program since the last barrier of its group
//     belongs with the k-th time that the other lanes of its warp do.
//
// A patch is written as if a warp were one thread. On a GPU all active lanes run it together, with
// the same values in the same branches; only what is handed to the steps below may depend on a
// lane:
//   match(key, use)       key is of a lane; use runs on all lanes together, once for each key
//   each(mask, change)    of lanes of the mask, may change the state through portable.h
//   add(to, more)         once, not once a lane; to is a struct of 64-bit numbers, and more one
//                         like it or some of its numbers; what is added is less than 2^32
//   raise(to, value)      the same of one number; the larger of two stays
//   sectors, bytes, parts, pattern, passes, crowd     facts about all lanes
// So everything that changes the state goes through each, add or raise; what all lanes may do at
// once with the same outcome, as finding a key in a table, needs none of them.
//
// Patches on a GPU have 22 registers, and what does not fit costs more than all they do: memory of
// every thread that the GPU has at once finds no room in any cache. So nothing is counted there
// that can be counted from the result, and what most accesses do, which is to ask for memory of one
// object, has a short way of its own (GpuWarp alone has its steps); the long way, which the host
// always goes, gives the same numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/portable.h"

namespace pasta::device {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr unsigned kSectorBits = 5;
inline constexpr unsigned kSectorBytes = 1u << kSectorBits;  // what memory moves at least
inline constexpr unsigned kBanks = 32;                       // of shared memory, each a word wide
inline constexpr unsigned kWordBytes = 4;

enum class Space : std::uint8_t { kGlobal, kShared, kLocal };
enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

// What memory moves for some lanes.
struct Footprint {
  std::uint64_t sectors;  // that they touch
  std::uint64_t bytes;    // that any of them asks for
};

// How often shared memory is passed: as often as the bank that most different words are asked of.
// Wide accesses are served to as many lanes at a time as ask for 32 words.
struct Passes {
  unsigned needed;
  unsigned without_conflicts;
};

// How the addresses of the active lanes follow one another.
enum class Pattern : std::uint8_t {
  kSingle,     // one lane
  kBroadcast,  // the same address
  kUnit,       // address = first + lane * width
  kStrided,    // address = first + lane * stride
  kPieces,     // unit, in at most a quarter as many pieces as there are lanes
  kGather,     // none of these
};
struct Stride {
  Pattern pattern;
  std::int64_t bytes;  // from lane to lane; 0 where there is no one stride
};

// One of the numbers of a struct of 64-bit numbers.
struct Number {
  std::uint32_t at;  // as PASTA_NUMBER says
  std::uint64_t value;
};
#define PASTA_NUMBER(Row, field) \
  static_cast<std::uint32_t>(offsetof(Row, field) / sizeof(std::uint64_t))

// A place of a program with the kind of its accesses, as a key that is not 0. Places are numbers of
// less than 60 bits.
struct SiteKey {
  std::uint64_t site;
  Space space;
  Access access;
};
PASTA_DEVICE inline std::uint64_t site_key(std::uint64_t site, Space space, Access access) {
  return site << 4 | static_cast<std::uint64_t>(space) << 2 | (static_cast<unsigned>(access) + 1);
}
PASTA_DEVICE inline Access access_of_key(std::uint64_t key) {
  return static_cast<Access>((key & 3) - 1);
}
PASTA_DEVICE inline SiteKey site_of_key(std::uint64_t key) {
  return {key >> 4, static_cast<Space>(key >> 2 & 3), static_cast<Access>((key & 3) - 1)};
}
// Of the number of a place on a GPU, where instructions lie 16 bytes apart, so many bits are 0.
inline constexpr unsigned kGpuSiteBits = 4;
// In rows: of all places that found no room in a table.
inline constexpr std::uint64_t kOtherSites = ~std::uint64_t{0};

// On the host.
class Warp {
 public:
  static constexpr bool kWide = true;       // a lane may ask for more than a sector
  static constexpr unsigned kSiteBits = 0;  // of each site, that are 0
  Space space = Space::kGlobal;
  Access access = Access::kRead;
  std::uint64_t site = 0;    // place in the program, numbered by the launch, or an address
  std::uint32_t width = 0;   // bytes that each lane asks for
  std::uint32_t active = 0;  // bit n: lane n takes part; at least one does
  std::uint32_t number_in_group = 0;
  std::uint64_t group_number = 0;  // x first
  std::uint64_t address[kWarpLanes] = {};

  [[nodiscard]] unsigned lanes() const { return count_bits(active); }
  [[nodiscard]] std::uint32_t number() const { return number_in_group; }
  [[nodiscard]] std::uint64_t group() const { return group_number; }
  [[nodiscard]] std::uint32_t group32() const { return static_cast<std::uint32_t>(group_number); }
  // Where there are copies of a counter, so that not all of a GPU change the same: which is ours.
  template <std::uint32_t kCopies>
  [[nodiscard]] static std::uint32_t copy() {
    return 0;
  }

  // use(key, mask) for each different key(address) of the active lanes, with the lanes that have
  // it. On a GPU the lanes do so at once, each for its own key.
  template <class Key, class Use>
  void match(Key key, Use use) const {
    std::uint32_t left = active;
    while (left != 0) {
      const auto wanted = key(address[std::countr_zero(left)]);
      std::uint32_t mask = 0;
      for (std::uint32_t rest = left; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        if (key(address[lane]) == wanted) mask |= 1u << lane;
      }
      use(wanted, mask);
      left &= ~mask;
    }
  }

  static void gather() {}
  // What is so of the calling lane is so of all of them.
  [[nodiscard]] static bool all_of(bool is_so) { return is_so; }
  // The same, for what is seldom done: on a GPU it lies in memory meanwhile.
  class Kept {
   public:
    static constexpr unsigned kSiteBits = Warp::kSiteBits;
    struct Memory {};
    Kept(Memory&, Space) {}
    void operator=(const Warp& warp) { warp_ = &warp; }
    [[nodiscard]] const Warp& now() const { return *warp_; }
    template <class Tell>
    Pattern pattern(Tell tell) const {
      return warp_->pattern(tell);
    }

   private:
    const Warp* warp_ = nullptr;
  };
  // In `use` of match: whether what is done for the whole warp is to be done now.
  [[nodiscard]] bool is_turn(std::uint32_t mask) const {
    return (mask & active & (0 - active)) != 0;
  }
  template <class Change>
  void each(std::uint32_t mask, Change change) const {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      change(address[std::countr_zero(rest)]);
    }
  }

  // These lanes together.
  void add(std::uint32_t, std::uint64_t& to, std::uint64_t more) const {
    ::pasta::device::add(to, more);
  }
  template <class Row, std::size_t kCount>
  void add(std::uint32_t, Row& to, const Number (&more)[kCount]) const {
    for (const auto& [at, value] : more) {
      ::pasta::device::add(reinterpret_cast<std::uint64_t*>(&to)[at], value);
    }
  }
  void add_two(std::uint32_t, std::uint64_t* to, std::uint32_t at_first, std::uint64_t first,
               std::uint32_t at_second, std::uint64_t second) const {
    ::pasta::device::add(to[at_first], first);
    ::pasta::device::add(to[at_second], second);
  }
  void raise(std::uint32_t, std::uint64_t& to, std::uint64_t value) const {
    ::pasta::device::raise(to, value);
  }

  [[nodiscard]] std::uint32_t sectors(std::uint32_t mask) const {
    return static_cast<std::uint32_t>(footprint(mask).sectors);
  }
  // That any of these lanes asks for.
  [[nodiscard]] std::uint32_t bytes(std::uint32_t mask) const {
    return static_cast<std::uint32_t>(footprint(mask).bytes);
  }
  // Of how many accesses the bytes are that they ask for, each once; 0: of no whole number.
  [[nodiscard]] std::uint32_t parts(std::uint32_t mask) const {
    const std::uint64_t bytes = footprint(mask).bytes;
    return bytes % width == 0 && bytes / width <= kWarpLanes
               ? static_cast<std::uint32_t>(bytes / width)
               : 0;
  }

  [[nodiscard]] Footprint footprint(std::uint32_t mask) const {
    if (count_bits(mask) == 0) return {0, 0};
    std::uint64_t begins[kWarpLanes];
    unsigned count = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      begins[count++] = address[std::countr_zero(rest)];
    }
    std::sort(begins, begins + count);
    Footprint all{0, 0};
    std::uint64_t end = 0, next_sector = 0;  // of what is counted
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t last = begins[i] + (width - 1);  // may be the last byte there is
      const std::uint64_t begin = i > 0 ? std::max(begins[i], end) : begins[i];
      const std::uint64_t first_sector =
          i > 0 ? std::max(begins[i] / kSectorBytes, next_sector) : begins[i] / kSectorBytes;
      if (begin <= last) all.bytes += last - begin + 1;
      if (first_sector <= last / kSectorBytes) {
        all.sectors += last / kSectorBytes - first_sector + 1;
      }
      end = last + 1;
      next_sector = last / kSectorBytes + 1;
      if (end == 0) break;
    }
    return all;
  }

  [[nodiscard]] Passes passes() const {
    const unsigned words = (width + kWordBytes - 1) / kWordBytes;
    const unsigned at_once = words <= 1 ? kWarpLanes : words >= kWarpLanes ? 1 : kWarpLanes / words;
    Passes passes{0, 0};
    for (unsigned first = 0; first < kWarpLanes; first += at_once) {
      const std::uint32_t part = at_once == kWarpLanes
                                     ? active
                                     : active >> first << first & ((1u << at_once) - 1) << first;
      if (part == 0) continue;
      unsigned most = 0;
      for (unsigned bank = 0; bank < kBanks; ++bank) {
        const unsigned different = words_of_bank(part, bank);
        most = different > most ? different : most;
      }
      passes.needed += most;
      ++passes.without_conflicts;
    }
    return passes;
  }

  // The most lanes that have the same address.
  [[nodiscard]] unsigned crowd() const {
    unsigned most = 0;
    match([](std::uint64_t a) { return a; },
          [&](std::uint64_t, std::uint32_t mask) { most = std::max(most, count_bits(mask)); });
    return most;
  }

  // From the first to the last lane that takes part, with those between them.
  [[nodiscard]] std::uint32_t span() const {
    return static_cast<std::uint32_t>(std::bit_width(active) - std::countr_zero(active));
  }
  // Of a strided one, how many bytes it is from lane to lane.
  template <class Tell>
  Pattern pattern(Tell tell) const {
    const Stride found = stride();
    if (found.pattern == Pattern::kStrided) tell(found.bytes);
    return found.pattern;
  }

 private:
  [[nodiscard]] Stride stride() const {
    const unsigned count = lanes();
    if (count == 1) return {Pattern::kSingle, 0};
    const int first = std::countr_zero(active);
    const int second = std::countr_zero(active & (active - 1));
    // Between two lanes; differences of addresses wrap as the addresses do.
    const auto between = [this](int a, int b) {
      return static_cast<std::int64_t>(address[b] - address[a]);
    };
    // Of another stride than 0 and 1 it is only looked for where the first two lanes are 1, 2, 4,
    // ... apart, and less than 2 GiB.
    const int apart = second - first;
    const std::int64_t step =
        between(first, second) >> std::countr_zero(static_cast<unsigned>(apart));
    bool even = (apart & (apart - 1)) == 0 &&
                between(first, second) == static_cast<std::int32_t>(between(first, second));
    bool same = true;
    unsigned pieces = 1;
    int before = first;
    for (std::uint32_t rest = active & (active - 1); rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      even = even && between(first, lane) == step * (lane - first);
      same = same && between(first, lane) == 0;
      if (between(before, lane) != std::int64_t{width} * (lane - before)) ++pieces;
      before = lane;
    }
    if (pieces == 1) return {Pattern::kUnit, width};
    if (same) return {Pattern::kBroadcast, 0};
    if (even) return {Pattern::kStrided, step};
    return {pieces <= count / 4 ? Pattern::kPieces : Pattern::kGather, 0};
  }

  // Different words of this bank that the lanes ask for.
  [[nodiscard]] unsigned words_of_bank(std::uint32_t mask, unsigned bank) const {
    unsigned count = 0;
    for (std::uint64_t from = 0;;) {
      std::uint64_t lowest = ~std::uint64_t{0};
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const std::uint64_t begin = address[std::countr_zero(rest)] / kWordBytes;
        const std::uint64_t end =
            (address[std::countr_zero(rest)] + width + kWordBytes - 1) / kWordBytes;
        const std::uint64_t first = begin > from ? begin : from;
        const std::uint64_t word = first + (bank + kBanks - first % kBanks) % kBanks;
        if (word < end && word < lowest) lowest = word;
      }
      if (lowest == ~std::uint64_t{0}) return count;
      ++count;
      from = lowest + 1;
    }
  }
};

}  // namespace pasta::device
