// Any bytes as a SQLite database of whatever family recognises it: never a crash, never an endless
// loop, and what is pushed keeps the order and the ids that the stream promises.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "adapters/sqlite_family.h"
#include "base/sqlite.h"
#include "checking_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const bool strict : {false, true}) {
    auto database = pasta::base::sqlite::Database::open_memory(bytes, "fuzz.db");
    if (!database) return 0;
    auto adapter = pasta::adapters::open_sqlite(std::move(*database));
    if (!adapter) return 0;
    pasta::fuzz::drain(**adapter, strict);
  }
  return 0;
}
