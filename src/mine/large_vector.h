// Vectors that are read in jumps all over.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace pasta::mine {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20U;

// For the whole ones of a block that was not written yet.
inline void ask_for_huge_pages(void* block, std::size_t bytes) {
  void* begin = block;
  if (std::align(kHugePage, kHugePage, begin, bytes) == nullptr) return;
  madvise(begin, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

// Large blocks are asked for in huge pages: with small ones, most jumps of a sort of 10 million
// suffixes miss the processor's table of pages, and that costs up to a third of the time. Where
// there are none, nothing is lost.
//
// Numbers that no value was given for hold anything: what is written in the next pass need not be
// cleared first.
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
    ask_for_huge_pages(block, bytes);
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) {
    if (count * sizeof(T) < 2 * kPage) {
      ::operator delete(block);
    } else {
      ::operator delete (block, std::align_val_t{kPage});
    }
  }
  template <class U>
  void construct(U* place) {
    static_assert(std::is_trivially_destructible_v<U>);
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    std::construct_at(place, std::forward<Arguments>(arguments)...);
  }
  bool operator==(const LargeAllocator&) const = default;

 private:
  static constexpr std::size_t kPage = kHugePage;
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

// An array of zeros, of which what is never touched takes neither time nor memory.
template <class T>
class ZeroTable {
 public:
  explicit ZeroTable(std::size_t size) : table_(static_cast<T*>(std::calloc(size + 1, sizeof(T)))) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (table_ == nullptr) throw std::bad_alloc();
  }
  [[nodiscard]] T& operator[](std::size_t at) { return table_.get()[at]; }

 private:
  struct Free {
    void operator()(T* table) const { std::free(table); }
  };
  std::unique_ptr<T[], Free> table_;
};

// A stack whose elements never move. A vector that grows to hundreds of megabytes copies as much
// again, into memory that the system must clear first.
template <class T>
class Pile {
 public:
  [[nodiscard]] bool empty() const { return top_ == begin_; }
  [[nodiscard]] T& back() { return top_[-1]; }
  void push(const T& value) {
    if (top_ == end_) add_block();
    *top_++ = value;
  }
  void pop() {
    --top_;
    if (top_ == begin_ && used_ > 1) {
      enter(used_ - 1);
      top_ = end_;
    }
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t size = static_cast<std::size_t>(top_ - begin_);
    for (std::size_t block = 0; block + 1 < used_; ++block) size += blocks_[block].size();
    return size;
  }
  // From the oldest on.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t block = 0; block < used_; ++block) {
      const T* begin = blocks_[block].data();
      const T* end = block + 1 < used_ ? begin + blocks_[block].size() : top_;
      for (const T* one = begin; one != end; ++one) visit(*one);
    }
  }

 private:
  static constexpr std::size_t kFirstBlock = 4096;  // each is twice as large as the one before
  void add_block() {
    if (used_ == blocks_.size()) blocks_.emplace_back(kFirstBlock << used_);
    enter(used_ + 1);
    top_ = begin_;
  }
  void enter(std::size_t used) {
    used_ = used;
    begin_ = blocks_[used - 1].data();
    end_ = begin_ + blocks_[used - 1].size();
  }
  std::vector<LargeVector<T>> blocks_;
  std::size_t used_ = 0;  // blocks; only the first may be empty
  T* begin_ = nullptr;
  T* top_ = nullptr;
  T* end_ = nullptr;
};

}  // namespace pasta::mine
