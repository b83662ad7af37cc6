// What a patch sees of one access: the 32 lanes of a warp at one place of the program.
//
// On a GPU a warp is a warp. On the host, where a simulator or a recording gives the accesses of
// work-items one by one, it is made of them by this rule, so that sectors, conflicts and active
// lanes mean the same in both:
//   - lane n of warp w is work-item 32 * w + n of its group, numbered x first, then y, then z;
//   - the k-th time that a lane passes a place of the program since the last barrier of its group
//     belongs with the k-th time that the other lanes of its warp do.
//
// A patch uses lanes only through what is below: each is one collective step of the calling warp on
// a GPU, and a loop over lanes on the host. `use` is called once, not once a lane.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pasta::device {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr unsigned kSectorBytes = 32;  // what memory moves at least
inline constexpr unsigned kBanks = 32;        // of shared memory, each a word wide
inline constexpr unsigned kWordBytes = 4;

enum class Space : std::uint8_t { kGlobal, kShared };
enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

class Warp {
 public:
  Space space = Space::kGlobal;
  Access access = Access::kRead;
  std::uint32_t site = 0;    // place in the program, numbered by the launch
  std::uint32_t width = 0;   // bytes that each lane asks for
  std::uint32_t active = 0;  // bit n: lane n takes part
  std::uint32_t number = 0;  // of the warp in its group
  std::uint64_t group = 0;   // number of the group, x first
  std::uint64_t address[kWarpLanes] = {};

  [[nodiscard]] unsigned lanes() const { return static_cast<unsigned>(std::popcount(active)); }

  // use(key, mask) for each different key(address) of the active lanes, with the lanes that have
  // it.
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

  // use(address of a sector, bit n: its byte n is asked for) for each sector that lanes of `mask`
  // touch.
  template <class Use>
  void sectors(std::uint32_t mask, Use use) const {
    // Of all sectors not yet used the lowest, until there is none: few lanes, and few sectors.
    for (std::uint64_t from = 0;;) {
      std::uint64_t lowest = ~std::uint64_t{0};
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const std::uint64_t begin = address[std::countr_zero(rest)];
        const std::uint64_t first = begin > from ? begin : from;
        if (first - begin < width && first / kSectorBytes < lowest) lowest = first / kSectorBytes;
      }
      if (lowest == ~std::uint64_t{0}) return;
      const std::uint64_t sector = lowest * kSectorBytes;
      std::uint32_t bytes = 0;
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        bytes |= bytes_of(address[std::countr_zero(rest)], sector);
      }
      use(sector, bytes);
      from = sector + kSectorBytes;
      if (from == 0) return;  // the last of all
    }
  }

  // How often shared memory is passed: as often as the bank that most different words are asked
  // of. Wide accesses are served to as many lanes at a time as ask for 32 words.
  struct Passes {
    unsigned needed;
    unsigned without_conflicts;
  };
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

 private:
  // Which bytes of a sector an access of this address touches.
  [[nodiscard]] std::uint32_t bytes_of(std::uint64_t begin, std::uint64_t sector) const {
    const std::uint64_t skip = begin > sector ? begin - sector : 0;    // of the sector
    const std::uint64_t before = begin > sector ? 0 : sector - begin;  // of the access
    if (skip >= kSectorBytes || before >= width) return 0;
    const std::uint64_t count = std::min<std::uint64_t>(width - before, kSectorBytes - skip);
    return ~std::uint32_t{0} >> (kSectorBytes - count) << skip;
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
