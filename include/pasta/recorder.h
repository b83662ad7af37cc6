// The border to what keeps a trace: writers of files.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/ids.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta {

// Receives the merged stream: a writer of files.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual Status begin(const Dictionary& dictionary) = 0;
  // What the events are of, before the first record(). Of several sources, from() says before each
  // record() which one its events are of; at first it is the first.
  virtual Status sources(std::span<const SourceInfo> sources) {
    static_cast<void>(sources);
    return {};
  }
  virtual void from(std::size_t source) { static_cast<void>(source); }
  virtual Status record(std::span<const Event> events) = 0;
  // The bytes that one event of a later record() call refers to as `id`.
  virtual Status record_blob(BlobId id, std::span<const std::byte> bytes) {
    static_cast<void>(id), static_cast<void>(bytes);
    return {};
  }
  // `sources` with all they reported, once, after the last event.
  virtual Status end(std::span<const SourceInfo> sources,
                     std::span<const std::vector<Problem>> problems) = 0;
};

}  // namespace pasta
