// Keeps a trace as a .pasta file.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pasta/recorder.h"
#include "trace/format.h"
#include "trace/output_file.h"

namespace pasta::trace {

struct PastaWriterOptions {
  bool overwrite = false;
  const bool* keeps_partial = nullptr;  // as OutputOptions have it
  bool compress = false;                // zstd, chunk by chunk
  std::size_t chunk_events = 8192;      // what is lost at most when the writer dies
  std::optional<Uuid> uuid{};           // random when not given
};

// `path` may be "-" for standard output. See OutputFile for how the file comes to be.
Result<std::unique_ptr<Recorder>> make_pasta_writer(std::string path,
                                                    PastaWriterOptions options = {});

}  // namespace pasta::trace
