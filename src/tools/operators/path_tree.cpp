#include "tools/operators/path_tree.h"

#include <algorithm>
#include <unordered_map>

namespace pasta::tools::operators {
namespace {

void prune_below(TreeNode& node, double least, std::size_t levels) {
  if (levels == 0) {
    node.children.clear();
    return;
  }
  const auto small = std::partition(
      node.children.begin(), node.children.end(),
      [&](const TreeNode& child) { return child.value >= least && child.name != kOther; });
  TreeNode other{.name = kOther, .children = {}};
  for (auto child = small; child != node.children.end(); ++child) other.value += child->value;
  node.children.erase(small, node.children.end());
  std::ranges::sort(node.children, [](const TreeNode& a, const TreeNode& b) {
    return a.value != b.value ? a.value > b.value : a.name < b.name;
  });
  for (TreeNode& child : node.children) prune_below(child, least, levels - 1);
  if (other.value > 0) node.children.push_back(std::move(other));
}

}  // namespace

void prune(TreeNode& root, double min_share, std::size_t depth) {
  // A node without device time says nothing, however small the share.
  const double least = std::max(min_share * root.value, 1.0);
  prune_below(root, least, depth == 0 ? ~std::size_t{0} : depth);
}

void merge(TreeNode& into, const TreeNode& from) {
  into.value += from.value;
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < into.children.size(); ++i) known.emplace(into.children[i].name, i);
  for (const TreeNode& child : from.children) {
    const auto [at, is_new] = known.try_emplace(child.name, into.children.size());
    if (is_new) {
      into.children.push_back(child);
    } else {
      merge(into.children[at->second], child);
    }
  }
}

}  // namespace pasta::tools::operators
