#include "tools/diagnose/work_log.h"

namespace pasta::tools::diagnose {
namespace {

void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t take(const std::vector<std::uint8_t>& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes[at++];
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// Differences of any two times, as unsigned numbers that wrap.
std::uint64_t difference(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}
std::int64_t advance(std::int64_t from, std::uint64_t by) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + by);
}

}  // namespace

std::size_t WorkLog::Hash::operator()(const WorkKey& key) const {
  std::uint64_t hash = key.blocks;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(key.kind) << 16 | key.detail, std::uint64_t{key.name.value},
        std::uint64_t{key.lane.value}, std::uint64_t{key.scope.value},
        std::uint64_t{key.attributes.value}}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

void WorkLog::add(const Event& work) {
  WorkKey key{.kind = work.kind,
              .detail = work.detail,
              .name = work.name,
              .lane = work.lane,
              .scope = work.scope};
  if (work.kind == Kind::kKernel) {
    key.attributes = work.kernel.attributes;
    key.blocks = std::uint64_t{work.kernel.grid[0]} * work.kernel.grid[1] * work.kernel.grid[2];
  }
  const auto [at, is_new] = index_.try_emplace(key, static_cast<std::uint32_t>(keys_.size()));
  if (is_new) keys_.push_back(key);
  put(bytes_, difference(last_end_ns_, work.end_ns));
  put(bytes_, difference(work.start_ns, work.end_ns));
  put(bytes_, at->second);
  // One more than the number, so that the unknown size, the largest number, takes one byte.
  if (work.kind == Kind::kCopy) put(bytes_, work.copy.bytes + 1);
  last_end_ns_ = work.end_ns;
  ++size_;
}

bool WorkLog::Reader::next(WorkRecord& record) {
  if (byte_ == log_->bytes_.size()) return false;
  end_ns_ = advance(end_ns_, take(log_->bytes_, byte_));
  record.end_ns = end_ns_;
  record.start_ns = advance(end_ns_, 0 - take(log_->bytes_, byte_));
  record.key = static_cast<std::uint32_t>(take(log_->bytes_, byte_));
  record.bytes = log_->keys_[record.key].kind == Kind::kCopy ? take(log_->bytes_, byte_) - 1 : 0;
  return true;
}

}  // namespace pasta::tools::diagnose
