#include "adapters/rocpd/categories.h"

#include <string>

namespace pasta::adapters::rocpd {
namespace {

constexpr Category api(ApiDomain domain) {
  return {Kind::kApi, static_cast<std::uint16_t>(domain), false};
}
constexpr Category scope(ScopeDomain domain, bool mark) {
  return {Kind::kScope, static_cast<std::uint16_t>(domain), mark};
}

struct Word {
  std::string_view word;
  Category category;
};
// In order: "HIP_COMPILER_API" holds "mpi" too.
constexpr Word kWords[] = {
    {"marker", scope(ScopeDomain::kAnnotation, true)},
    {"roctx", scope(ScopeDomain::kAnnotation, true)},
    {"rccl", api(ApiDomain::kCommunication)},
    {"hip", api(ApiDomain::kRuntime)},
    {"hsa", api(ApiDomain::kDriver)},
    {"mpi", api(ApiDomain::kCommunication)},
    {"rocdecode", api(ApiDomain::kUnknown)},
    {"rocjpeg", api(ApiDomain::kUnknown)},
    {"pthread", api(ApiDomain::kOs)},
    {"python", scope(ScopeDomain::kPython, false)},
};

}  // namespace

Category category_of(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const Word& word : kWords) {
    if (lower.find(word.word) != lower.npos) return word.category;
  }
  return {};
}

}  // namespace pasta::adapters::rocpd
