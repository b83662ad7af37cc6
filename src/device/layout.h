// The memory of a patch's state: one block, on the host or on a GPU.
//
// A patch is a struct with
//   Settings                                       plain data
//   State                                          plain data that points into the block
//   static State lay_out(const Launch&, const Settings&, Layout&)
//   PASTA_DEVICE static void on_access(State&, const Launch&, const Warp&)
//   static PatchResult result(const Launch&, const State&, const Names&)       on the host
// The same lay_out, called again with another address, describes a copy of the block: once with
// that of the block on the GPU, once with that of its copy on the host, from which the result is
// made. So the block is
//   [ tables, as they are before the launch | counters: zero | scratch: zero ]
// and the first two parts, `result_bytes`, are all that travels back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "device/launch.h"

namespace pasta::device {

class Layout {
 public:
  static constexpr std::size_t kAlign = kBlockAlign;

  // To find out how large the block is.
  Layout() = default;
  // Of a block to come, which is to begin with the image.
  explicit Layout(std::uint64_t address) : address_(address), makes_image_(true) {}
  // Of one that is there, as a copy of what was on a GPU is.
  explicit Layout(std::span<std::byte> block)
      : address_(reinterpret_cast<std::uintptr_t>(block.data())) {}

  static constexpr std::uint64_t rounded(std::uint64_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
  }

  // In this order: tables, counters, scratch.
  template <class T>
  const T* table(std::span<const T> values) {
    return table<T>(values.size(), [&](std::span<T> to) {
      if (!values.empty()) std::memcpy(to.data(), values.data(), values.size_bytes());
    });
  }
  // Of as many as fill() makes in zeros.
  template <class T, class Fill>
  const T* table(std::size_t count, Fill fill) {
    const std::size_t at = place<T>(count);
    if (makes_image_) {
      image_.resize(bytes_);
      fill(std::span<T>(reinterpret_cast<T*>(image_.data() + at), count));
    }
    result_bytes_ = bytes_;
    return pointer<T>(at);
  }
  template <class T>
  T* counters(std::uint64_t count) {
    const std::size_t at = place<T>(count);
    result_bytes_ = bytes_;
    return pointer<T>(at);
  }
  template <class T>
  T* scratch(std::uint64_t count) {
    return pointer<T>(place<T>(count));
  }

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t result_bytes() const { return result_bytes_; }
  // What the block begins with; the rest is zero.
  [[nodiscard]] std::span<const std::byte> image() const { return image_; }

 private:
  template <class T>
  std::size_t place(std::uint64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = bytes_;
    bytes_ += rounded(count * sizeof(T));
    return at;
  }
  template <class T>
  T* pointer(std::size_t at) const {
    return reinterpret_cast<T*>(address_ + at);
  }

  std::uint64_t address_ = 0;
  bool makes_image_ = false;
  std::size_t bytes_ = 0, result_bytes_ = 0;
  std::vector<std::byte> image_;
};

// A state on the host, with its block.
template <class Patch>
class HostState {
 public:
  explicit HostState(const Launch& launch, const typename Patch::Settings& settings = {}) {
    Layout sizing;
    Patch::lay_out(launch, settings, sizing);
    block_.resize((sizing.bytes() + sizeof(Piece) - 1) / sizeof(Piece));
    Layout layout(reinterpret_cast<std::uintptr_t>(block_.data()));
    state_ = Patch::lay_out(launch, settings, layout);
    if (!layout.image().empty()) {
      std::memcpy(block_.data(), layout.image().data(), layout.image().size());
    }
  }
  [[nodiscard]] typename Patch::State& state() { return state_; }
  [[nodiscard]] const typename Patch::State& state() const { return state_; }

 private:
  struct alignas(Layout::kAlign) Piece {
    std::byte bytes[Layout::kAlign];
  };
  std::vector<Piece> block_;
  typename Patch::State state_;
};

}  // namespace pasta::device
