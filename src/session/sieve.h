// Takes out what a Filter does not let pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"
#include "pasta/session.h"
#include "session/labels.h"

namespace pasta::session {

class Sieve {
 public:
  explicit Sieve(const Dictionary& dictionary) : dictionary_(&dictionary) {}
  // `origins`: where relative times of each source count from. All but the filter outlive this.
  void prepare(Filter filter, std::span<const SourceInfo> sources,
               std::span<const std::int64_t> origins, DeviceLabels& labels);
  [[nodiscard]] bool lets_all_pass() const { return filter_.everything(); }
  // What passes of `events`, which are of one source. Valid until the next call.
  std::span<const Event> pass(std::size_t source, std::span<const Event> events);
  // kUsage when the filter names a device or a rank that no event was of: an answer about nothing
  // must not look like one.
  [[nodiscard]] Status unmatched() const;

 private:
  enum class Verdict : std::uint8_t { kUnknown, kPass, kStop };
  struct Bounds {
    std::int64_t from_ns, to_ns;
  };
  bool lane_passes(std::size_t source, LaneId lane);
  bool judge_lane(std::size_t source, LaneId lane);
  bool device_passes(std::size_t source, DeviceId device);
  bool judge_device(std::size_t source, DeviceId device);
  bool rank_passes(std::size_t source, ProcessId process);

  const Dictionary* dictionary_;
  Filter filter_;
  std::span<const SourceInfo> sources_;
  DeviceLabels* labels_ = nullptr;
  std::vector<Bounds> bounds_;                          // by source
  std::vector<std::vector<Verdict>> lanes_;             // by source and lane id
  std::vector<std::vector<Verdict>> devices_;           // by source and device id
  std::vector<bool> device_met_, rank_met_;             // by entry of the filter
  std::vector<std::string> devices_seen_, ranks_seen_;  // for the message
  std::vector<Event> passed_;
};

}  // namespace pasta::session
