// An append-only array whose elements never move and are read without locks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace pasta::event {

// Grows by blocks of doubling size, so an element keeps its address for life. One thread appends
// at a time (the caller's lock); any thread reads what lies below size().
template <class T>
class StableTable {
 public:
  StableTable() = default;
  StableTable(const StableTable&) = delete;
  StableTable& operator=(const StableTable&) = delete;
  ~StableTable() {
    for (auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
  }

  std::uint32_t append(T value) {
    const std::uint32_t index = size_.load(std::memory_order_relaxed);
    const Place place = place_of(index);
    T* block = blocks_[place.block].load(std::memory_order_relaxed);
    if (block == nullptr) {
      block = new T[std::size_t{kFirst} << place.block]();
      blocks_[place.block].store(block, std::memory_order_release);
    }
    block[place.offset] = std::move(value);
    size_.store(index + 1, std::memory_order_release);
    return index;
  }
  [[nodiscard]] const T& operator[](std::uint32_t index) const {
    const Place place = place_of(index);
    return blocks_[place.block].load(std::memory_order_acquire)[place.offset];
  }
  [[nodiscard]] T& at(std::uint32_t index) {
    const Place place = place_of(index);
    return blocks_[place.block].load(std::memory_order_relaxed)[place.offset];
  }
  [[nodiscard]] std::uint32_t size() const { return size_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kFirst = 256;
  struct Place {
    std::uint32_t block, offset;
  };
  // Block b holds indices [kFirst * (2^b - 1), kFirst * (2^(b+1) - 1)).
  static Place place_of(std::uint32_t index) {
    const std::uint64_t n = std::uint64_t{index} + kFirst;
    const auto block = static_cast<std::uint32_t>(std::bit_width(n) - std::bit_width(kFirst));
    return {block, static_cast<std::uint32_t>(n - (std::uint64_t{kFirst} << block))};
  }

  std::array<std::atomic<T*>, 26> blocks_{};
  std::atomic<std::uint32_t> size_{0};
};

}  // namespace pasta::event
