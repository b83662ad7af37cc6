// What the program has named: domains, categories, registered strings. They live as long as the
// process, in memory of their own that takes no lock and is not the program's heap. Any thread.
//
// Needs no libstdc++: it is for the collector.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::adapters::nvtx {

struct Text {
  std::uint32_t bytes;
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(this + 1), bytes};
  }
};

struct Category {
  const Category* next;
  std::uint32_t number;
  const Text* name;
};

struct Domain {
  Domain* next;
  std::uint32_t number;  // from 1
  const Text* name;      // none: the one that is there without a name
  std::atomic<const Category*> categories;
};

inline constexpr std::size_t kMaxNamesBytes = std::size_t{16} << 20;

// Null where the memory of a process for names is full; so in all that follows.
const Text* keep(std::string_view text) noexcept;
Domain& default_domain() noexcept;
// Equal names give the same domain: what one part of a program pushes, another may pop.
Domain* find_domain(std::string_view name) noexcept;
void name_category(Domain& domain, std::uint32_t number, std::string_view name) noexcept;
// None when it has no name.
const Text* category_name(const Domain& domain, std::uint32_t number) noexcept;

}  // namespace pasta::adapters::nvtx
