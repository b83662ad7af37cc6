// How rows of tables are named and ordered, the same in every tool.
#pragma once

#include <string>
#include <string_view>

#include "pasta/dictionary.h"

namespace pasta::tools {

// Order by text in which numbers count as numbers: "gpu 10" after "gpu 9".
bool natural_less(std::string_view a, std::string_view b);

// How a queue is called: its name, else "stream 7".
std::string queue_label(const Dictionary& dictionary, LaneId queue);

}  // namespace pasta::tools
