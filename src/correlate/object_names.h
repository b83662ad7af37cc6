// What a program calls the pieces of memory that it uses.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/ids.h"

namespace pasta::correlate {

class ObjectNames {
 public:
  // To be given events of kinds alloc, free and scope, in their order; others tell it nothing.
  void take(const Event& event, const Dictionary& dictionary);
  // Of an object as it is now: what the program called it (tag), else `called`, which is what the
  // kernel does, else the call path of its allocation.
  [[nodiscard]] std::string name_of(ProcessId process, std::uint64_t address, std::uint64_t bytes,
                                    const std::string& called) const;

 private:
  struct Named {
    std::uint64_t bytes = 0;
    std::string name;
  };
  struct Memory {
    std::map<std::uint64_t, Named> allocations, tags;  // by address
  };
  std::map<std::uint32_t, Memory> memory_;  // by process
};

}  // namespace pasta::correlate
