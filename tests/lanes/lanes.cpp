#include "lanes.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define PASTA_LANES_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PASTA_LANES_ADDRESS 1
#endif
#endif
#ifdef PASTA_LANES_ADDRESS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lanes {

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// A stack with what runs on it, as sanitizers are told of it.
struct Fiber {
  ucontext_t context{};
  void* stack = nullptr;
  std::size_t stack_bytes = 0;
#ifdef PASTA_LANES_ADDRESS
  void* fake_stack = nullptr;
#endif
};

void enter(Fiber& from, Fiber& to, [[maybe_unused]] bool for_good) {
#ifdef PASTA_LANES_ADDRESS
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
  swapcontext(&from.context, &to.context);
#ifdef PASTA_LANES_ADDRESS
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

class Machine {
 public:
  Machine() {
    for (Fiber& fiber : fibers_) {
      fiber.stack_bytes = kStackBytes;
      fiber.stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
      if (fiber.stack == MAP_FAILED) throw std::runtime_error("no memory for a stack");
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void begin() {
    for (std::uint64_t& count : answered_) count = 0;
    seen_.assign(kMultiprocessors * kSeen, {});
  }
  void run(const Warp& warp, std::uint32_t mask, const std::function<void(unsigned)>& code) {
    code_ = &code;
    backwards_ = warp.backwards;
    fault_.clear();
    alive_ = ready_ = mask;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned item = warp.number * kLanes + lane;
      here_[lane] = {.lane = lane,
                     .item = {item % warp.items.x, item / warp.items.x % warp.items.y,
                              item / (warp.items.x * warp.items.y)},
                     .items = warp.items,
                     .group = warp.group,
                     .groups = warp.groups,
                     .multiprocessor = warp.multiprocessor,
                     .warp_slot = warp.number};
      if ((mask >> lane & 1) != 0) prepare(fibers_[lane]);
    }
    next(main_, false);
    if (!fault_.empty()) throw std::logic_error(fault_);
  }
  std::uint64_t ask(const Question& question) {
    const unsigned lane = lane_;
    questions_[lane] = question;
    next(fibers_[lane], false);
    return answers_[lane];
  }
  [[nodiscard]] const Here& here() const { return here_[lane_]; }

  std::uint64_t glance(const void* at, std::uint64_t now) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    Seen& seen = seen_[here().multiprocessor % kMultiprocessors * kSeen + address / 4 % kSeen];
    if (seen.at != address) seen = {address, now};
    return seen.value;
  }
  void forget() {
    const std::size_t first = here().multiprocessor % kMultiprocessors * kSeen;
    std::fill_n(seen_.begin() + static_cast<std::ptrdiff_t>(first), kSeen, Seen{});
  }
  [[nodiscard]] std::uint64_t answered(Ask what) const {
    return answered_[static_cast<unsigned>(what)];
  }

 private:
  struct Seen {
    std::uintptr_t at = 0;
    std::uint64_t value = 0;
  };
  static constexpr std::size_t kMultiprocessors = 4, kSeen = 1024;

  void prepare(Fiber& fiber) {
#ifdef PASTA_LANES_ADDRESS
    fiber.fake_stack = nullptr;
    __asan_unpoison_memory_region(fiber.stack, fiber.stack_bytes);
#endif
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = fiber.stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin_lane, 0);
  }
  static void begin_lane();
  void run_lane() {
    const unsigned lane = lane_;
    (*code_)(lane);
    alive_ &= ~(1u << lane);
    next(fibers_[lane], true);
  }
  // Leaves the calling one for the next that may go on; for the main one when there is none.
  void next(Fiber& from, bool for_good) {
    if (ready_ == 0) answer();
    Fiber* to = &main_;
    if (ready_ != 0 && fault_.empty()) {
      lane_ = static_cast<unsigned>(backwards_ ? 31 - std::countl_zero(ready_)
                                               : std::countr_zero(ready_));
      ready_ &= ~(1u << lane_);
      to = &fibers_[lane_];
    }
    if (to != &from) enter(from, *to, for_good);
  }

  // All that are left have asked something.
  void answer() {
    for (std::uint32_t left = alive_; left != 0 && fault_.empty();) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      const std::uint32_t group = group_of(lane);
      left &= ~(group | 1u << lane);
      if (group == 0) continue;
      ++answered_[static_cast<unsigned>(questions_[lane].what)];
      for (std::uint32_t rest = group; rest != 0; rest &= rest - 1) {
        const auto one = static_cast<unsigned>(std::countr_zero(rest));
        answers_[one] = answer_for(one, group);
      }
      ready_ |= group;
    }
    if (fault_.empty() && ready_ == 0 && alive_ != 0) {
      complain(static_cast<unsigned>(std::countr_zero(alive_)), "waits for ever");
    }
  }
  // Those that are asked together with it; 0: it has to wait for some.
  std::uint32_t group_of(unsigned lane) {
    const Question& question = questions_[lane];
    const std::uint32_t there = there_with(question);
    if (question.what == Ask::kActive) return there;
    if ((question.of >> lane & 1) == 0) complain(lane, "asks others than itself");
    if ((question.of & ~alive_) != 0) complain(lane, "asks lanes that have returned");
    if ((question.of & ~there) == 0) return question.of;
    // The others do not wait, see gpu_warp.h.
    if (question.what != Ask::kMatch && question.what != Ask::kWait) {
      complain(lane, "asks lanes that are elsewhere");
    }
    return 0;
  }
  // Lanes that ask the same at the same place.
  [[nodiscard]] std::uint32_t there_with(const Question& question) const {
    std::uint32_t there = 0;
    for (std::uint32_t rest = alive_; rest != 0; rest &= rest - 1) {
      const int one = std::countr_zero(rest);
      const Question& other = questions_[one];
      if (other.what == question.what && other.line == question.line && other.of == question.of) {
        there |= 1u << one;
      }
    }
    return there;
  }
  [[nodiscard]] std::uint64_t answer_for(unsigned lane, std::uint32_t group) const {
    const Question& question = questions_[lane];
    switch (question.what) {
      case Ask::kActive:
        return group;
      case Ask::kWait:
        return 0;
      case Ask::kShuffle:
        return value_of(question.from % kLanes, group);
      case Ask::kShuffleUp:
        return question.from > lane ? question.value : value_of(lane - question.from, group);
      case Ask::kBallot:
        return lanes_with(group, 1);
      case Ask::kAll:
        return lanes_with(group, 1) == group ? 1 : 0;
      case Ask::kAny:
        return lanes_with(group, 1) != 0 ? 1 : 0;
      case Ask::kMatch:
        return lanes_with(group, question.value);
    }
    return 0;
  }
  // Nobody may use what a lane says that is not asked.
  [[nodiscard]] std::uint64_t value_of(unsigned lane, std::uint32_t group) const {
    return (group >> lane & 1) != 0 ? questions_[lane].value : 0xdeadbeef;
  }
  [[nodiscard]] std::uint32_t lanes_with(std::uint32_t group, std::uint64_t value) const {
    std::uint32_t with = 0;
    for (std::uint32_t rest = group; rest != 0; rest &= rest - 1) {
      const int one = std::countr_zero(rest);
      if (questions_[one].value == value) with |= 1u << one;
    }
    return with;
  }
  void complain(unsigned lane, const char* of) {
    if (!fault_.empty()) return;
    fault_ = "lane " + std::to_string(lane) + " in line " + std::to_string(questions_[lane].line) +
             ' ' + of + "; there are";
    for (std::uint32_t rest = alive_; rest != 0; rest &= rest - 1) {
      const int one = std::countr_zero(rest);
      fault_ += ' ' + std::to_string(one) + ':' + std::to_string(questions_[one].line);
    }
  }

  Fiber main_, fibers_[kLanes];
  Here here_[kLanes];
  Question questions_[kLanes] = {};
  std::uint64_t answers_[kLanes] = {};
  const std::function<void(unsigned)>* code_ = nullptr;
  unsigned lane_ = 0;
  std::uint32_t alive_ = 0;  // have not returned
  std::uint32_t ready_ = 0;  // may go on
  bool backwards_ = false;
  std::string fault_;
  std::uint64_t answered_[kAsks] = {};
  std::vector<Seen> seen_;
};

// Code for a GPU has nowhere to keep it.
Machine& machine() {
  static Machine one;
  return one;
}
void Machine::begin_lane() {
#ifdef PASTA_LANES_ADDRESS
  // The first of all comes from the main one.
  Fiber& main = machine().main_;
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  if (main.stack == nullptr) {
    main.stack = const_cast<void*>(stack);
    main.stack_bytes = bytes;
  }
#endif
  machine().run_lane();
}

}  // namespace

std::uint64_t ask(const Question& question) { return machine().ask(question); }
const Here& here() { return machine().here(); }
std::uint64_t glance(const void* at, std::uint64_t now) { return machine().glance(at, now); }
void forget() { machine().forget(); }
void begin() { machine().begin(); }
void run(const Warp& warp, std::uint32_t mask, const std::function<void(unsigned)>& code) {
  machine().run(warp, mask, code);
}
std::uint64_t answered(Ask what) { return machine().answered(what); }

}  // namespace lanes
