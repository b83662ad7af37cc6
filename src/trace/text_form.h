// Events as lines of text (docs/format.md): what `pastaprof dump` prints and tests are written in.
#pragma once

#include <memory>
#include <string>

#include "pasta/recorder.h"

namespace pasta::trace {

struct TextWriterOptions {
  bool overwrite = false;
};

// `path` may be "-" for standard output. Rows of tables stand before the first event that needs
// them, so that the output can be read while it grows.
Result<std::unique_ptr<Recorder>> make_text_writer(std::string path,
                                                   TextWriterOptions options = {});

// The same into `out`, which must outlive the recorder.
std::unique_ptr<Recorder> make_text_writer_to(std::string& out);

}  // namespace pasta::trace
