// What a tool knows of an id, found out once.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace pasta::tools {

// A value for each id seen so far. Ids are dense, so this is an array and not a hash table: it is
// asked once per event.
template <class Id, class Value>
class Memo {
 public:
  // The value of `id`, made by `make()` on first sight.
  template <class Make>
  Value& get(Id id, Make&& make) {
    if (id.value >= values_.size()) values_.resize(std::size_t{id.value} + 1);
    std::optional<Value>& value = values_[id.value];
    if (!value) value = make();
    return *value;
  }

 private:
  std::vector<std::optional<Value>> values_;
};

}  // namespace pasta::tools
