// Strings that rows refer to by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/sqlite.h"
#include "pasta/dictionary.h"

namespace pasta::adapters::common {

// A table of (number, text) of which each text is fetched when it is first needed: profilers write
// the names of thousands of functions that a trace never mentions.
class StringTable {
 public:
  // `database` and `dictionary` outlive this object. A table that is not there knows no string.
  StringTable(const base::sqlite::Database& database, Dictionary& dictionary,
              std::string_view table, std::string_view id_column, std::string_view text_column);

  // None for a number that the table does not have.
  StringId get(std::int64_t id);
  // Why a text could not be fetched; empty while all is well.
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  void fetch(std::string_view condition);

  const base::sqlite::Database& database_;
  Dictionary& dictionary_;
  std::string sql_;  // empty: no such table
  std::string id_column_;
  bool one_by_one_ = false;  // a number is found without a look at the whole table
  bool all_fetched_ = false;
  std::unordered_map<std::int64_t, StringId> known_;
  std::string damage_;
};

}  // namespace pasta::adapters::common
