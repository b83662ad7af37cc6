// Any bytes as CSV: the reader sees the same whatever its window, and no reader of a table crashes
// or breaks what the stream promises.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "base/csv_reader.h"
#include "base/input.h"
#include "pasta/adapter.h"

namespace {

using namespace pasta;

class CheckingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override { described_ = true; }
  void push(std::span<const Event> events) override {
    if (!described_) std::abort();
    for (const Event& event : events) {
      if (event.end_ns < last_end_ns_ || event.end_ns < event.start_ns) std::abort();
      if (event.lane.value >= dictionary_.lane_count()) std::abort();
      if (event.name.value >= dictionary_.string_count()) std::abort();
      if (event.untimed() != (event.end_ns == kNoTime)) std::abort();
      last_end_ns_ = event.end_ns;
    }
  }
  void push(Event event, std::span<const std::byte>) override { push({&event, 1}); }
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override {
    if (problem.count == 0) std::abort();
  }

 private:
  Dictionary dictionary_;
  bool described_ = false;
  std::int64_t last_end_ns_ = kNoTime;
};

std::string rows(std::span<const std::byte> bytes, std::size_t window) {
  std::string seen;
  const auto stream = base::memory_stream(bytes);
  base::CsvReader::Options options;
  options.window_bytes = window;
  options.max_row_bytes = 512;
  options.comment = "==";
  options.on_comment = [&](std::string_view line) { (seen += '#') += line; };
  options.on_problem = [&](const base::CsvProblem& problem) {
    seen += std::to_string(problem.line) + std::string(problem.text);
  };
  base::CsvReader reader(*stream, std::move(options));
  while (reader.next().value_or(false)) {
    if (reader.fields().empty()) std::abort();
    seen += std::to_string(reader.line()) + ':';
    for (const std::string_view field : reader.fields()) (seen += field) += '\x1f';
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (rows(bytes, 16) != rows(bytes, 512)) std::abort();
  for (const ReaderEntry& entry : builtin_readers()) {
    if (entry.info.name.find("csv") == entry.info.name.npos || !entry.sniff(bytes)) continue;
    for (const bool strict : {false, true}) {
      Input input{"1_kernel_trace.csv", bytes, base::memory_stream(bytes)};
      auto adapter = entry.open(std::move(input));
      if (!adapter) {
        if (adapter.error().message.empty()) std::abort();
        continue;
      }
      CheckingSink sink;
      Plan plan;
      plan.strict = strict;
      if (!(*adapter)->start(plan, sink)) continue;
      while ((*adapter)->pump().value_or(false)) {
      }
    }
  }
  return 0;
}
