// The numbers and words of Nsight Systems, and what they mean here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pasta/event.h"

namespace pasta::adapters::nsys_sqlite {

// Serialised ids: 8 bits of hardware, 8 of virtual machine, 24 of process, 24 of thread.
struct GlobalId {
  std::uint64_t value;
  [[nodiscard]] std::uint64_t thread() const { return value & 0xff'ffff; }
  [[nodiscard]] std::uint64_t process() const { return value >> 24 & 0xff'ffff; }
  [[nodiscard]] std::uint64_t machine() const { return value >> 48; }
  // That of the process, of all its threads.
  [[nodiscard]] std::uint64_t of_process() const { return value & ~std::uint64_t{0xff'ffff}; }
};

// NVTX_EVENTS.eventType.
enum class NvtxType : std::uint8_t {
  kOther,
  kCategory,  // names a category
  kDomain,    // names a domain
  kThread,    // names a thread
  kMark,
  kPushPop,
  kStartEnd,
};
NvtxType nvtx_type(std::int64_t event_type);

// copyKind, with the name that Kineto gives to such a copy, so that reports of both can be
// compared: "Memcpy HtoD (Pageable -> Device)".
struct CopyKind {
  CopyDirection direction = CopyDirection::kUnknown;
  std::string_view word;  // "HtoD"
  bool to_device = false, to_host = false;
};
CopyKind copy_kind(std::int64_t kind);
// srcKind, dstKind, memKind; "" for one that says nothing.
std::string_view memory_kind(std::int64_t kind);
// migrationCause: "page fault"; "" for an unknown one.
std::string_view migration_cause(std::int64_t cause);
// faultAccessType: "read".
std::string_view fault_access(std::int64_t type);

struct SyncType {
  SyncTarget target = SyncTarget::kUnknown;
  std::string_view name = "Sync";
};
SyncType sync_type(std::int64_t type);

// Calls are named with the version of the interface they were compiled for:
// cudaLaunchKernel_v7000 is cudaLaunchKernel (cuMemAlloc_v2 has its own number in its name).
std::string_view without_version(std::string_view call);
ApiDomain api_domain(std::optional<std::int64_t> event_class, std::string_view call);

}  // namespace pasta::adapters::nsys_sqlite
