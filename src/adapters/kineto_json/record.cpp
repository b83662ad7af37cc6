#include "adapters/kineto_json/record.h"

#include <utility>

#include "base/decimal.h"

namespace pasta::adapters::kineto_json {

using base::JsonCursor;
using base::JsonType;

namespace {

// Ids and times are numbers mostly, and their text is wanted whatever they are. null says that
// there is none, and so does bare text such as NaN, which the reader has counted.
std::string_view scalar(JsonCursor& cursor) {
  switch (cursor.type()) {
    case JsonType::kNumber:
      return cursor.number();
    case JsonType::kObject:
    case JsonType::kArray:
      return cursor.skip();
    case JsonType::kNull:
    case JsonType::kAbsent:
      cursor.skip();
      return {};
    default:
      return cursor.string();
  }
}

void read_triple(JsonCursor& cursor, Triple& triple) {
  std::size_t n = 0;
  if (!cursor.enter_array()) return;
  while (cursor.next_element()) {
    const std::string_view number = cursor.number();
    if (n < triple.size()) triple[n] = number;
    ++n;
  }
}

void read_series(JsonCursor& cursor, Record& record) {
  if (!cursor.enter_object()) return;
  std::string_view key;
  while (cursor.next_member(key)) {
    const std::string_view name = key;
    record.series.push_back({name, cursor.number()});
  }
}

// In files whose members are sorted by name, args stand before the phase that says whether they
// are series: then they are read as both.
void read_args(JsonCursor& cursor, Record& record) {
  if (!cursor.enter_object()) return;
  const bool maybe_series = record.phase.empty();
  std::string_view key;
  while (cursor.next_member(key)) {
    const std::string_view name = key;
    switch (const Arg arg = find_arg(name)) {
      case Arg::kOther:
        if (maybe_series) {
          record.series.push_back({name, cursor.number()});
        } else {
          cursor.skip();
        }
        break;
      case Arg::kGrid:
        read_triple(cursor, record.grid);
        break;
      case Arg::kBlock:
        read_triple(cursor, record.block);
        break;
      case Arg::kInputDims:
      case Arg::kInputTypes:
        record.args[static_cast<std::size_t>(arg)] = cursor.skip();
        break;
      default:
        record.args[static_cast<std::size_t>(arg)] = scalar(cursor);
        if (maybe_series) record.series.push_back({name, record.arg(arg)});
    }
  }
}

}  // namespace

bool whole_number(std::string_view text, std::uint64_t& value) {
  if (base::parse_unsigned(text, value)) return true;
  std::int64_t exact = 0;
  if (base::parse_decimal(text, 0, exact) != base::DecimalStatus::kExact || exact < 0) return false;
  value = static_cast<std::uint64_t>(exact);
  return true;
}

void read_record(JsonCursor& cursor, Record& record) {
  auto series = std::move(record.series);
  series.clear();
  record = {};
  record.series = std::move(series);
  if (cursor.type() == JsonType::kArray) record.first_member = "[";  // tells rows without names
  if (!cursor.enter_object()) return;
  record.is_object = true;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (!record.has_members) record.first_member = key;
    record.has_members = true;
    switch (find_field(key)) {
      case Field::kPhase:
        record.phase = cursor.string();
        break;
      case Field::kCategory:
        record.category = cursor.string();
        break;
      case Field::kName:
        record.name = cursor.string();
        break;
      case Field::kPid:
        record.pid = scalar(cursor);
        break;
      case Field::kTid:
        record.tid = scalar(cursor);
        break;
      case Field::kTime:
        record.time = scalar(cursor);
        break;
      case Field::kDuration:
        record.duration = scalar(cursor);
        break;
      case Field::kId:
        record.id = scalar(cursor);
        break;
      case Field::kScope:
        record.scope = cursor.string();
        break;
      case Field::kArgs:
        if (record.phase == "C") {
          read_series(cursor, record);
        } else {
          read_args(cursor, record);
        }
        break;
      case Field::kOther:
        cursor.skip();
        break;
    }
  }
}

}  // namespace pasta::adapters::kineto_json
