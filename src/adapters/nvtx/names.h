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
  // Of where something was made: what is told of that. None: it is not known yet.
  mutable std::atomic<const Text*> place;
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

// A number for a schema of payloads that has none.
std::uint64_t new_schema() noexcept;
// In payloads of this schema, so far from their beginning, stands the handle of a registered text
// that says where something was made. Of 64 schemas that is kept.
void keep_location(std::uint64_t schema, std::size_t offset) noexcept;
inline constexpr std::size_t kNoLocation = ~std::size_t{0};
std::size_t find_location(std::uint64_t schema) noexcept;

inline constexpr std::size_t kMaxNamesBytes = std::size_t{16} << 20;

// Null where the memory of a process for names is full; so in all that follows.
const Text* keep(std::string_view text) noexcept;
// Of text that may never be the name of anything: XLA registers what it has compiled. So what is
// long takes half of the memory at most; beyond that it is unkept(), which is told where it is
// used.
const Text* keep_registered(std::string_view text) noexcept;
const Text* unkept() noexcept;
Domain& default_domain() noexcept;
// Equal names give the same domain: what one part of a program pushes, another may pop.
Domain* find_domain(std::string_view name) noexcept;
void name_category(Domain& domain, std::uint32_t number, std::string_view name) noexcept;
// None when it has no name.
const Text* category_name(const Domain& domain, std::uint32_t number) noexcept;

}  // namespace pasta::adapters::nvtx
