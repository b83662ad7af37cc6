// The rival of analysing accesses where they happen: a record for each access of a warp goes to the
// host, and threads there do what the patch `access` does to objects. As good as we can make it: a
// rival that loses because it is weak says nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "device/access.h"
#include "device/launch.h"
#include "device/warp.h"

namespace pasta::benchmarks {

// One access of a warp whose lanes are evenly apart; one that is not is a record for each lane.
struct WarpRecord {
  std::uint64_t packed;
  std::uint32_t active;
  std::int32_t stride;  // bytes from lane to lane

  // Of lane 0, whether it takes part or not.
  [[nodiscard]] std::uint64_t address() const { return packed & 0xffffffffffff; }
  [[nodiscard]] std::uint64_t width() const { return packed >> 48 & 0xff; }
  [[nodiscard]] std::uint64_t access() const { return packed >> 56; }  // as device::Access
  static WarpRecord of(std::uint64_t address, std::uint64_t width, std::uint64_t access,
                       std::uint32_t active, std::int32_t stride) {
    return {address | width << 48 | access << 56, active, stride};
  }
};
static_assert(sizeof(WarpRecord) == 16);

// Counts of objects and the bytes of them that were touched.
class RecordAnalyser {
 public:
  RecordAnalyser(std::span<const device::MemoryObject> objects, unsigned threads)
      : objects_(objects.begin(), objects.end()), first_words_(objects.size()) {
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      first_words_[i] = words;
      words += objects_[i].bytes / 64 + 1;
    }
    touched_ = std::vector<std::atomic<std::uint64_t>>(words);
    // The last row is of what lies in no object.
    for (unsigned i = 0; i < threads; ++i) own_.emplace_back(objects_.size() + 1);
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] { work(i); });
    }
  }
  ~RecordAnalyser() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    given_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  RecordAnalyser(const RecordAnalyser&) = delete;
  RecordAnalyser& operator=(const RecordAnalyser&) = delete;

  // One buffer of the ring; it is done with when wait() returns.
  void give(std::span<const WarpRecord> records) {
    {
      const std::lock_guard lock(mutex_);
      records_ = records;
      left_ = threads_.size();
      ++round_;
    }
    given_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
  }

  // As the patch counts them; `touched` is bytes.
  [[nodiscard]] device::AccessCounts total(std::size_t object) const {
    device::AccessCounts sum;
    for (const auto& own : own_) device::add_row(sum, own[object]);
    if (object < objects_.size()) {
      for (std::uint64_t i = 0; i <= objects_[object].bytes / 64; ++i) {
        sum.touched += static_cast<std::uint64_t>(
            std::popcount(touched_[first_words_[object] + i].load(std::memory_order_relaxed)));
      }
    }
    return sum;
  }

 private:
  void work(unsigned number) {
    std::uint64_t round = 0;
    for (;;) {
      std::span<const WarpRecord> records;
      {
        std::unique_lock lock(mutex_);
        given_.wait(lock, [&] { return over_ || round_ != round; });
        if (over_) return;
        round = round_;
        records = records_;
      }
      const std::size_t share = (records.size() + threads_.size() - 1) / threads_.size();
      const std::size_t begin = std::min(share * number, records.size());
      analyse(records.subspan(begin, std::min(share, records.size() - begin)), own_[number]);
      const std::lock_guard lock(mutex_);
      if (--left_ == 0) done_.notify_one();
    }
  }

  void analyse(std::span<const WarpRecord> records, std::vector<device::AccessCounts>& rows) {
    std::size_t last = 0;  // the object that was found last: mostly the next one, too
    for (const WarpRecord& record : records) {
      if (record.active == 0) continue;
      const auto first_lane = static_cast<std::int64_t>(std::countr_zero(record.active));
      const auto last_lane = static_cast<std::int64_t>(31 - std::countl_zero(record.active));
      const std::uint64_t a =
          record.address() + static_cast<std::uint64_t>(record.stride * first_lane);
      const std::uint64_t b =
          record.address() + static_cast<std::uint64_t>(record.stride * last_lane);
      const std::uint64_t begin = std::min(a, b), end = std::max(a, b) + record.width();
      if (find(begin, end - begin, last)) {
        count(record, record.active, begin, end, rows[last]);
        mark(record, begin, end, last);
        continue;
      }
      // Lanes of several objects, or of none.
      std::uint32_t left = record.active;
      while (left != 0) {
        std::size_t object = last;
        const std::uint64_t wanted = lane_address(record, std::countr_zero(left));
        const bool inside = find(wanted, record.width(), object);
        std::uint32_t mask = 0;
        for (std::uint32_t rest = left; rest != 0; rest &= rest - 1) {
          const int lane = std::countr_zero(rest);
          std::size_t other = object;
          const bool also = find(lane_address(record, lane), record.width(), other);
          if (also == inside && (!inside || other == object)) mask |= 1u << lane;
        }
        count_lanes(record, mask, rows[inside ? object : objects_.size()]);
        if (inside) {
          for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const std::uint64_t at = lane_address(record, std::countr_zero(rest));
            mark_bytes(object, at, at + record.width());
          }
        }
        left &= ~mask;
      }
    }
  }

  static std::uint64_t lane_address(const WarpRecord& record, int lane) {
    return record.address() + static_cast<std::uint64_t>(std::int64_t{record.stride} * lane);
  }

  // Without gaps between lanes that take part.
  static bool is_dense(std::uint32_t mask) {
    const std::uint32_t low = mask >> std::countr_zero(mask);
    return (low & (low + 1)) == 0;
  }

  [[nodiscard]] bool holds(std::size_t i, std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t offset = address - objects_[i].address;
    return offset < objects_[i].bytes && bytes <= objects_[i].bytes - offset;
  }
  bool find(std::uint64_t address, std::uint64_t bytes, std::size_t& at) const {
    if (objects_.empty()) return false;
    if (holds(at, address, bytes)) return true;
    std::size_t first = 0;
    for (std::size_t count = objects_.size(); count > 1;) {
      const std::size_t half = count / 2;
      first += objects_[first + half].address <= address ? half : 0;
      count -= half;
    }
    if (!holds(first, address, bytes)) return false;
    at = first;
    return true;
  }

  static void count_kind(const WarpRecord& record, std::uint64_t lanes, device::AccessCounts& row) {
    (record.access() == 0 ? row.reads : record.access() == 1 ? row.writes : row.atomics) += lanes;
    ++row.warps;
    row.asked_bytes += lanes * record.width();
  }

  // All lanes lie in one object.
  static void count(const WarpRecord& record, std::uint32_t mask, std::uint64_t begin,
                    std::uint64_t end, device::AccessCounts& row) {
    const auto lanes = static_cast<std::uint64_t>(std::popcount(mask));
    const auto step = static_cast<std::uint64_t>(std::abs(std::int64_t{record.stride}));
    const bool dense = is_dense(mask);
    if (step == 0 || (dense && step <= record.width())) {
      count_kind(record, lanes, row);
      row.used_bytes += end - begin;
      row.sectors += (end - 1) / device::kSectorBytes - begin / device::kSectorBytes + 1;
      return;
    }
    if (step >= device::kSectorBytes && begin % record.width() == 0 && step % record.width() == 0 &&
        device::kSectorBytes % record.width() == 0) {
      count_kind(record, lanes, row);
      row.used_bytes += lanes * record.width();
      row.sectors += lanes;
      return;
    }
    count_lanes(record, mask, row);
  }

  static void count_lanes(const WarpRecord& record, std::uint32_t mask, device::AccessCounts& row) {
    device::Warp warp;
    warp.width = static_cast<std::uint32_t>(record.width());
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      warp.address[lane] = lane_address(record, lane);
    }
    const device::Footprint footprint = warp.footprint(mask);
    count_kind(record, static_cast<std::uint64_t>(std::popcount(mask)), row);
    row.used_bytes += footprint.bytes;
    row.sectors += footprint.sectors;
  }

  void mark(const WarpRecord& record, std::uint64_t begin, std::uint64_t end, std::size_t object) {
    const auto step = static_cast<std::uint64_t>(std::abs(std::int64_t{record.stride}));
    if (step == 0 || (step <= record.width() && is_dense(record.active))) {
      mark_bytes(object, begin, end);
      return;
    }
    for (std::uint32_t rest = record.active; rest != 0; rest &= rest - 1) {
      const std::uint64_t at = lane_address(record, std::countr_zero(rest));
      mark_bytes(object, at, at + record.width());
    }
  }
  void mark_bytes(std::size_t object, std::uint64_t begin, std::uint64_t end) {
    begin -= objects_[object].address;
    end -= objects_[object].address;
    while (begin < end) {
      const std::uint64_t stop = std::min(end, begin / 64 * 64 + 64);
      const std::uint64_t bits = ~std::uint64_t{0} >> (64 - (stop - begin)) << begin % 64;
      std::atomic<std::uint64_t>& word = touched_[first_words_[object] + begin / 64];
      if ((word.load(std::memory_order_relaxed) & bits) != bits) {
        word.fetch_or(bits, std::memory_order_relaxed);
      }
      begin = stop;
    }
  }

  std::vector<device::MemoryObject> objects_;
  std::vector<std::uint64_t> first_words_;
  std::vector<std::atomic<std::uint64_t>> touched_;
  std::vector<std::vector<device::AccessCounts>> own_;  // by thread
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable given_, done_;
  std::span<const WarpRecord> records_;
  std::uint64_t round_ = 0;
  std::size_t left_ = 0;
  bool over_ = false;
};

}  // namespace pasta::benchmarks
