// Runs of one program become one trace: one run that has its times, and others in which patches
// were in its kernels, which are slower and have none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::session {

using OpenTrace = std::function<Result<std::unique_ptr<Adapter>>()>;

// Gives all of the trace that `timed` opens, which is read twice, and from each of `patched` the
// events of kind device, with the times, queue, correlation and scope of the launch that they
// belong to. Processes are the same by rank and name, else in their order; their launches by
// match_launches(). What is not found has the times of the launch before it, and is counted
// (not_joined). Objects are named as in the patched run, because their addresses are its own.
// Reports call a trace of one source `path`, unless that is empty.
//
// Results wait on disk for their place. Of kernels and results beyond `memory_bytes`, of which each
// takes about a hundred, the first are joined, and what is not is counted.
inline constexpr std::uint64_t kJoinBytes = std::uint64_t{512} << 20;
Result<std::unique_ptr<Adapter>> join_passes(OpenTrace timed, std::vector<OpenTrace> patched,
                                             std::string path,
                                             std::uint64_t memory_bytes = kJoinBytes);

}  // namespace pasta::session
