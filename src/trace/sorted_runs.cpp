#include "trace/sorted_runs.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/temp_file.h"

namespace pasta::trace {
namespace {

constexpr std::size_t kChunkRecords = 1024;  // 64 KiB: growing never copies
constexpr std::size_t kBucketRecords = 4;
constexpr std::size_t kWriteRecords = 4096;
constexpr std::size_t kMinReadRecords = 64;
constexpr std::size_t kMaxReadRecords = 16384;  // 1 MiB: more does not read faster

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A record's place in the order: compared as (first, second).
struct Key {
  std::int64_t first;
  std::int64_t second;
  auto operator<=>(const Key&) const = default;
};

// ~x reverses the order of x without overflow.
Key key_of(const Event& event, SortedRuns::Order order) {
  return order == SortedRuns::Order::kByStart ? Key{event.start_ns, ~event.end_ns}
                                              : Key{event.end_ns, ~event.start_ns};
}

// A record while it is sorted: the first part of its key, and which it is.
struct Place {
  std::int64_t first;
  std::uint32_t index;
};

Status with_advice(Status status) {
  if (!status) {
    status.error().message +=
        "; sorting a trace larger than memory needs about its size there: free some space or "
        "choose another folder with TMPDIR";
  }
  return status;
}

// One sorted run on disk, read block by block.
struct Run {
  std::uint64_t next;  // byte of the file
  std::uint64_t end;
  std::vector<Event> block;
  std::size_t at = 0;  // in `block`
  Key key{};           // of block[at]
  [[nodiscard]] bool exhausted() const { return at == block.size(); }
};

}  // namespace

struct SortedRuns::Impl {
  Impl(Order o, Options options_in) : order(o), options(std::move(options_in)) {
    // Beside each record stand a Place and, for every kBucketRecords of them, a count.
    constexpr std::uint64_t kPerRecord =
        sizeof(Event) + sizeof(Place) + 2 * sizeof(std::uint32_t) / kBucketRecords;
    capacity = static_cast<std::size_t>(std::clamp<std::uint64_t>(
        options.memory_budget_bytes / kPerRecord, 16, std::uint64_t{1} << 31));
  }

  [[nodiscard]] const Event& record(std::size_t i) const {
    return chunks[i / kChunkRecords][i % kChunkRecords];
  }
  [[nodiscard]] const Event& in_order(std::size_t i) const {
    return record(places.empty() ? i : places[i].index);
  }

  void sort();
  Status spill();
  Status refill(Run& run);
  Status start_merge();
  Result<std::size_t> read_memory(std::span<Event> to);
  Result<std::size_t> read_runs(std::span<Event> to);
  // Whether run `a` gives before run `b`; an exhausted one gives last.
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
    if (runs[a].exhausted() || runs[b].exhausted()) return !runs[a].exhausted();
    return std::tie(runs[a].key, a) < std::tie(runs[b].key, b);
  }
  void replay(std::size_t run);

  Order order;
  Options options;
  std::size_t capacity;

  std::vector<std::unique_ptr<Event[]>> chunks;
  std::size_t count = 0;        // records in `chunks`
  bool ascending = true;        // they came sorted
  Key last{};                   // of the newest record
  std::int64_t least = kNever;  // first part of a key, among timed records
  std::int64_t most = kNoTime;
  std::vector<Place> places;  // the order of `chunks`; empty = as they lie
  std::size_t given = 0;      // of `chunks`, by read()

  std::optional<base::TempFile> file;
  std::vector<Run> runs;
  // A tournament: loser[i] is the run that lost at node i, loser[0] the winner of all.
  std::vector<std::size_t> loser;
};

// Into buckets of equal spans of time, then each bucket by itself. Files are nearly sorted, so that
// records go to neighbouring buckets one after the other, and a bucket holds a handful.
void SortedRuns::Impl::sort() {
  places.clear();
  if (ascending || count < 2) return;
  const auto offset = [&](std::int64_t first) {
    return first == kNoTime ? 0
                            : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(least);
  };
  const auto span_bits = static_cast<int>(std::bit_width(offset(most)));
  const int bucket_bits =
      std::min(span_bits, static_cast<int>(std::bit_width(count / kBucketRecords)));
  const int shift = std::min(span_bits - bucket_bits, 63);
  std::vector<std::uint32_t> ends((std::size_t{1} << bucket_bits) + 1);
  for (std::size_t i = 0; i < count; ++i) ++ends[offset(key_of(record(i), order).first) >> shift];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : ends) begin += std::exchange(end, begin);
  places.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t first = key_of(record(i), order).first;
    places[ends[offset(first) >> shift]++] = {first, static_cast<std::uint32_t>(i)};
  }
  begin = 0;
  for (const std::uint32_t end : ends) {
    if (end - begin > 1) {
      std::sort(places.begin() + begin, places.begin() + end, [&](const Place& a, const Place& b) {
        if (a.first != b.first) return a.first < b.first;
        const std::int64_t second_a = key_of(record(a.index), order).second;
        const std::int64_t second_b = key_of(record(b.index), order).second;
        return second_a != second_b ? second_a < second_b : a.index < b.index;
      });
    }
    begin = end;
  }
}

Status SortedRuns::Impl::spill() {
  if (!file) {
    auto created = base::TempFile::create(options.scratch);
    if (!created) return with_advice(tl::unexpected<Error>(std::move(created).error()));
    file.emplace(std::move(*created));
  }
  sort();
  std::vector<Event> buffer;
  buffer.reserve(std::min(kWriteRecords, count));
  const std::uint64_t begin = file->size();
  for (std::size_t i = 0; i < count;) {
    buffer.clear();
    for (; i < count && buffer.size() < kWriteRecords; ++i) buffer.push_back(in_order(i));
    PASTA_TRY(with_advice(file->append(std::as_bytes(std::span(buffer)))));
  }
  runs.push_back({.next = begin, .end = file->size(), .block = {}});
  places = std::vector<Place>();
  count = 0;
  ascending = true;
  least = kNever;
  most = kNoTime;
  return {};
}

Status SortedRuns::Impl::refill(Run& run) {
  const auto n = static_cast<std::size_t>(
      std::min<std::uint64_t>(run.block.capacity(), (run.end - run.next) / sizeof(Event)));
  run.block.resize(n);
  run.at = 0;
  if (n == 0) return {};
  PASTA_TRY(file->read_at(run.next, std::as_writable_bytes(std::span(run.block))));
  run.next += n * sizeof(Event);
  run.key = key_of(run.block[0], order);
  return {};
}

Status SortedRuns::Impl::start_merge() {
  const std::size_t block = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(options.memory_budget_bytes / 2 / sizeof(Event) / runs.size(),
                                kMinReadRecords, kMaxReadRecords));
  for (Run& run : runs) {
    run.block.reserve(block);
    PASTA_TRY(refill(run));
  }
  constexpr std::size_t kNobody = ~std::size_t{0};
  loser.assign(runs.size(), kNobody);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::size_t winner = run;
    std::size_t node = (run + runs.size()) / 2;
    for (; node > 0; node /= 2) {
      if (loser[node] == kNobody) {
        loser[node] = winner;  // waits for the other half of the tree
        break;
      }
      if (before(loser[node], winner)) std::swap(winner, loser[node]);
    }
    if (node == 0) loser[0] = winner;
  }
  return {};
}

void SortedRuns::Impl::replay(std::size_t run) {
  std::size_t winner = run;
  for (std::size_t node = (run + runs.size()) / 2; node > 0; node /= 2) {
    if (before(loser[node], winner)) std::swap(winner, loser[node]);
  }
  loser[0] = winner;
}

Result<std::size_t> SortedRuns::Impl::read_memory(std::span<Event> to) {
  constexpr std::size_t kAhead = 16;  // hides the latency of records that lie apart
  const std::size_t n = std::min(to.size(), count - given);
  for (std::size_t i = 0; i < n; ++i, ++given) {
    if (given + kAhead < count) __builtin_prefetch(&in_order(given + kAhead));
    to[i] = in_order(given);
  }
  return n;
}

Result<std::size_t> SortedRuns::Impl::read_runs(std::span<Event> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t winner = loser[0];
    Run& run = runs[winner];
    if (run.exhausted()) return i;
    to[i] = run.block[run.at++];
    if (run.exhausted()) {
      PASTA_TRY(refill(run));
    } else {
      run.key = key_of(run.block[run.at], order);
    }
    replay(winner);
  }
  return to.size();
}

SortedRuns::SortedRuns(Order order, Options options)
    : impl_(std::make_unique<Impl>(order, std::move(options))) {}
SortedRuns::~SortedRuns() = default;
SortedRuns::SortedRuns(SortedRuns&&) noexcept = default;
SortedRuns& SortedRuns::operator=(SortedRuns&&) noexcept = default;

Status SortedRuns::add(const Event& event) {
  Impl& s = *impl_;
  if (s.count == s.capacity) PASTA_TRY(s.spill());
  const Key key = key_of(event, s.order);
  if (s.count != 0 && key < s.last) s.ascending = false;
  s.last = key;
  if (key.first != kNoTime) s.least = std::min(s.least, key.first);
  s.most = std::max(s.most, key.first);
  if (s.count / kChunkRecords == s.chunks.size()) {
    s.chunks.push_back(std::make_unique_for_overwrite<Event[]>(kChunkRecords));
  }
  s.chunks[s.count / kChunkRecords][s.count % kChunkRecords] = event;
  ++s.count;
  return {};
}

Status SortedRuns::finish() {
  Impl& s = *impl_;
  if (s.runs.empty()) {
    s.sort();
    return {};
  }
  if (s.count != 0) PASTA_TRY(s.spill());
  s.chunks.clear();
  return s.start_merge();
}

Result<std::size_t> SortedRuns::read(std::span<Event> to) {
  return impl_->runs.empty() ? impl_->read_memory(to) : impl_->read_runs(to);
}

std::size_t SortedRuns::runs() const { return impl_->runs.size(); }

}  // namespace pasta::trace
