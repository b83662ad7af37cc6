// Ranks that the names of files tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pasta::session {

struct NamedRank {
  std::int32_t rank = -1;  // -1: the name does not say
  std::int32_t world_size = 0;
};

// Of each path of a set. A name says a rank by a number after the word `rank`, else after `worker`,
// else after the lone letter `r`, else before `of` and a larger number:
//     rank3.json  run_rank_3.pasta  worker7.pt.trace.json  step9-r3.json  trace_3of8.json
// Words are of any case, and there may be one of _ - . = between `rank` or `worker` and its number,
// and between the numbers and `of`. A rank in its node (local_rank3) is none in the job; two
// numbers that differ say nothing; a process id or a bare number is no rank. The file's own name
// comes first, then its folders from the inside out, but not those that all paths lie in. Where
// some N of M has N equal to M, numbers count from 1.
std::vector<NamedRank> ranks_in_names(std::span<const std::string> paths);

// The rank that the label "rank 3" says.
std::optional<std::int32_t> rank_in_label(std::string_view label);

}  // namespace pasta::session
