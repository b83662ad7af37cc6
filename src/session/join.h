// The answers about ranks that were analysed apart become one about the job.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::session {

struct Answer {
  std::string path;   // where it was read
  std::string label;  // what the user calls it; empty: its rank, or the file's name
  Document document;  // of one source, or of several that one session or a join has put together
};

struct Joined {
  Document document;
  std::vector<std::string> left_out;  // tools whose reports do not join
};

// Devices are called as in one session over all sources. Refuses, naming the file, answers that
// cannot be told apart or that lack a report that others have, answers about parts of traces that
// were not chosen alike, and answers of which no report joins.
Result<Joined> join(std::vector<Answer> answers, std::span<const ToolEntry> tools);

}  // namespace pasta::session
