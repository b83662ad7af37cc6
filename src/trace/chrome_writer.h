// Exports a trace as Chrome JSON in the words of PyTorch's Kineto, for Perfetto, chrome://tracing
// and every program that reads PyTorch traces.
#pragma once

#include <memory>
#include <string>

#include "pasta/recorder.h"

namespace pasta::trace {

struct ChromeWriterOptions {
  bool overwrite = false;
};

// `path` may be "-" for standard output. A trace that came from such a file and is read back from
// the export is the same trace. What the format has no words for is left out and counted in the
// member "notExported" of the document: page faults, gaps, device results. Of the rest it cannot
// carry: status of calls, pools, which of two processes with the same number a device belongs to.
Result<std::unique_ptr<Recorder>> make_chrome_writer(std::string path,
                                                     ChromeWriterOptions options = {});

}  // namespace pasta::trace
