// What readers of JSON share: the document's reader, and from its records to the event stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json_reader.h"
#include "correlate/assembler.h"
#include "pasta/adapter.h"

namespace pasta::adapters::common {

// A reader walks the document a bounded part at a time and adds what its records say; this class
// opens the document, counts what is wrong with it, and hands the events on in order. Errors are
// told with the path.
class JsonAdapter : public Adapter {
 public:
  [[nodiscard]] const AdapterInfo& info() const final { return info_; }
  Status start(const Plan& plan, EventSink& sink) final;
  Result<bool> pump() final;
  Status stop() final { return {}; }

 protected:
  JsonAdapter(const AdapterInfo& info, Input input)
      : info_(info), path_(std::move(input.path)), stream_(std::move(input.stream)) {}

  // Before anything is read.
  virtual void prepare() {}
  // The reader stands before the document, which is of this type.
  virtual Status begin(base::JsonType type) = 0;
  // Reads on, a bounded part, so that several files can be read in turns. False at the end.
  virtual Result<bool> read() = 0;
  // After the end: adds what was kept back. What is returned is added to all times.
  virtual Result<std::int64_t> document_end() = 0;
  // `info` is filled but for rank and world size; times are since 1970 where they are large.
  virtual void complete(SourceInfo& info) = 0;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] Dictionary& dictionary() const { return sink_->dictionary(); }
  [[nodiscard]] Problems& problems() { return problems_; }
  [[nodiscard]] base::JsonReader& reader() const { return *reader_; }
  [[nodiscard]] correlate::Assembler& assembler() { return *assembler_; }

 private:
  enum class Step : std::uint8_t { kOpen, kRead, kEmit, kEnded };

  Status step();
  Status finish();

  const AdapterInfo& info_;
  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  EventSink* sink_ = nullptr;
  Plan plan_;
  Problems problems_;
  std::unique_ptr<base::JsonReader> reader_;
  std::unique_ptr<correlate::Assembler> assembler_;
  Step step_ = Step::kOpen;
};

}  // namespace pasta::adapters::common
