// What all verbs that read traces do alike.
#pragma once

#include <memory>
#include <vector>

#include "cli/verb.h"
#include "pasta/adapter.h"
#include "pasta/session.h"

namespace pasta::cli {

// An adapter for each operand, in their order.
Result<std::vector<std::unique_ptr<Adapter>>> open_traces(const Settings& settings);

// A session over `traces` with plan, filter and labels as the settings say; tools and recorders are
// still to be added.
Result<Session> make_session(const Settings& settings,
                             std::vector<std::unique_ptr<Adapter>> traces);

// Reads all sources to their ends. What stops one of them is said, and the answer is about what was
// read before; in strict mode it is the error.
Result<Document> read_all(Session& session, bool strict);

// kIncomplete, and a line that says why, when something was dropped or altered; else kComplete.
int completeness(const Session& session, const Document& document);

}  // namespace pasta::cli
