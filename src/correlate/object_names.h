// What a program calls the pieces of memory that it uses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/ids.h"

namespace pasta::correlate {

// When the launch began whose result an event of kind device is, for name_of().
std::int64_t time_of_launch(const Event& event);

class ObjectNames {
 public:
  // To be given events of kinds alloc, free and scope, in their order; others tell it nothing.
  void take(const Event& event, const Dictionary& dictionary);
  // Of an object as it was at a time, which may be long ago: what the program called it (tag), else
  // `called`, as the kernel does or what sort of memory it is, and the call path of its allocation.
  [[nodiscard]] std::string name_of(ProcessId process, std::uint64_t address, std::uint64_t bytes,
                                    std::int64_t at_ns, const std::string& called) const;

 private:
  // From one time to another; `end_ns` is the greatest there is while it lasts.
  struct Named {
    std::uint64_t bytes = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::string name;
  };
  // By address, the newest last. What was before them is forgotten.
  using ByAddress = std::map<std::uint64_t, std::deque<Named>>;
  struct Memory {
    ByAddress allocations, tags;
  };
  void forget_oldest();
  static void begin(ByAddress& all, std::uint64_t address, Named named);
  static const Named* find(const ByAddress& all, std::uint64_t address, std::int64_t at_ns);

  struct Freed {
    std::uint32_t process = 0;
    std::uint64_t address = 0;
    std::int64_t end_ns = 0;
  };
  std::map<std::uint32_t, Memory> memory_;  // by process
  std::deque<Freed> freed_ = {};
};

}  // namespace pasta::correlate
