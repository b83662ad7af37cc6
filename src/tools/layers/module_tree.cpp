#include "tools/layers/module_tree.h"

namespace pasta::tools::layers {

std::uint32_t ModuleTree::of(FrameId path, const Dictionary& dictionary) {
  return of_path_.get(path, [&] {
    // From the outermost in: a parent is known before its children.
    std::vector<StringId> names;
    for (FrameId id = path; id;) {
      const Frame frame = dictionary.frame(id);
      if (frame.domain == domain_) names.push_back(frame.name);
      id = frame.parent;
    }
    std::uint32_t module = kOutside;
    for (std::size_t i = names.size(); i-- > 0;) module = child(module, names[i]);
    return module;
  });
}

std::uint32_t ModuleTree::child(std::uint32_t parent, StringId name) {
  // What is its own parent in a path, as when a part is computed again for its backward pass, is
  // itself.
  if (parent != kOutside && modules_[parent].name == name) return parent;
  const auto [known, is_new] =
      known_.try_emplace(std::uint64_t{parent} << 32 | name.value, count());
  if (is_new) {
    Module& module = modules_.emplace_back();
    module.name = name;
    module.parent = parent;
    module.depth = parent == kOutside ? 0 : modules_[parent].depth + 1;
    modules_[parent].children.push_back(known->second);
  }
  return known->second;
}

}  // namespace pasta::tools::layers
