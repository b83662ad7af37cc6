// Device time as a tree of call paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pasta/report.h"

namespace pasta::tools::operators {

inline constexpr const char* kOther = "(other)";

// Children add up to their parent but for what it launched directly. Nodes below `min_share` of the
// whole become one child "(other)" of their parent; below `depth` levels (0 = no limit) there are
// no children. The longest first, "(other)" last.
void prune(TreeNode& root, double min_share, std::size_t depth);

// Adds the values of `from` to the nodes of the same path.
void merge(TreeNode& into, const TreeNode& from);

}  // namespace pasta::tools::operators
