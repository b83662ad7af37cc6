// Any bytes as a Kineto or Chrome JSON trace: never a crash, never an endless loop, and what is
// pushed keeps the order and the ids that the stream promises.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "adapters/kineto_json/kineto_json.h"
#include "base/input.h"
#include "checking_sink.h"
#include "pasta/adapter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (!pasta::adapters::kineto_json::sniff(bytes)) return 0;
  for (const bool strict : {false, true}) {
    pasta::Input input;
    input.path = "fuzz.json";
    input.stream = pasta::base::memory_stream(bytes);
    auto adapter = pasta::adapters::kineto_json::open(std::move(input));
    if (!adapter) return 0;
    pasta::fuzz::drain(**adapter, strict);
  }
  return 0;
}
