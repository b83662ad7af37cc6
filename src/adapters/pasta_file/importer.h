// Brings tables and events of a .pasta file into a session's dictionary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/pasta_file/id_map.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "trace/format.h"
#include "trace/table_import.h"

namespace pasta::adapters::pasta_file {

class Importer {
 public:
  // `processes` is the same for all parts of one trace; a later one repeats facts of the first.
  Importer(Dictionary& dictionary, trace::ProcessImport& processes, bool later_part);

  // A chunk of one of the tables. False when its content is not what its type says: ids that are
  // not dense or not known, records that do not fill it.
  bool table(trace::ChunkType type, std::uint32_t records, std::span<const std::byte> payload);

  // Whether all that `event` refers to is known, its kind is one, and its times are in order.
  [[nodiscard]] bool valid(const Event& event) const;
  // Every id of the file is the session's: events need no map().
  [[nodiscard]] bool identity() const;
  // Gives a valid event the session's ids. Its blob keeps the file's.
  void map(Event& event) const;

 private:
  bool strings(std::uint32_t records, std::span<const std::byte> payload);
  bool facts(std::uint32_t records, std::span<const std::byte> payload);
  [[nodiscard]] bool add(const trace::ProcessRecord& record);
  [[nodiscard]] bool add(const trace::DeviceRecord& record);
  [[nodiscard]] bool add(const trace::LaneRecord& record);
  [[nodiscard]] bool add(const trace::FrameRecord& record);
  [[nodiscard]] bool add(const trace::CollectiveRecord& record);
  [[nodiscard]] bool add(const trace::AttributesRecord& record);

  Dictionary& dictionary_;
  trace::ProcessImport& process_import_;
  bool later_part_;
  IdMap strings_, processes_, devices_, lanes_, frames_, collectives_, attributes_;
};

}  // namespace pasta::adapters::pasta_file
