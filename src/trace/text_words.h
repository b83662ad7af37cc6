// The words of the text form, for its writer and its reader. Indexed by the value they stand for.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "pasta/dictionary.h"
#include "pasta/event.h"

namespace pasta::trace {

inline constexpr std::string_view kTextHeader = "pasta-text 1";

using Words = std::span<const std::string_view>;
inline constexpr std::array<std::string_view, 5> kApiDomainWords = {"unknown", "runtime", "driver",
                                                                    "communication", "os"};
inline constexpr std::array<std::string_view, 7> kScopeDomainWords = {
    "unknown", "operator", "module", "python", "annotation", "iteration", "runtime"};
inline constexpr std::array<std::string_view, 7> kDirectionWords = {
    "unknown",      "host_to_device", "device_to_host", "device_to_device",
    "host_to_host", "peer_to_peer",   "migration"};
inline constexpr std::array<std::string_view, 5> kSyncTargetWords = {"unknown", "context", "stream",
                                                                     "event", "stream_waits_event"};
inline constexpr std::array<std::string_view, 3> kDeviceTimesWords = {"unknown", "other_run",
                                                                      "not_joined"};
inline constexpr std::array<std::string_view, 4> kDeviceTypeWords = {"unknown", "gpu", "cpu",
                                                                     "accelerator"};
inline constexpr std::array<std::string_view, 2> kLaneTypeWords = {"thread", "queue"};
// Bit by bit.
inline constexpr std::array<std::string_view, 6> kFlagWords = {"untimed", "unfinished", "linked",
                                                               "skewed",  "annotation", "instant"};

// How Event::detail is called and what its values are called; `words` is empty for kinds without.
struct DetailWords {
  std::string_view key;
  Words words;
  bool bare;  // stands without its key, right after the name
};
inline DetailWords detail_words(Kind kind) {
  switch (kind) {
    case Kind::kApi:
      return {"domain", kApiDomainWords, true};
    case Kind::kScope:
      return {"domain", kScopeDomainWords, true};
    case Kind::kCopy:
      return {"direction", kDirectionWords, false};
    case Kind::kSync:
      return {"target", kSyncTargetWords, false};
    case Kind::kDevice:
      return {"times", kDeviceTimesWords, false};
    default:
      return {"detail", {}, false};
  }
}

inline std::optional<std::uint32_t> find_word(Words words, std::string_view word) {
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return i;
  }
  return std::nullopt;
}

}  // namespace pasta::trace
