#include "tools/common/launch_log.h"

#include <algorithm>
#include <tuple>

namespace pasta::tools {
namespace {

void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t get(const std::uint8_t* bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes[at++];
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

// Differences wrap, as does adding them up again: any two 64-bit values have one.
std::uint64_t difference(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t step = to - from;
  return step >> 63 != 0 ? ~(step << 1) : step << 1;
}

std::uint64_t apply(std::uint64_t from, std::uint64_t step) {
  return from + ((step & 1) != 0 ? ~(step >> 1) : step >> 1);
}

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Times as keys: the sign bit flipped, so that they ascend.
std::uint64_t time_key(std::int64_t ns) { return bits(ns) ^ (std::uint64_t{1} << 63); }

}  // namespace

void LaunchLog::add(const Event& work, std::uint32_t symbol) {
  if (window_.size() == 2 * kWindow) flush(kWindow);
  window_.push_back({{.start_ns = work.start_ns,
                      .end_ns = work.end_ns,
                      .symbol = symbol,
                      .queue = queue_of_.get(work.lane, [&] { return queues_++; }),
                      .scope = work.scope},
                     work.correlation});
}

void LaunchLog::add_call(const Event& call) {
  if (call.correlation == 0 || call.untimed()) return;
  if (calls_.empty()) calls_.resize(kCalls);
  Call& slot = calls_[call.correlation % kCalls];
  // A call into the runtime and the one into the driver inside it: the outer one is the launch.
  if (slot.correlation == call.correlation && slot.start_ns <= call.start_ns) return;
  slot = {call.correlation, call.start_ns};
  newest_call_ns_ = std::max(newest_call_ns_, call.start_ns);
  waited_ = false;
}

void LaunchLog::add_wait(const Event& call) {
  // What began before the newest call was another thread's.
  if (waited_ || call.untimed() || call.start_ns < newest_call_ns_) return;
  waited_ = true;
  waits_.push_back(call.start_ns);
}

void LaunchLog::close() { flush(window_.size()); }

std::uint64_t LaunchLog::key_of(const Event& work) const {
  return by_correlation_ ? work.correlation : time_key(work.start_ns);
}

void LaunchLog::decide() {
  decided_ = true;
  std::vector<const Waiting*> by_start;
  by_start.reserve(window_.size());
  for (const Waiting& one : window_) {
    if (one.correlation == 0) return;
    by_start.push_back(&one);
  }
  std::ranges::stable_sort(by_start, {}, [](const Waiting* one) { return one->record.start_ns; });
  std::vector<std::uint64_t> last(queues_);  // of each queue
  std::size_t descents = 0;
  for (const Waiting* one : by_start) {
    std::uint64_t& before = last[one->record.queue];
    descents += one->correlation < before ? 1 : 0;
    before = one->correlation;
  }
  // A queue runs its work in order; some vendors number what the host launches at once out of it.
  by_correlation_ = descents * 50 <= by_start.size();
}

void LaunchLog::flush(std::size_t count) {
  if (!decided_) decide();
  for (Waiting& one : window_) {
    if (!calls_.empty() && one.record.launch_ns == kNoTime && one.correlation != 0) {
      const Call& call = calls_[one.correlation % kCalls];
      if (call.correlation == one.correlation) one.record.launch_ns = call.start_ns;
    }
    one.record.key = by_correlation_ ? one.correlation : time_key(one.record.start_ns);
  }
  std::ranges::stable_sort(window_, {}, [](const Waiting& one) {
    return std::tuple(one.record.key, one.record.start_ns);
  });
  std::ranges::sort(waits_);
  for (Waiting& one : std::span(window_).first(count)) {
    if (one.record.launch_ns != kNoTime) {
      const auto next = std::ranges::upper_bound(waits_, last_launch_ns_);
      one.record.waited =
          last_launch_ns_ != kNoTime && next != waits_.end() && *next < one.record.launch_ns;
      last_launch_ns_ = std::max(last_launch_ns_, one.record.launch_ns);
    }
    write(one.record);
  }
  waits_.erase(waits_.begin(), std::ranges::upper_bound(waits_, last_launch_ns_));
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(count));
}

void LaunchLog::write(const LaunchRecord& record) {
  std::vector<std::uint8_t>& bytes = newest_;
  if (bytes.size() + kLongestRecord > kBlock) {
    blocks_.push_back({cold_->put(bytes), bytes.size()});
    bytes.clear();
  }
  late_ += size_ > 0 && record.key < last_.key ? 1 : 0;
  put(bytes, std::uint64_t{record.symbol} << 1 | (record.waited ? 1 : 0));
  put(bytes, record.queue);
  put(bytes, difference(last_.scope.value, record.scope.value));
  put(bytes, difference(last_.key, record.key));
  put(bytes, difference(bits(last_.start_ns), bits(record.start_ns)));
  put(bytes, bits(record.end_ns) - bits(record.start_ns));
  // 0 is unknown; the one difference that comes out as 0, half the axis, is none that is real.
  put(bytes, record.launch_ns == kNoTime
                 ? 0
                 : difference(bits(record.launch_ns), bits(record.start_ns)) + 1);
  last_ = record;
  ++size_;
}

bool LaunchLog::Reader::next(LaunchRecord& record) {
  const bool is_cold = block_ < log_->blocks_.size();
  const std::size_t size = is_cold ? log_->blocks_[block_].bytes : log_->newest_.size();
  if (byte_ == size) return false;
  const auto time = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const std::uint8_t* const bytes =
      is_cold ? log_->cold_->at(log_->blocks_[block_].place) : log_->newest_.data();
  const std::uint64_t what = get(bytes, byte_);
  last_.symbol = static_cast<std::uint32_t>(what >> 1);
  last_.waited = (what & 1) != 0;
  last_.queue = static_cast<std::uint32_t>(get(bytes, byte_));
  last_.scope.value = static_cast<std::uint32_t>(apply(last_.scope.value, get(bytes, byte_)));
  last_.key = apply(last_.key, get(bytes, byte_));
  last_.start_ns = time(apply(bits(last_.start_ns), get(bytes, byte_)));
  last_.end_ns = time(bits(last_.start_ns) + get(bytes, byte_));
  const std::uint64_t lead = get(bytes, byte_);
  last_.launch_ns = lead == 0 ? kNoTime : time(bits(last_.start_ns) - apply(0, lead - 1));
  record = last_;
  if (is_cold && byte_ == size) {
    log_->cold_->leave(log_->blocks_[block_].place);
    ++block_, byte_ = 0;
  }
  return true;
}

}  // namespace pasta::tools
