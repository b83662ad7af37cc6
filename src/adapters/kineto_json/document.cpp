#include "adapters/kineto_json/document.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/decimal.h"

namespace pasta::adapters::kineto_json {
namespace {

using base::JsonCursor;
using base::JsonReader;
using base::JsonType;
using base::RecordOutcome;

template <class Number>
Number number(std::string_view text) {
  std::uint64_t value = 0;
  if (!base::parse_unsigned(text, value) || value > std::numeric_limits<Number>::max()) return 0;
  return static_cast<Number>(value);
}

// Members of one object by name; others are passed over.
template <std::size_t kCount>
void read_members(JsonCursor& cursor, const std::array<std::string_view, kCount>& names,
                  std::array<std::string_view, kCount>& values) {
  values = {};
  if (!cursor.enter_object()) return;
  std::string_view key;
  while (cursor.next_member(key)) {
    std::size_t i = 0;
    while (i < kCount && names[i] != key) ++i;
    if (i < kCount) {
      values[i] = cursor.string();
    } else {
      cursor.skip();
    }
  }
}

Status read_device_properties(JsonReader& reader, Dictionary& dictionary, Places& places) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "id",           "name",         "totalGlobalMem", "numSms",
      "computeMajor", "computeMinor", "warpSize",       "maxThreadsPerMultiprocessor"};
  std::vector<std::array<std::string_view, kNames.size()>> devices;
  auto outcome = reader.record([&](JsonCursor& cursor) {
    devices.clear();
    if (!cursor.enter_array()) return;
    while (cursor.next_element()) read_members(cursor, kNames, devices.emplace_back());
  });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  if (*outcome != RecordOutcome::kRead) return {};
  for (const auto& [id, name, memory, multiprocessors, major, minor, warp_size, max_threads] :
       devices) {
    std::uint64_t ordinal = 0;
    if (!base::parse_unsigned(id, ordinal)) continue;
    Device facts;
    facts.name = dictionary.string(name);
    facts.memory_bytes = number<std::uint64_t>(memory);
    facts.multiprocessors = number<std::uint32_t>(multiprocessors);
    facts.compute_major = number<std::uint32_t>(major);
    facts.compute_minor = number<std::uint32_t>(minor);
    facts.warp_size = number<std::uint32_t>(warp_size);
    facts.max_threads_per_multiprocessor = number<std::uint32_t>(max_threads);
    dictionary.update(places.device(ordinal), facts);
  }
  return {};
}

Status read_distributed_info(JsonReader& reader, DocumentFacts& facts) {
  static constexpr std::array<std::string_view, 2> kNames = {"rank", "world_size"};
  std::array<std::string_view, 2> values;
  auto outcome = reader.record([&](JsonCursor& cursor) { read_members(cursor, kNames, values); });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  if (*outcome != RecordOutcome::kRead) return {};
  std::uint64_t rank = 0;
  if (base::parse_unsigned(values[0], rank) && rank <= std::numeric_limits<std::int32_t>::max()) {
    facts.rank = static_cast<std::int32_t>(rank);
  }
  facts.world_size = number<std::int32_t>(values[1]);
  return {};
}

// Programs put the variables that their launcher has set beside the events, as metadata.
void read_launcher_variable(std::string_view key, std::string_view text, DocumentFacts& facts) {
  static constexpr std::array<std::string_view, 5> kRanks = {
      "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  static constexpr std::array<std::string_view, 4> kSizes = {"WORLD_SIZE", "SLURM_NTASKS",
                                                             "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
  std::uint64_t number = 0;
  if (!base::parse_unsigned(text, number) || number > std::numeric_limits<std::int32_t>::max()) {
    return;
  }
  if (std::ranges::find(kRanks, key) != kRanks.end()) {
    facts.launcher_rank = static_cast<std::int32_t>(number);
  } else if (std::ranges::find(kSizes, key) != kSizes.end()) {
    facts.launcher_size = static_cast<std::int32_t>(number);
  }
}

}  // namespace

Status read_member(JsonReader& reader, std::string_view key, Dictionary& dictionary, Places& places,
                   DocumentFacts& facts) {
  constexpr std::size_t kMembersKept = 16;
  if (facts.members.size() < kMembersKept) facts.members.emplace_back(key);
  if (key == "deviceProperties") {
    facts.has_devices = true;
    return read_device_properties(reader, dictionary, places);
  }
  if (key == "distributedInfo") return read_distributed_info(reader, facts);
  auto type = reader.type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject || *type == JsonType::kArray) return reader.skip();
  std::string_view text;
  auto outcome = reader.record([&](JsonCursor& cursor) { text = cursor.string(); });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  if (*outcome != RecordOutcome::kRead || text.empty()) return {};
  if (key == "baseTimeNanoseconds") {
    std::int64_t base = 0;
    const base::DecimalStatus status = base::parse_decimal(text, 0, base);
    if (status == base::DecimalStatus::kExact || status == base::DecimalStatus::kCut) {
      facts.base_ns = base;
    } else {
      facts.unreadable_base = text;
    }
  } else if (key != "displayTimeUnit") {  // of the viewer: ts and dur are microseconds always
    dictionary.fact(key, text);
    read_launcher_variable(key, text, facts);
  }
  return {};
}

}  // namespace pasta::adapters::kineto_json
