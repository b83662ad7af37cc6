// Bytes that are put by and looked at again once, at the end: their memory is the system's to take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pasta::base {

// What has been put stays until the end of this. Beyond some hundred kilobytes it lies in temporary
// files that are mapped (and not open: there may be thousands of these); where there is no disk for
// that, in memory as before. One thread at a time.
class ColdBytes {
 public:
  ColdBytes() = default;
  ~ColdBytes();
  ColdBytes(const ColdBytes&) = delete;
  ColdBytes& operator=(const ColdBytes&) = delete;

  struct Place {
    std::uint32_t part = 0;
    std::uint32_t offset = 0;
  };
  Place put(std::span<const std::uint8_t> bytes);
  // Valid until the next put().
  [[nodiscard]] const std::uint8_t* at(Place place) const {
    const Part& part = parts_[place.part];
    return (part.mapped != nullptr ? part.mapped : part.held.data()) + place.offset;
  }
  // They will not be looked at for a while. Changes nothing but where they lie.
  void leave(Place place) const;
  // In memory of our own.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Part {
    std::vector<std::uint8_t> held;
    const std::uint8_t* mapped = nullptr;  // in its place
    std::size_t size = 0;
  };
  // Of the last part, at most.
  [[nodiscard]] std::size_t part_bytes() const;
  void put_by(Part& part);

  std::vector<Part> parts_;  // the last one grows
  bool no_disk_ = false;
};

}  // namespace pasta::base
