// The memory of a patch's state: a block of a launch, and one that launches which see the same
// objects share; each on the host or on a GPU.
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
//
// What tells of the objects alone is made once for all launches that see them, and is the same
// wherever their blocks lie. A patch that has such tables is told of it apart, and has instead
//   Shared                                         plain data that points into their block
//   static Shared share(const Launch&, const Settings&, Layout&)   of a launch but its objects
//   static State lay_out(const Launch&, const Shared&, const Settings&, Layout&)
// That block has tables alone. What lay_out then does should not grow with the objects: it is
// called for each launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
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

struct SharesNothing {};
template <class Patch>
auto share(const Launch& objects, const typename Patch::Settings& settings, Layout& layout) {
  if constexpr (requires { typename Patch::Shared; }) {
    return Patch::share(objects, settings, layout);
  } else {
    return SharesNothing{};
  }
}
template <class Patch, class Shared>
typename Patch::State lay_out(const Launch& launch, const Shared& shared,
                              const typename Patch::Settings& settings, Layout& layout) {
  if constexpr (std::is_same_v<Shared, SharesNothing>) {
    return Patch::lay_out(launch, settings, layout);
  } else {
    return Patch::lay_out(launch, shared, settings, layout);
  }
}
template <class Patch>
using SharedOf = decltype(share<Patch>(std::declval<const Launch&>(),
                                       std::declval<const typename Patch::Settings&>(),
                                       std::declval<Layout&>()));

// A block on the host.
class HostBlock {
 public:
  // What lay(Layout&) says of it; asked twice, as where it lies is known when its size is.
  template <class Lay>
  auto make(Lay lay) {
    Layout sizing;
    lay(sizing);
    pieces_.resize(sizing.bytes() / sizeof(Piece));
    Layout layout(reinterpret_cast<std::uintptr_t>(pieces_.data()));
    auto made = lay(layout);
    if (!layout.image().empty()) {
      std::memcpy(pieces_.data(), layout.image().data(), layout.image().size());
    }
    return made;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(pieces_));
  }

 private:
  struct alignas(Layout::kAlign) Piece {
    std::byte bytes[Layout::kAlign];
  };
  std::vector<Piece> pieces_;
};

// A state on the host, with its blocks.
template <class Patch>
class HostState {
 public:
  explicit HostState(const Launch& launch, const typename Patch::Settings& settings = {}) {
    const auto shared =
        shared_block_.make([&](Layout& layout) { return share<Patch>(launch, settings, layout); });
    state_ = block_.make(
        [&](Layout& layout) { return lay_out<Patch>(launch, shared, settings, layout); });
  }
  [[nodiscard]] typename Patch::State& state() { return state_; }
  [[nodiscard]] const typename Patch::State& state() const { return state_; }

 private:
  HostBlock shared_block_, block_;
  typename Patch::State state_;
};

}  // namespace pasta::device
