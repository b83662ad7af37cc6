// The calling warp of a GPU, as warp.h has it: what a patch may ask of its lanes, each question one
// step that all active lanes take together. It gives the same answers as the host's Warp.
//
// What the GPU itself sees to is relied on: lanes of one instruction ask for as many bytes each, at
// most a sector, at multiples of that; only copies of one lane are longer.
//
// A patch may be compiled so that questions which pass on values or say for which lanes something
// is so do not wait for lanes (compile_patches.cmake): so they are asked where all active ones come
// by.
#pragma once

#include <cstdint>

#include "device/portable.h"
#include "device/warp.h"

namespace pasta::device {

// Places fit into this many bits, also those before the kernel, as of functions that it calls.
inline constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << 48) - 1;

// What warps of a GPU are asked; `Self` says of which. `Word` and `Long` keep a number meanwhile.
template <class Self, class Word, class Long, bool wide>
class GpuSteps {
 public:
  static constexpr bool kWide = wide;
  static constexpr unsigned kSiteBits = kGpuSiteBits;
  __device__ static std::uint32_t number() {
    const std::uint32_t item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return item / kWarpLanes;
  }
  __device__ static std::uint64_t group() {
    return blockIdx.x +
           std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  }

  // The same, of which nobody launches 2^32.
  __device__ static std::uint32_t group32() {
    std::uint32_t group = gpu::group_z();
    group *= gpu::groups_y();
    group += gpu::group_y();
    group *= gpu::groups_x();
    return group + gpu::group_x();
  }

  __device__ unsigned lanes() const { return __popc(active()); }
  __device__ static std::uint32_t lane_id() { return gpu::lane(); }

  template <std::uint32_t kCopies>
  __device__ static std::uint32_t copy() {
    return gpu::multiprocessor() % kCopies;
  }

  template <class Key, class Use>
  __device__ void match(Key key, Use use) const {
    const std::uint32_t own = opaque(key(address()));
    use(own, __match_any_sync(active(), own));
  }

  // Waits for all active lanes, should they not run together any more.
  __device__ void gather() const { __syncwarp(active()); }
  __device__ bool all_of(bool is_so) const { return __all_sync(active(), is_so) != 0; }
  __device__ static bool is_turn(std::uint32_t) { return true; }
  // Those that have the same key.
  __device__ std::uint32_t lanes_of(std::uint32_t key) const {
    return __match_any_sync(active(), key);
  }
  template <class Change>
  __device__ void each(std::uint32_t mask, Change change) const {
    if (mask == active() || is_in(mask)) change(address());
  }

  __device__ void add(std::uint32_t mask, std::uint64_t& to, std::uint32_t more) const {
    if (is_first(mask)) ::pasta::device::add(to, more);
  }
  template <class Value>
  __device__ void raise(std::uint32_t mask, std::uint64_t& to, const Value& value) const {
    if (is_first(mask)) ::pasta::device::raise(to, value);
  }
  template <class Row, std::size_t kCount>
  __device__ void add(std::uint32_t mask, Row& to, const Number (&more)[kCount]) const {
    if (!is_first(mask)) return;
    PASTA_UNROLLED for (unsigned i = 0; i < kCount; ++i) {
      ::pasta::device::add(reinterpret_cast<std::uint64_t*>(&to)[more[i].at], more[i].value);
    }
  }
  // To two numbers that lie together: one lane to each, so that it is one step.
  __device__ void add_two(std::uint32_t mask, std::uint64_t* to, std::uint32_t at_first,
                          std::uint32_t first, std::uint32_t at_second,
                          std::uint32_t second) const {
    const std::uint32_t own = __popc(mask & lanes_before());
    if (own >= 2) return;
    ::pasta::device::add(to[own == 0 ? at_first : at_second], own == 0 ? first : second);
    if (mask == own_lane()) ::pasta::device::add(to[at_second], second);
  }
  // The active lane before the calling one: whether there is none, and what it has.
  struct Before {
    bool is_none;
    std::uint32_t value;
  };
  __device__ Before before(std::uint32_t own) const {
    const std::uint32_t lanes = active() & ~lanes_from();
    return {lanes == 0, __shfl_sync(active(), own, last_of(lanes))};
  }
  // The same of addresses, of which the lower half is told: whether the upper half is the calling
  // lane's. Before the first lane that takes part there is itself.
  __device__ bool is_near_lane_before(std::uint32_t& low) const {
    const int lane = lane_before();
    const auto high = static_cast<std::uint32_t>(address() >> 32);
    const bool is_near = __shfl_sync(active(), high, lane) == high;
    low = __shfl_sync(active(), low_of_address(), lane);
    return is_near;
  }
  __device__ std::uint32_t of_first_lane(std::uint32_t own) const {
    return __shfl_sync(active(), own, first_of(active()));
  }
  // Of the calling lane among those that take part.
  __device__ unsigned rank() const { return rank(active()); }
  // How many lanes it is from there.
  __device__ std::uint32_t from_lane_before() const { return lane_id() - lane_before(); }
  __device__ std::uint32_t lanes_with(bool is_so) const { return __ballot_sync(active(), is_so); }
  // Whether it is so of all of them or of none.
  __device__ bool agree(bool is_so) const {
    const std::uint32_t lanes = lanes_with(is_so);
    return lanes == 0 || lanes == active();
  }
  // How many of `mask` are behind the calling lane and before the next of `stops`.
  __device__ static std::uint32_t count_until(std::uint32_t stops, std::uint32_t mask) {
    const std::uint32_t behind = lanes_behind(), next = stops & behind;
    return __popc(mask & behind & ((next & (0 - next)) - 1));
  }

  // The first lane of each sector. `mask`: with which lanes the calling one may share a sector.
  __device__ std::uint32_t first_of_sectors(std::uint32_t mask) const {
    const std::uint32_t same = __match_any_sync(active(), address() / kSectorBytes) & mask;
    return opaque(__ballot_sync(active(), (same & lanes_before()) == 0));
  }
  __device__ static bool is_in(std::uint32_t mask) { return (mask & own_lane()) != 0; }
  __device__ static bool is_first(std::uint32_t mask) {
    return (mask & lanes_up_to()) == own_lane();
  }
  // use(first, last) for numbers of lanes that say one, other than kNone: of lanes that follow one
  // another, each with the number of the one before or with the next, and all within the same 32
  // numbers, one does it for all of them.
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  template <class Use>
  __device__ void runs(std::uint32_t own, Use use) const {
    const std::uint32_t before = __shfl_up_sync(active(), own, 1);
    const bool goes_on =
        (active() << 1 >> lane_id() & 1) != 0 && own - before <= 1 && (own ^ before) < 32;
    const std::uint32_t later = __ballot_sync(active(), !goes_on) & ~lanes_up_to();
    const std::uint32_t until = active() & ((later & (0 - later)) - 1);
    const std::uint32_t last = __shfl_sync(active(), own, last_of(until));
    if (own != kNone && !goes_on) use(own, last);
  }

  // Of the lanes that the calling one is among; others may ask for theirs.
  __device__ std::uint32_t sectors(std::uint32_t mask) const {
    const std::uint32_t same = __match_any_sync(active(), address() / kSectorBytes) & mask;
    const std::uint32_t firsts = __ballot_sync(active(), (same & lanes_before()) == 0) & mask;
    return kWide ? sectors_of(address(), width()) : static_cast<std::uint32_t>(__popc(firsts));
  }
  __device__ std::uint32_t parts(std::uint32_t mask) const {
    const std::uint32_t same = __match_any_sync(active(), address()) & mask;
    // Two accesses are of the same bytes or of none that are the same.
    return __popc(__ballot_sync(active(), (same & lanes_before()) == 0) & mask);
  }
  // That any of these lanes asks for.
  __device__ std::uint32_t bytes(std::uint32_t mask) const {
    const Word different(parts(mask));
    return width() * different;
  }

  __device__ Passes passes() const {
    if (width() > 1u << kMostPassedBits) {
      // As wide as only copies of one lane are.
      const std::uint64_t first = address() / kWordBytes;
      const std::uint64_t end = (address() + width() + kWordBytes - 1) / kWordBytes;
      const auto needed = static_cast<unsigned>((end - first + kBanks - 1) / kBanks);
      return {needed, 1};  // of one lane
    }
    const Word least(passes_without_conflicts(lowest_bit(width())));
    return {least + conflicts(lowest_bit(width())), least};
  }
  // Of lanes that ask for 1 << width_bits bytes each. As many as ask for 32 words are served at
  // once, a part of them after the other.
  static constexpr unsigned kMostPassedBits = 5;
  __device__ unsigned passes_without_conflicts(unsigned width_bits) const {
    return __popc(lanes_with(is_first_of_part(active(), words_bits(width_bits))));
  }
  // Passes more than that.
  __device__ unsigned conflicts(unsigned width_bits) const {
    // Of pieces of as many words as a lane asks for there are as many banks as lanes at once.
    const unsigned words = words_bits(width_bits);
    const std::uint32_t piece = low_of_address() / kWordBytes >> words;
    const std::uint32_t in_bank =
        __match_any_sync(active(), first_of_part(words) | (piece & (kWarpLanes - 1) >> words));
    // Mostly each lane has a bank for itself.
    if (__all_sync(active(), (in_bank & (in_bank - 1)) == 0) != 0) return 0;
    // Shared memory is less than 128 MiB, and what a lane asks for begins at a multiple of it.
    const std::uint32_t same = __match_any_sync(
        active(), first_of_part(words) << 27 | (low_of_address() & ((1u << 27) - kWordBytes)));
    // Pieces that the bank of the calling lane still has to serve after each pass of its part.
    unsigned left = __popc(in_bank & lanes_with((same & lanes_before()) == 0)) - 1, more = 0;
    for (;;) {
      const std::uint32_t waiting = lanes_with(left != 0);
      if (waiting == 0) return more;
      more += __popc(lanes_with(left != 0 && is_first_of_part(waiting, words)));
      if (left != 0) --left;
    }
  }

  __device__ std::uint32_t span() const { return last_of(active()) - first_of(active()) + 1; }
  // Of so many lanes and pieces, both less 1, each lane so many bytes further than the one before,
  // the first 0, and none of them less if `in_order`. `same`: all of them ask for the same.
  template <bool in_order, class Same>
  __device__ Pattern pattern_of(std::uint32_t lanes, std::uint32_t pieces, std::uint32_t further,
                                Same same) const {
    if (lanes == 0) return Pattern::kSingle;
    if (pieces == 0) return Pattern::kUnit;
    if (pieces != lanes) return pieces * 4 + 3 <= lanes ? Pattern::kPieces : Pattern::kGather;
    if (same()) return Pattern::kBroadcast;
    const std::uint32_t second = second_lane();
    const std::uint32_t apart = second - first_of(active());
    const auto bytes = static_cast<std::int32_t>(__shfl_sync(active(), further, second));
    // Of steps of less than 2 GiB. Lanes in order are less than 4 GiB apart, but not so many steps.
    const auto step = static_cast<std::uint32_t>(bytes >> first_of(apart));
    const std::uint64_t expected = std::uint64_t{step} * from_lane_before();
    const bool even = (apart & (apart - 1)) == 0 && !(in_order && bytes < 0) &&
                      further == static_cast<std::uint32_t>(expected) &&
                      !(in_order && expected >> 32 != 0);
    return __all_sync(active(), even) != 0 ? Pattern::kStrided : Pattern::kGather;
  }
  // Of addresses of which the lower half is all there is.
  __device__ Pattern pattern_of_low(unsigned width_bits) const {
    const std::uint32_t further =
        low_of_address() - __shfl_sync(active(), low_of_address(), lane_before());
    const std::uint32_t pieces = __popc(lanes_with(further != from_lane_before() << width_bits));
    return pattern_of<false>(lanes() - 1, pieces, further,
                             [&] { return __all_sync(active(), further == 0) != 0; });
  }
  // Of strided lanes.
  __device__ std::int64_t step() const {
    const std::uint32_t first = first_of(active()), second = second_lane();
    return static_cast<std::int32_t>(low_of_lane(second) - low_of_lane(first)) >>
           first_of(second - first);
  }
  template <class Tell>
  __device__ Pattern pattern(Tell tell) const {
    if (lanes() == 1) return Pattern::kSingle;
    // Lanes that follow one another begin the same.
    const Word same(alike(width()));
    if (same == active()) return Pattern::kUnit;
    const Word pieces(pieces_of(same));
    if (pieces <= lanes() / 4) return Pattern::kPieces;
    if (pieces < lanes()) return Pattern::kGather;
    if (alike(0) == active()) return Pattern::kBroadcast;
    return is_strided(tell) ? Pattern::kStrided : Pattern::kGather;
  }
  __device__ unsigned crowd() const {
    return largest(__popc(__match_any_sync(active(), address())));
  }
  // Of addresses of which the lower half is all there is.
  __device__ unsigned crowd_of_low() const {
    return largest(__popc(__match_any_sync(active(), low_of_address())));
  }

 private:
  __device__ std::uint32_t pieces_of(std::uint32_t same) const {
    const std::uint32_t before = active() & lanes_before();
    const bool apart = before == 0 || (same >> last_of(before) & 1) == 0;
    return __popc(__ballot_sync(active(), apart));
  }
  template <class Tell>
  __device__ bool is_strided(Tell tell) const {
    const Word first(first_of(active()));
    const Word apart(first_of(active() & (active() - 1)) - first);
    if ((apart & (apart - 1)) != 0) return false;
    const Word begin(low_of_lane(first));
    // The lower half is enough: what is not so for all of the address is found out.
    const std::int64_t bytes = static_cast<std::int32_t>(low_of_lane(first + apart) - begin);
    const Long step(static_cast<std::uint64_t>(bytes >> first_of(apart)));
    if (alike(step) != active()) return false;
    tell(static_cast<std::int64_t>(static_cast<std::uint64_t>(step)));
    return true;
  }
  __device__ std::uint32_t low_of_lane(std::uint32_t lane) const {
    return __shfl_sync(active(), low_of_address(), static_cast<int>(lane));
  }
  // Those lanes whose address is the same, less so many bytes for each lane.
  __device__ std::uint32_t alike(std::uint64_t step) const {
    return __match_any_sync(active(), address() - step * lane_id());
  }

  __device__ std::uint32_t second_lane() const { return first_of(active() & (active() - 1)); }
  __device__ int lane_before() const {
    return last_of((active() & lanes_before()) | (active() & (0 - active())));
  }
  __device__ static unsigned words_bits(unsigned width_bits) {
    return width_bits > 2 ? width_bits - 2 : 0;
  }
  __device__ static bool is_first_of_part(std::uint32_t mask, unsigned words) {
    return (mask & lanes_before()) >> first_of_part(words) == 0;
  }
  // The first lane of those that are served together with the calling one.
  __device__ static unsigned first_of_part(unsigned words) {
    return lane_id() >> (5 - words) << (5 - words);
  }
  // Of the calling lane among these. Each of these asks the GPU for another number, so that none of
  // them is kept in a register.
  __device__ static unsigned rank(std::uint32_t mask) { return __popc(mask & lanes_up_to()) - 1; }

  __device__ static std::uint32_t sectors_of(std::uint64_t begin, std::uint32_t bytes) {
    return (static_cast<std::uint32_t>(begin) % kSectorBytes + bytes + (kSectorBytes - 1)) /
           kSectorBytes;
  }
  // Of numbers up to 32.
  __device__ unsigned largest(unsigned own) const {
    unsigned most = 0;
    // Bit by bit: of those that are the largest so far, whether one has it.
    PASTA_ROLLED for (unsigned bit = 32; bit != 0; bit >>= 1) {
      if (__any_sync(active(), (own & ~(bit - 1)) == (most | bit)) != 0) most |= bit;
    }
    return most;
  }

  __device__ static std::uint32_t lanes_before() { return gpu::lanes_before(); }
  __device__ static std::uint32_t lanes_behind() { return gpu::lanes_behind(); }
  __device__ static std::uint32_t lanes_from() { return gpu::lanes_from(); }
  __device__ static std::uint32_t lanes_up_to() { return gpu::lanes_up_to(); }
  __device__ static int first_of(std::uint32_t mask) { return __ffs(static_cast<int>(mask)) - 1; }
  __device__ static int last_of(std::uint32_t mask) { return 31 - __clz(static_cast<int>(mask)); }
  __device__ static std::uint32_t own_lane() { return gpu::own_lane(); }
  __device__ std::uint32_t active() const { return self().active; }
  __device__ std::uint32_t width() const { return self().width; }
  __device__ std::uint64_t address() const { return self().address; }
  __device__ std::uint32_t low_of_address() const { return static_cast<std::uint32_t>(address()); }
  __device__ const Self& self() const { return static_cast<const Self&>(*this); }
};

// `wide`: what its one lane asks for may be more than a sector.
template <bool wide>
class GpuWarp : public GpuSteps<GpuWarp<wide>, std::uint32_t, std::uint64_t, wide> {
 public:
  Space space;
  Access access;
  std::uint64_t site;
  std::uint32_t width;
  std::uint32_t active;
  std::uint64_t address;  // of the calling lane; of memory that is not global the lower half

  // Of the calling lane and those that came here with it.
  __device__ GpuWarp(Space of_space, Access of_access, std::uint64_t at, std::uint64_t begin,
                     std::uint64_t where, std::uint32_t bytes, std::uint32_t lanes)
      : space(of_space),
        access(of_access),
        site((at - begin) & kPlaceMask),
        width(bytes),
        active(lanes),
        address(of_space == Space::kGlobal ? where : static_cast<std::uint32_t>(where)) {}

  // Registers are too few for what is known from others.
  __device__ GpuWarp with(Access kind, std::uint32_t bytes) const {
    GpuWarp same = *this;
    same.access = kind;
    same.width = bytes;
    return same;
  }

  class Kept;
};

// The same in memory. A patch may change 14 registers. Each one more it writes to memory and reads
// back, whichever way it takes: 6 % of what calling it costs. So what is seldom done keeps nothing
// in registers.
template <bool wide>
class GpuWarp<wide>::Kept
    : public GpuSteps<Kept, Aside<std::uint32_t>, Aside<std::uint64_t>, wide> {
 public:
  struct Memory {
    Aside<Access> access;
    Aside<std::uint32_t> width, active;
    AsideHalves address;  // so that an upper half of 0 is in no register
  };
  Space space;  // which is known to whoever compiles this
  Aside<Access>& access;
  Aside<std::uint32_t>&width, &active;
  AsideHalves& address;

  __device__ Kept(Memory& memory, Space of_space)
      : space(of_space),
        access(memory.access),
        width(memory.width),
        active(memory.active),
        address(memory.address) {}
  __device__ void operator=(const GpuWarp& warp) {
    access = warp.access;
    width = warp.width;
    active = warp.active;
    address = warp.address;
  }
  __device__ const Kept& now() const { return *this; }
};

}  // namespace pasta::device
