// Vectors that are read in jumps all over.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace pasta::mine {

// Large blocks are asked for in huge pages: with small ones, most jumps of a sort of 10 million
// suffixes miss the processor's table of pages, and that costs up to a third of the time. Where
// there are none, nothing is lost.
template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < 2 * kPage) return static_cast<T*>(::operator new(bytes));
    void* block = ::operator new (bytes, std::align_val_t{kPage});
    madvise(block, bytes / kPage * kPage, MADV_HUGEPAGE);
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) {
    if (count * sizeof(T) < 2 * kPage) {
      ::operator delete(block);
    } else {
      ::operator delete (block, std::align_val_t{kPage});
    }
  }
  bool operator==(const LargeAllocator&) const = default;

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20U;
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace pasta::mine
