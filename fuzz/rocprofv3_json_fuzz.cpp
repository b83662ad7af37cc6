// Any bytes as JSON of rocprofv3: never a crash, never an endless loop, and what is
// pushed keeps the order and the ids that the stream promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "adapters/rocprofv3_json/rocprofv3_json.h"
#include "base/input.h"
#include "pasta/adapter.h"

namespace {

class CheckingSink final : public pasta::EventSink {
 public:
  pasta::Dictionary& dictionary() override { return dictionary_; }
  void describe(const pasta::SourceInfo&) override { described_ = true; }
  void push(std::span<const pasta::Event> events) override {
    if (!described_) std::abort();
    for (const pasta::Event& event : events) {
      if (event.end_ns < last_end_ns_ || event.end_ns < event.start_ns) std::abort();
      if (event.lane.value >= dictionary_.lane_count()) std::abort();
      if (event.name.value >= dictionary_.string_count()) std::abort();
      if (event.scope.value >= dictionary_.frame_count()) std::abort();
      if (event.untimed() != (event.end_ns == pasta::kNoTime)) std::abort();
      last_end_ns_ = event.end_ns;
    }
  }
  void push(pasta::Event event, std::span<const std::byte>) override { push({&event, 1}); }
  void advance(std::int64_t) override {}
  void report(const pasta::Problem& problem) override {
    if (problem.count == 0) std::abort();
  }

 private:
  pasta::Dictionary dictionary_;
  bool described_ = false;
  std::int64_t last_end_ns_ = pasta::kNoTime;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (!pasta::adapters::rocprofv3_json::sniff(bytes)) return 0;
  for (const bool strict : {false, true}) {
    pasta::Input input;
    input.path = "fuzz.json";
    input.stream = pasta::base::memory_stream(bytes);
    auto adapter = pasta::adapters::rocprofv3_json::open(std::move(input));
    if (!adapter) return 0;
    CheckingSink sink;
    pasta::Plan plan;
    plan.strict = strict;
    if (!(*adapter)->start(plan, sink)) continue;
    for (;;) {
      auto more = (*adapter)->pump();
      if (!more || !*more) break;
    }
  }
  return 0;
}
