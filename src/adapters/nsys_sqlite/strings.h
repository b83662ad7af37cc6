// The strings that rows refer to by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/sqlite.h"
#include "pasta/dictionary.h"
#include "pasta/quality.h"

namespace pasta::adapters::nsys_sqlite {

// Values by number, with the recent ones in front: rows with one number follow each other.
template <class Value>
class ById {
 public:
  // `make` is called for a number that is new.
  template <class Make>
  const Value& get(std::int64_t id, Make&& make) {
    Recent& recent = recent_[static_cast<std::uint64_t>(id) % kRecent];
    if (recent.value == nullptr || recent.id != id) {
      auto known = all_.find(id);
      if (known == all_.end()) known = all_.emplace(id, make()).first;
      recent = {id, &known->second};
    }
    return *recent.value;
  }

 private:
  static constexpr std::size_t kRecent = 2048;
  struct Recent {
    std::int64_t id = 0;
    const Value* value = nullptr;
  };
  std::array<Recent, kRecent> recent_{};
  std::unordered_map<std::int64_t, Value> all_;
};

// Table StringIds. It may be larger than what is used of it, so each string is looked up when it
// is first met, by the table's key; only a table without a key is read as a whole.
class Strings {
 public:
  Strings(Dictionary& dictionary, Problems& problems, const base::sqlite::Database& database);

  // The text of a column that holds the number of a string or, as in some tables and in files that
  // other programs made, the text itself. Valid until the next call; nothing for NULL and for a
  // number without string, which is counted.
  std::optional<std::string_view> text(const base::sqlite::Row& row, int column);
  std::optional<std::string_view> text(std::int64_t id);
  // The same as a name.
  StringId name(const base::sqlite::Row& row, int column);

 private:
  StringId intern(std::string_view text);

  Dictionary& dictionary_;
  Problems& problems_;
  std::optional<base::sqlite::Statement> lookup_;
  std::unordered_map<std::int64_t, std::string> whole_;
  ById<StringId> names_;
};

}  // namespace pasta::adapters::nsys_sqlite
