// Sorts more events than fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "pasta/event.h"
#include "pasta/result.h"

namespace pasta::trace {

// Events go in in any order and come out sorted; equal ones in the order they came. Within the
// memory budget nothing is written; beyond it, sorted runs go to a nameless temporary file and are
// merged while they are read. One thread at a time.
//
// Made for files whose sections are sorted or nearly so: their sort takes linear time, that of
// input which is already sorted none.
class SortedRuns {
 public:
  enum class Order : std::uint8_t {
    kByStart,  // (start_ns ascending, end_ns descending): an outer range before those inside it
    kByEnd,    // (end_ns ascending, start_ns descending): an inner range before those around it
  };
  struct Options {
    // For records and for the order of them. Blocks for reading runs back come out of it too, but
    // are never less than 4 KiB a run.
    std::uint64_t memory_budget_bytes = std::uint64_t{256} << 20;
    std::filesystem::path scratch;  // empty: the system's temporary folder
  };
  SortedRuns(Order order, Options options);
  ~SortedRuns();
  SortedRuns(SortedRuns&&) noexcept;
  SortedRuns& operator=(SortedRuns&&) noexcept;

  // Errors of all: kIo when the disk is full or the folder cannot be written. Times of kNoTime
  // sort before all others in both orders.
  Status add(const Event& event);
  // After the last add().
  Status finish();
  // The next events in order; fewer than `to` holds only at the end, where it is 0.
  Result<std::size_t> read(std::span<Event> to);

  // Runs written to disk so far; 0 = all in memory.
  [[nodiscard]] std::size_t runs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::trace
