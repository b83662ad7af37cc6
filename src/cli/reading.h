// What all verbs that read traces do alike.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cli/verb.h"
#include "pasta/adapter.h"
#include "pasta/recorder.h"
#include "pasta/session.h"

namespace pasta::cli {

struct Reading {
  std::unique_ptr<ReadProgress> progress;
  Session session;
  KindSet provided;  // by any of its sources
};

// A session over all operands with plan, filter and labels as the settings say; tools and recorders
// are still to be added. Wrong usage is found before a file is touched.
Result<Reading> open_traces(const Settings& settings);

// Reads all sources to their ends, and shows on a terminal how far that is, unless the results are
// `printed_meanwhile` and go to it. What stops a source is said, and the answer is about what was
// read before; in strict mode it is the error.
Result<Document> read_all(Reading& reading, const Settings& settings, bool printed_meanwhile);

// Reads all into one recorder, which gets what passes the settings' filter, and is made once the
// traces are known to be readable. Returns completeness().
Result<int> record_all(Result<Reading> reading, const Settings& settings,
                       const std::function<Result<std::unique_ptr<Recorder>>()>& make);

// kIncomplete, and a line that says why, when something was dropped or altered; else kComplete.
int completeness(const Session& session, const Document& document);
// The same of a document alone.
int completeness(const Document& document);

}  // namespace pasta::cli
