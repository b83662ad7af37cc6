// What a trace document says besides its events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/kineto_json/places.h"
#include "base/json_reader.h"
#include "pasta/result.h"

namespace pasta::adapters::kineto_json {

struct DocumentFacts {
  std::int32_t rank = kUnknownRank;
  std::int32_t world_size = 0;
  // What the launcher of the job said, such as SLURM: counts where distributedInfo does not say it.
  std::int32_t launcher_rank = kUnknownRank;
  std::int32_t launcher_size = 0;
  bool has_devices = false;             // it lists the devices of its host, as Kineto does
  std::optional<std::int64_t> base_ns;  // to be added to every time
  std::string unreadable_base;          // its text, when it is no number
  std::vector<std::string> members;     // names of the first ones, to tell what it is when no trace
};

// Reads the value of one member that is not "traceEvents", the reader standing at it.
Status read_member(base::JsonReader& reader, std::string_view key, Dictionary& dictionary,
                   Places& places, DocumentFacts& facts);

}  // namespace pasta::adapters::kineto_json
