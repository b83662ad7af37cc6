// Why a device stood still: one list of causes for every analysis that names one. The rules and
// their reasons are in docs/idle-causes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::tools {

// In the order of tables.
enum class IdleCause : std::uint8_t {
  kLaunchBound,   // the host was issuing work
  kSyncBound,     // the host was in a call that waits for the device
  kInputBound,    // the host waited for its next input
  kHostBusy,      // the host did something that issues no work
  kWorkQueued,    // launched work was waiting: the host is not the cause
  kNoHostThread,  // the trace holds nothing of the host
  kUnknown,       // nothing recorded says what the host did
};
inline constexpr std::size_t kIdleCauseCount = 7;

struct IdleCauseInfo {
  std::string_view id;      // stable, in reports
  std::string_view reason;  // completes "... and mostly because"
  std::string_view advice;
};
const IdleCauseInfo& idle_cause_info(IdleCause cause);

// Whether a range is the wait of a loop for its next piece of input.
bool awaits_input(std::string_view range);

}  // namespace pasta::tools
