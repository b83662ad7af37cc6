// Threads of the host that share each buffer of records among them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "rival/record_tables.h"

namespace pasta::benchmarks {

class RecordAnalyser {
 public:
  RecordAnalyser(std::span<const device::MemoryObject> objects, unsigned threads)
      : tables_(objects, threads, 1) {
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

  [[nodiscard]] device::AccessCounts total(std::size_t object) const {
    return tables_.total(object);
  }

 private:
  void work(unsigned number) {
    std::uint64_t round = 0;
    RecordTables::Carry carry;  // a buffer holds whole accesses
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
      tables_.count(records.subspan(begin, std::min(share, records.size() - begin)), number, carry);
      const std::lock_guard lock(mutex_);
      if (--left_ == 0) done_.notify_one();
    }
  }

  RecordTables tables_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable given_, done_;
  std::span<const WarpRecord> records_;
  std::uint64_t round_ = 0;
  std::size_t left_ = 0;
  bool over_ = false;
};

}  // namespace pasta::benchmarks
