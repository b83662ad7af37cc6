// How rows of tables are named and ordered, and what is said beside them, the same in every tool.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/natural_order.h"
#include "pasta/dictionary.h"
#include "pasta/report.h"

namespace pasta::tools {

// Rows are ordered by text in which numbers count as numbers: "gpu 10" after "gpu 9".
using base::natural_less;

// How processes are called: "rank 3", else by what the system knows them by, and by their trace
// where that is the same of two.
std::vector<std::string> process_labels(const Dictionary& dictionary,
                                        std::span<const ProcessId> processes);

// How a queue is called: its name, else "stream 7".
std::string queue_label(const Dictionary& dictionary, LaneId queue);

// What is only to be known, without evidence or advice.
Finding info(std::string id, std::string text);

}  // namespace pasta::tools
