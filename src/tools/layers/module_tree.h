// The modules of call paths as a tree.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "tools/common/memo.h"

namespace pasta::tools::layers {

// A module at its place in the model. Its name is that of its range; ranges that are no modules may
// lie between it and its parent.
struct Module {
  StringId name{};
  std::uint32_t parent = 0;
  std::uint32_t depth = 0;
  std::vector<std::uint32_t> children{};
  // Of its own ranges:
  std::int64_t calls = 0;  // those without times included
  std::int64_t timed = 0;
  std::int64_t host_ns = 0;
  std::int64_t inside_ns = 0;  // of them, in modules below
  std::int64_t first_ns = 0;   // meaningless without a timed call
  std::string source{};        // "file.py:12", or ""
  // Work of which it is the innermost module.
  std::int64_t device_ns = 0;
  std::int64_t work = 0, timed_work = 0, kernels = 0;
};

class ModuleTree {
 public:
  static constexpr std::uint32_t kOutside = 0;

  explicit ModuleTree(ScopeDomain domain) : domain_(domain) { modules_.emplace_back(); }
  // The innermost module of a path.
  std::uint32_t of(FrameId path, const Dictionary& dictionary);
  std::uint32_t child(std::uint32_t parent, StringId name);
  [[nodiscard]] Module& operator[](std::uint32_t module) { return modules_[module]; }
  [[nodiscard]] const Module& operator[](std::uint32_t module) const { return modules_[module]; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(modules_.size()); }

 private:
  ScopeDomain domain_;
  std::vector<Module> modules_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by parent and name
  Memo<FrameId, std::uint32_t> of_path_;
};

}  // namespace pasta::tools::layers
