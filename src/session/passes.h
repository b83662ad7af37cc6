// Two runs of one program become one trace: one that has its times, and one in which patches were
// in its kernels, which is slower and has none.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::session {

using OpenTrace = std::function<Result<std::unique_ptr<Adapter>>()>;

// Gives all of the trace that `timed` opens, which is read twice, and from `patched` the events of
// kind device, with the times, queue, correlation and scope of the launch that they belong to.
// Processes are the same by rank and name, else in their order; their launches by
// match_launches(). What is not found has the times of the launch before it, and is counted
// (not_joined). Objects are named as in the patched run, because their addresses are its own.
// Reports call a trace of one source `path`, unless that is empty. Without `patched`, the trace of
// `timed` is all that there is.
Result<std::unique_ptr<Adapter>> join_passes(OpenTrace timed, OpenTrace patched, std::string path);

}  // namespace pasta::session
