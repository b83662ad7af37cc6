// The memory of a process that its kernels can reach: what is live, in order of its addresses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/launch.h"

namespace pasta::adapters::sanitizer {

enum class MemoryKind : std::uint8_t { kDevice, kModule, kManaged, kHost, kPeer };
// Of Sanitizer_ResourceMemoryFlags.
MemoryKind kind_of_flags(std::uint32_t flags);
// For people; "" of plain device memory.
std::string_view kind_name(MemoryKind kind);

// What was live when a kernel was launched.
struct Snapshot {
  std::vector<device::MemoryObject> objects;
  std::vector<MemoryKind> kinds;               // of each
  std::map<std::uint64_t, std::string> names;  // by number, of those that the program names
  std::uint64_t left_out = 0;                  // that found no room
};

class Objects {
 public:
  // A table on the device holds at most so many.
  static constexpr std::size_t kMost = 16384;

  // What lies where another is known to be is in its place.
  void allocated(std::uint64_t address, std::uint64_t bytes, MemoryKind kind);
  // A variable of a module; none where something is known already.
  void found_variable(std::uint64_t address, std::uint64_t bytes, std::string name);
  void freed(std::uint64_t address);
  // A piece of one of them is an object of its own from now on, and so is what is left before and
  // behind it, until it is freed as a whole. Not where a plain access could lie in two of them.
  void tagged(std::uint64_t address, std::uint64_t bytes);
  // The same as before while nothing has changed. Where there are too many, the largest.
  std::shared_ptr<const Snapshot> snapshot();
  [[nodiscard]] std::uint64_t allocations() const { return allocations_; }

 private:
  struct Object {
    std::uint64_t bytes, number;
    MemoryKind kind;
    std::string name;
  };
  // All pieces of an allocation.
  void put_away(std::map<std::uint64_t, std::uint64_t>::iterator split);

  std::map<std::uint64_t, Object> live_;          // by address
  std::map<std::uint64_t, std::uint64_t> split_;  // allocations in pieces: where they begin and end
  std::uint64_t allocations_ = 0;
  std::shared_ptr<const Snapshot> snapshot_;  // none: something has changed
};

}  // namespace pasta::adapters::sanitizer
