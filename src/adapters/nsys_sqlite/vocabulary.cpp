#include "adapters/nsys_sqlite/vocabulary.h"

#include <algorithm>
#include <array>

namespace pasta::adapters::nsys_sqlite {
namespace {

template <class Row, std::size_t n>
Row at(const std::array<Row, n>& rows, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(n) ? rows[static_cast<std::size_t>(index)]
                                                            : rows[0];
}

using enum CopyDirection;
constexpr auto kCopyKinds = std::to_array<CopyKind>({
    {},
    {kHostToDevice, "HtoD", true, false},
    {kDeviceToHost, "DtoH", false, true},
    {kHostToDevice, "HtoA", true, false},
    {kDeviceToHost, "AtoH", false, true},
    {kDeviceToDevice, "AtoA", true, false},
    {kDeviceToDevice, "AtoD", true, false},
    {kDeviceToDevice, "DtoA", true, false},
    {kDeviceToDevice, "DtoD", true, false},
    {kHostToHost, "HtoH", false, true},
    {kPeerToPeer, "PtoP", true, false},
    {kMigration, "HtoD", true, false},
    {kMigration, "DtoH", false, true},
    {kMigration, "DtoD", true, false},
});

constexpr auto kMemoryKinds = std::to_array<std::string_view>(
    {"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", ""});

constexpr auto kCauses = std::to_array<std::string_view>(
    {"", "user prefetch", "page fault", "speculative prefetch", "eviction", "access counters"});

constexpr auto kAccesses =
    std::to_array<std::string_view>({"", "read", "write", "atomic", "prefetch"});

constexpr auto kSyncTypes = std::to_array<SyncType>({
    {},
    {SyncTarget::kEvent, "Event Sync"},
    {SyncTarget::kStreamWaitsEvent, "Stream Wait Event"},
    {SyncTarget::kStream, "Stream Sync"},
    {SyncTarget::kContext, "Context Sync"},
});

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

NvtxType nvtx_type(std::int64_t event_type) {
  switch (event_type) {
    case 33:
    case 64:
      return NvtxType::kCategory;
    case 34:
    case 65:
      return NvtxType::kMark;
    case 39:
    case 72:
      return NvtxType::kThread;
    case 59:
    case 70:
      return NvtxType::kPushPop;
    case 60:
    case 71:
      return NvtxType::kStartEnd;
    case 75:
      return NvtxType::kDomain;
    default:
      return NvtxType::kOther;
  }
}

CopyKind copy_kind(std::int64_t kind) { return at(kCopyKinds, kind); }

std::string_view memory_kind(std::int64_t kind) {
  return kind < 0 ? std::string_view() : at(kMemoryKinds, std::min<std::int64_t>(kind, 7));
}

std::string_view migration_cause(std::int64_t cause) { return at(kCauses, cause); }
std::string_view fault_access(std::int64_t type) { return at(kAccesses, type); }
SyncType sync_type(std::int64_t type) { return at(kSyncTypes, type); }

std::string_view without_version(std::string_view call) {
  constexpr std::size_t kFewestDigits = 4;
  std::size_t digits = 0;
  while (digits < call.size() && is_digit(call[call.size() - 1 - digits])) ++digits;
  const std::string_view name = call.substr(0, call.size() - digits);
  return digits >= kFewestDigits && name.ends_with("_v") ? name.substr(0, name.size() - 2) : call;
}

ApiDomain api_domain(std::optional<std::int64_t> event_class, std::string_view call) {
  if (event_class == 0) return ApiDomain::kRuntime;
  if (event_class == 1) return ApiDomain::kDriver;
  if (call.starts_with("cuda")) return ApiDomain::kRuntime;
  return call.starts_with("cu") ? ApiDomain::kDriver : ApiDomain::kUnknown;
}

}  // namespace pasta::adapters::nsys_sqlite
