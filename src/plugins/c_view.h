// PASTA's own records as the C border shows them.
#pragma once

#include <cstddef>
#include <string_view>

#include "pasta/c.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"

namespace pasta::plugins {

// The same bytes under their C name; that they are the same is asserted in c_view.cpp.
inline const pasta_event* c_view(const Event* events) {
  return reinterpret_cast<const pasta_event*>(events);
}
inline pasta_text c_view(std::string_view text) { return {text.data(), text.size()}; }

// Whether `member` lies within a struct that grows at its end, as its maker knew it.
template <class Struct, class Member>
bool has_member(const Struct* given, Member Struct::*member) {
  const auto* end = reinterpret_cast<const char*>(&(given->*member)) + sizeof(Member);
  return given->size >= static_cast<std::size_t>(end - reinterpret_cast<const char*>(given));
}

// The tables of `dictionary`, which outlives it. Stays where it is: C code holds its address.
class Lookup {
 public:
  explicit Lookup(const Dictionary& dictionary);
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  [[nodiscard]] const pasta_lookup* table() const { return &table_.functions; }

 private:
  // C code gets the address of `functions` and gives it back, so it comes first.
  struct Table {
    pasta_lookup functions;
    const Dictionary* dictionary;
  };
  static const Dictionary& dictionary_of(const pasta_lookup* lookup);
  Table table_;
};

}  // namespace pasta::plugins
