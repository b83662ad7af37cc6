#include "adapters/rocpd/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "adapters/rocpd/rocpd.h"

namespace pasta::adapters::rocpd {
namespace {

using base::sqlite::Database;

// Those of a row for each thing that happened stand first. RPD databases share some of the others.
constexpr std::size_t kOwn = 12;
constexpr std::array<std::string_view, 22> kTables = {
    "rocpd_kernel_dispatch", "rocpd_memory_copy",
    "rocpd_memory_allocate", "rocpd_region",
    "rocpd_sample",          "rocpd_event",
    "rocpd_pmc_event",       "rocpd_timestamp",
    "rocpd_track",           "rocpd_info_kernel_symbol",
    "rocpd_info_process",    "rocpd_info_agent",
    "rocpd_info_node",       "rocpd_info_thread",
    "rocpd_info_queue",      "rocpd_info_stream",
    "rocpd_info_pmc",        "rocpd_info_code_object",
    "rocpd_info_category",   "rocpd_arg",
    "rocpd_string",          "rocpd_metadata"};

struct Match {
  std::size_t table;
  std::string_view suffix;
};

// "rocpd_event_0000..." is table "rocpd_event".
std::optional<Match> match(std::string_view name) {
  std::optional<Match> best;
  for (std::size_t i = 0; i < kTables.size(); ++i) {
    if (name.starts_with(kTables[i]) &&
        (!best || kTables[i].size() > kTables[best->table].size())) {
      best = Match{i, name.substr(kTables[i].size())};
    }
  }
  return best;
}

// The suffix as the metadata say it, which has been written with and without the first underscore.
std::optional<std::string> said_suffix(const Database& database, std::string_view metadata) {
  auto rows = database.query(
      fmt::format("SELECT value FROM {} WHERE tag = 'uuid'", base::sqlite::identifier(metadata)));
  if (!rows) return std::nullopt;
  auto found = rows->step();
  if (!found || !*found) return std::nullopt;
  const std::string value(rows->text(0));
  for (const std::string& suffix : {value, "_" + value}) {
    if (database.has("rocpd_metadata" + suffix)) return suffix;
  }
  return std::nullopt;
}

}  // namespace

bool recognise(const Database& database) {
  return std::ranges::any_of(database.tables(), [](const base::sqlite::Table& table) {
    const auto found = match(table.name);
    return found && found->table < kOwn;
  });
}

std::vector<std::string> suffixes(const Database& database) {
  std::vector<std::string> found;
  const auto add = [&](std::string_view suffix) {
    if (std::ranges::find(found, suffix) == found.end()) found.emplace_back(suffix);
  };
  // The views are named without a suffix; they count only where there is nothing else.
  for (const bool views : {false, true}) {
    for (const auto& table : database.tables()) {
      if (table.view != views || !table.name.starts_with("rocpd_metadata")) continue;
      if (const auto said = said_suffix(database, table.name); said && !views) add(*said);
    }
    for (const auto& table : database.tables()) {
      const auto name = table.view == views ? match(table.name) : std::nullopt;
      if (name && name->table < kOwn) add(name->suffix);
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace pasta::adapters::rocpd
