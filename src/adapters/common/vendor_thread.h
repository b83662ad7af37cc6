// What adapters of the collector share that get their records from a vendor's library when they ask
// for them: a thread of ours that asks, and the vendor's clock. No heap, no libstdc++.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "pasta/event.h"
#include "trace/spool_writer.h"
#include "trace/tick_clock.h"

namespace pasta::adapters::common {

// Of CLOCK_REALTIME, which semaphores and locks wait by.
inline timespec after_ns(std::int64_t ns) {
  timespec at{};
  clock_gettime(CLOCK_REALTIME, &at);
  const std::int64_t sum = at.tv_nsec + ns;
  at.tv_sec += static_cast<time_t>(sum / 1'000'000'000);
  at.tv_nsec = static_cast<long>(sum % 1'000'000'000);
  return at;
}

// Which time of CLOCK_MONOTONIC a vendor's time is. Both clocks run at the same speed, so that
// durations stay as they are, until they are seen to have parted, as when the machine slept.
class VendorClock {
 public:
  // `get` sets the vendor's time now; false when it cannot. Of several readings the one that took
  // least long counts. One thread.
  template <class Get>
  void read(Get&& get) {
    std::int64_t best_ns = 0, offset_ns = 0;
    for (int i = 0; i < 8; ++i) {
      std::uint64_t theirs = 0;
      const std::int64_t before = trace::host_now_ns();
      if (!get(theirs)) return;
      const std::int64_t took = trace::host_now_ns() - before;
      if (i > 0 && took >= best_ns) continue;
      best_ns = took;
      offset_ns = before + took / 2 - static_cast<std::int64_t>(theirs);
    }
    const std::int64_t moved = offset_ns - offset_ns_.load(std::memory_order_relaxed);
    const std::int64_t tolerance = kToleranceNs + best_ns;
    if (known_ && moved <= tolerance && -moved <= tolerance) return;
    offset_ns_.store(offset_ns, std::memory_order_relaxed);
    known_ = true;
  }
  // Any thread.
  void shift(Event& event) const {
    if (event.untimed()) return;
    const std::int64_t offset_ns = offset_ns_.load(std::memory_order_relaxed);
    event.start_ns += offset_ns;
    event.end_ns += offset_ns;
  }

 private:
  // Two readings of the same clock pair agree better than this, beside the time that they take.
  static constexpr std::int64_t kToleranceNs = 250;

  std::atomic<std::int64_t> offset_ns_ = 0;
  bool known_ = false;
};

// A thread with no signals of the program's. False when there is none to be had.
inline bool start_quiet_thread(void* (*run)(void*), void* data) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = pthread_create(&thread, nullptr, run, data) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  return started;
}

// Asks the vendor now and then, and when somebody waits for it.
class VendorThread {
 public:
  struct Work {
    const char* name;  // at most 15 bytes
    std::int64_t every_ns;
    void (*begin)() noexcept;
    // At least every kLookNs. `wanted`: somebody waits until it returns; `due`: every_ns have
    // passed.
    void (*look)(bool wanted, bool due) noexcept;
  };
  // How soon it is seen that the run is paused or goes on.
  static constexpr std::int64_t kLookNs = 50'000'000;

  // Once; returns when begin() has. `work` outlives the thread.
  bool start(const Work& work) {
    work_ = &work;
    if (sem_init(&wake_, 0, 0) != 0 || sem_init(&ready_, 0, 0) != 0 ||
        sem_init(&done_, 0, 0) != 0 || !start_quiet_thread(run, this)) {
      return false;
    }
    while (sem_wait(&ready_) != 0) {
    }
    return true;
  }
  // Has it look earlier.
  void wake() { sem_post(&wake_); }
  // Has it look, and waits for that; false when it took too long.
  bool flush(std::int64_t most_ns) {
    // Never for ever: a signal handler may have come here while the other holds it.
    const timespec until = after_ns(most_ns);
    if (pthread_mutex_timedlock(&flushes_, &until) != 0) return false;
    while (sem_trywait(&done_) == 0) {  // of one that was not waited for to its end
    }
    wanted_.store(true, std::memory_order_release);
    wake();
    int waited = 0;
    do waited = sem_timedwait(&done_, &until);
    while (waited != 0 && errno == EINTR);
    pthread_mutex_unlock(&flushes_);
    return waited == 0;
  }

 private:
  static void* run(void* self) {
    static_cast<VendorThread*>(self)->run();
    return nullptr;
  }
  [[noreturn]] void run() {
    pthread_setname_np(pthread_self(), work_->name);
    work_->begin();
    sem_post(&ready_);
    std::int64_t next_ns = trace::spool_now_ns() + work_->every_ns;
    for (;;) {
      const std::int64_t left = next_ns - trace::spool_now_ns();
      if (left > 0) {
        const timespec until = after_ns(left < kLookNs ? left : kLookNs);
        sem_timedwait(&wake_, &until);
      }
      const bool wanted = wanted_.exchange(false, std::memory_order_acq_rel);
      const bool due = trace::spool_now_ns() >= next_ns;
      work_->look(wanted, due);
      if (due) next_ns = trace::spool_now_ns() + work_->every_ns;
      if (wanted) sem_post(&done_);
    }
  }

  const Work* work_ = nullptr;
  std::atomic<bool> wanted_ = false;
  pthread_mutex_t flushes_ = PTHREAD_MUTEX_INITIALIZER;  // one flush() at a time
  sem_t wake_{}, ready_{}, done_{};
};

}  // namespace pasta::adapters::common
