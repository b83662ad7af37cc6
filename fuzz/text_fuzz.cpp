// Any text through the reader of the text form: it ends, and what it accepts it would write in a
// way that it reads as the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "adapters/text/text.h"
#include "base/input.h"
#include "trace/text_form.h"

namespace {

using namespace pasta;

class KeepingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo& info) override { source = info; }
  void push(std::span<const Event> pushed) override {
    events.insert(events.end(), pushed.begin(), pushed.end());
  }
  void push(Event event, std::span<const std::byte> bytes) override {
    blobs.emplace_back(bytes.begin(), bytes.end());
    event.device.blob = {static_cast<std::uint32_t>(blobs.size())};
    push(std::span(&event, 1));
  }
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}

  // Without problems: those of a text that was not well written are not in its copy.
  std::string text() const {
    std::string out;
    const auto writer = trace::make_text_writer_to(out);
    const std::vector<Problem> none;
    bool good = writer->begin(dictionary_).has_value();
    for (std::uint32_t i = 0; i < blobs.size(); ++i) {
      good = good && writer->record_blob(BlobId{i + 1}, blobs[i]);
    }
    good = good && writer->record(events) && writer->end(std::span(&source, 1), {&none, 1});
    if (!good) std::abort();
    return out;
  }

  SourceInfo source;
  std::vector<Event> events;
  std::vector<std::vector<std::byte>> blobs;

 private:
  Dictionary dictionary_;
};

bool read(std::string_view text, KeepingSink& sink, bool strict) {
  const auto bytes = std::as_bytes(std::span(text));
  auto adapter =
      adapters::text::open({.path = "fuzz", .head = bytes, .stream = base::memory_stream(bytes)});
  Plan plan;
  plan.strict = strict;
  if (!adapter || !(*adapter)->start(plan, sink)) return false;
  for (;;) {
    const auto more = (*adapter)->pump();
    if (!more) return false;
    if (!*more) return true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  KeepingSink first;
  if (!read({reinterpret_cast<const char*>(data), size}, first, false)) return 0;
  const std::string text = first.text();
  KeepingSink second;
  if (!read(text, second, true)) std::abort();
  if (second.events.size() != first.events.size() || second.text() != text) std::abort();
  return 0;
}
