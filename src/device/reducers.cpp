#include "device/reducers.h"

#include <algorithm>
#include <cmath>

namespace pasta::device {
namespace {

std::uint32_t shift_of(std::uint64_t bytes, std::uint64_t most_bits, std::uint64_t least_granule) {
  std::uint32_t shift = 0;
  while (std::uint64_t{1} << shift < least_granule || bytes >> shift > most_bits) ++shift;
  return shift;
}

}  // namespace

std::vector<Marks::Place> Marks::plan(const Launch& launch, const Room& room,
                                      std::uint64_t& words) {
  std::vector<Place> places(launch.object_count);
  // The largest are marked more coarsely, until all find room.
  for (std::uint64_t each = std::max<std::uint64_t>(room.each, 64);; each /= 2) {
    words = 0;
    for (std::uint32_t i = 0; i < launch.object_count; ++i) {
      const std::uint32_t shift = shift_of(launch.objects[i].bytes, each, room.least_granule);
      places[i] = {launch.objects[i].address, launch.objects[i].bytes,
                   static_cast<std::uint32_t>(words), shift};
      words += (launch.objects[i].bytes >> shift) / 32 + 1;
    }
    if (each <= 64 || words <= room.together / 32) return places;
  }
}

std::uint64_t Marks::touched(std::uint32_t index, const MemoryObject& object) const {
  const Place place = places[index];
  std::uint64_t granules = 0;
  for (std::uint64_t i = 0; i <= (object.bytes >> place.shift) / 32; ++i) {
    granules += count_bits(words[place.first_word + i]);
  }
  return std::min(granules << place.shift, object.bytes);
}

std::uint64_t DistinctBits::estimate(std::uint64_t set) {
  if (set >= kBits) return kMostTold;
  const double left = static_cast<double>(kBits - set) / kBits;
  const auto told = static_cast<std::uint64_t>(std::llround(-std::log(left) * kBits));
  return std::min(told, kMostTold);
}

}  // namespace pasta::device
