// From the cells of one lane file to events of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/spool/origins.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "trace/spool_reader.h"

namespace pasta::adapters::spool {

// Bytes of kDevice events, until they are given on.
struct Blobs {
  std::uint32_t last = 0;
  std::unordered_map<std::uint32_t, std::string> kept;  // by Event::device.blob
};

class Decoder {
 public:
  // `epoch_ns` is added to all times. `image` is 0 for the first that the process ran: each numbers
  // its launches from 1; `number` tells images of all processes apart. `path` is for messages.
  Decoder(Dictionary& dictionary, Origins& origins, std::uint32_t number, ProcessId process,
          std::uint64_t image, std::int64_t epoch_ns, std::string path);

  // Appends the events among the next `cells` to `events`. What cannot be understood is counted as
  // kRecordSkipped.
  void decode(std::span<const Event> cells, std::vector<Event>& events, Blobs& blobs,
              Problems& problems);
  // Of the cells between the last and the next, only those that are definitions are there.
  void jump();
  // The event of a range that never ended, unless it is the one that was committed last.
  bool unfinished(const trace::spool::OpenRange& range, std::uint32_t lane, std::int64_t end_ns,
                  Event& event) const;
  bool unfinished(const trace::SpoolLane::Started& range, std::int64_t end_ns, Event& event) const;
  // Whether it is the one that was committed last, with another end.
  [[nodiscard]] bool is_last(const Event& event) const;
  // A range that is open now, and the path that it opens; false when it opens none.
  struct Open {
    LaneId lane{};
    std::int64_t start_ns = 0;
    FrameId inside{};
  };
  bool open(const trace::spool::OpenRange& range, std::uint32_t lane, Open& to) const;
  // Of what was lost from the last event on.
  bool gap(std::uint32_t lane, std::uint64_t lost, std::int64_t end_ns, Event& event) const;
  // What was said of the process, by key.
  struct Fact {
    std::int64_t said_ns = 0;
    std::string value;
  };
  [[nodiscard]] const std::map<std::string, Fact>& facts() const { return facts_; }

 private:
  bool define(const Event& cell, Problems& problems);
  bool event(Event& event);
  bool scope(Event& event) const;
  StringId demangled(StringId name);
  bool payload(Event& event) const;
  template <class IdType>
  static bool map(const std::vector<IdType>& table, IdType& id) {
    if (id.value == 0) return true;
    if (id.value >= table.size()) return false;
    id = table[id.value];
    return true;
  }

  Dictionary* dictionary_;
  Origins* origins_;
  std::uint32_t number_;
  ProcessId process_;
  std::uint64_t image_;
  std::int64_t epoch_ns_;
  std::string path_;
  std::uint64_t at_ = 0;  // cells so far
  // Of a text whose cells have not all come.
  std::uint32_t text_bytes_ = 0;
  bool in_text_ = false;
  bool is_blob_ = false;
  std::string text_;
  std::string blob_;  // of the next event
  std::uint32_t blob_number_ = 0;
  // By the file's numbers.
  std::vector<StringId> strings_ = {{}};
  std::vector<FrameId> frames_ = {{}};
  std::vector<LaneId> lanes_ = {{}};
  std::vector<DeviceId> devices_ = {{}};
  std::vector<AttributesId> attributes_ = {{}};
  std::map<std::string, Fact> facts_;
  std::unordered_map<std::uint32_t, StringId> demangled_;  // names of kernels
  Event last_{};
  std::int64_t last_end_ns_;
};

}  // namespace pasta::adapters::spool
