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
  kNoHostThread,  // the trace holds nothing of the host
  kUnknown,       // nothing recorded says what the host did
};
inline constexpr std::size_t kIdleCauseCount = 6;

struct IdleCauseInfo {
  std::string_view id;      // stable, in reports
  std::string_view reason;  // completes "... and mostly because"
  std::string_view advice;
};
const IdleCauseInfo& idle_cause_info(IdleCause cause);

// What a call into a runtime or driver means for the device, told from its name.
struct ApiRole {
  bool issues = false;  // gives the device work
  bool copies = false;  // that work is a copy; "asynchronous" ones of pageable memory wait, too
  bool waits = false;   // returns only when device work is done; a blocking copy does both
  bool asks = false;    // asks whether device work is done, and returns at once
};
ApiRole api_role(std::string_view name);

// Whether one call can cause any number of kernels and copies: the launch of a graph.
bool launches_graph(std::string_view api);

// Whether a range is the wait of a loop for its next piece of input.
bool awaits_input(std::string_view range);

}  // namespace pasta::tools
