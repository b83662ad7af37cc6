// Any text through the reader of the text form: it ends, and what it accepts it would write in a
// way that it reads as the same.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/text/text.h"
#include "base/input.h"
#include "trace/text_form.h"

namespace {

using namespace pasta;

class KeepingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo& info) override { sources_.front() = as_written(info); }
  EventSink& add_source(const SourceInfo& info) override {
    sources_.push_back(as_written(info));
    others_.push_back(std::make_unique<OtherSource>(*this, sources_.size() - 1));
    return *others_.back();
  }
  void push(std::span<const Event> pushed) override { push(pushed, 0); }
  void push(Event event, std::span<const std::byte> bytes) override { push(event, bytes, 0); }
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}

  [[nodiscard]] std::size_t size() const { return events_.size(); }

  // Without problems: those of a text that was not well written are not in its copy.
  std::string text() const {
    std::string out;
    const auto writer = trace::make_text_writer_to(out);
    const std::vector<std::vector<Problem>> none(sources_.size());
    bool good = writer->begin(dictionary_).has_value() && writer->sources(sources_);
    for (std::uint32_t i = 0; i < blobs_.size(); ++i) {
      good = good && writer->record_blob(BlobId{i + 1}, blobs_[i]);
    }
    for (std::size_t i = 0; i < events_.size(); ++i) {
      writer->from(source_of_[i]);
      good = good && writer->record(std::span(&events_[i], 1));
    }
    if (!good || !writer->end(sources_, none)) std::abort();
    return out;
  }

 private:
  struct OtherSource final : EventSink {
    OtherSource(KeepingSink& of_all, std::size_t number) : all(of_all), index(number) {}
    Dictionary& dictionary() override { return all.dictionary(); }
    void describe(const SourceInfo&) override { std::abort(); }
    void push(std::span<const Event> pushed) override { all.push(pushed, index); }
    void push(Event event, std::span<const std::byte> bytes) override {
      all.push(event, bytes, index);
    }
    void advance(std::int64_t) override {}
    void report(const Problem&) override {}
    KeepingSink& all;
    std::size_t index;
  };

  // Where a text holds several sources, a reader names them by the text and their own path.
  static SourceInfo as_written(SourceInfo info) {
    constexpr std::string_view kText = "fuzz:";
    if (info.path.starts_with(kText)) info.path.erase(0, kText.size());
    return info;
  }

  void push(std::span<const Event> pushed, std::size_t source) {
    events_.insert(events_.end(), pushed.begin(), pushed.end());
    source_of_.resize(events_.size(), source);
  }
  void push(Event event, std::span<const std::byte> bytes, std::size_t source) {
    blobs_.emplace_back(bytes.begin(), bytes.end());
    event.device.blob = {static_cast<std::uint32_t>(blobs_.size())};
    push(std::span(&event, 1), source);
  }

  Dictionary dictionary_;
  std::vector<SourceInfo> sources_ = std::vector<SourceInfo>(1);
  std::vector<std::unique_ptr<OtherSource>> others_;
  std::vector<Event> events_;
  std::vector<std::size_t> source_of_;
  std::vector<std::vector<std::byte>> blobs_;
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
  if (second.size() != first.size() || second.text() != text) std::abort();
  return 0;
}
