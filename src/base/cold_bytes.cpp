#include "base/cold_bytes.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/temp_file.h"

namespace pasta::base {
namespace {

// What has become large has large parts, since a process may map only some ten thousand.
constexpr std::size_t kLeastPart = std::size_t{1} << 18;
constexpr std::size_t kLargestPart = std::size_t{1} << 20;

}  // namespace

ColdBytes::~ColdBytes() {
  for (const Part& part : parts_) {
    if (part.mapped != nullptr) munmap(const_cast<std::uint8_t*>(part.mapped), part.size);
  }
}

std::size_t ColdBytes::part_bytes() const {
  return std::min(kLeastPart * parts_.size(), kLargestPart);
}

ColdBytes::Place ColdBytes::put(std::span<const std::uint8_t> bytes) {
  if (parts_.empty()) parts_.emplace_back();
  if (!parts_.back().held.empty() && parts_.back().held.size() + bytes.size() > part_bytes()) {
    put_by(parts_.back());
    parts_.emplace_back();
  }
  std::vector<std::uint8_t>& held = parts_.back().held;
  const Place place{static_cast<std::uint32_t>(parts_.size() - 1),
                    static_cast<std::uint32_t>(held.size())};
  held.insert(held.end(), bytes.begin(), bytes.end());
  return place;
}

void ColdBytes::put_by(Part& part) {
  part.held.shrink_to_fit();
  if (no_disk_) return;
  part.size = part.held.size();
  auto file = TempFile::create();
  if (file && file->append(std::as_bytes(std::span(part.held)))) part.mapped = file->map();
  if (part.mapped == nullptr) {
    no_disk_ = true;
  } else {
    part.held = std::vector<std::uint8_t>();
  }
}

void ColdBytes::leave(Place place) const {
  const Part& part = parts_[place.part];
  if (part.mapped == nullptr) return;
  madvise(const_cast<std::uint8_t*>(part.mapped), part.size, MADV_DONTNEED);
}

std::size_t ColdBytes::held_bytes() const {
  std::size_t bytes = 0;
  for (const Part& part : parts_) bytes += part.held.capacity();
  return bytes;
}

}  // namespace pasta::base
