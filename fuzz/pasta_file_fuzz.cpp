// Any bytes through the reader of .pasta files: it ends, and what it gives keeps the contract. As
// no mutation survives the checksums, each input is also read with its checksums made right.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "adapters/pasta_file/pasta_file.h"
#include "base/input.h"
#include "trace/format.h"

namespace {

using namespace pasta;

class CheckingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (event.end_ns < last_end_ns_ || event.name.value >= dictionary_.string_count() ||
          event.lane.value >= dictionary_.lane_count() ||
          event.scope.value >= dictionary_.frame_count()) {
        std::abort();
      }
      last_end_ns_ = event.end_ns;
    }
  }
  void push(Event event, std::span<const std::byte>) override { push(std::span(&event, 1)); }
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override {
    if (problem.reason == Reason::kNone && problem.count == 0) std::abort();
  }

 private:
  Dictionary dictionary_;
  std::int64_t last_end_ns_ = kNoTime;
};

void read(std::span<const std::byte> bytes) {
  auto adapter = adapters::pasta_file::open(
      {.path = "fuzz", .head = bytes, .stream = base::memory_stream(bytes)});
  CheckingSink sink;
  if (!adapter || !(*adapter)->start({}, sink)) return;
  for (;;) {
    const auto more = (*adapter)->pump();
    if (!more || !*more) return;
  }
}

std::vector<std::byte> resealed(std::span<const std::byte> input) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  trace::FileHeader header;
  if (bytes.size() < sizeof header) return bytes;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.magic = trace::kMagic;
  header.checksum = header_checksum(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::size_t at = sizeof header;
  trace::ChunkHeader chunk;
  while (bytes.size() - at >= sizeof chunk) {
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    const std::size_t room = bytes.size() - at - sizeof chunk;
    if (chunk.stored_bytes > room || trace::padded(chunk.stored_bytes) > room) break;
    const std::size_t size = trace::padded(chunk.stored_bytes);
    seal(chunk, std::span(bytes).subspan(at + sizeof chunk, size));
    std::memcpy(bytes.data() + at, &chunk, sizeof chunk);
    at += sizeof chunk + size;
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  read(resealed(bytes));
  return 0;
}
