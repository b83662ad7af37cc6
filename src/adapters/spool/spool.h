// Reads the folder that a watched run writes into, while it runs or afterwards.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "pasta/adapter.h"

namespace pasta::adapters::spool {

inline constexpr AdapterInfo kInfo{.name = "run",
                                   .help = "folder of a run of `pastaprof run`",
                                   .provides = KindSet::all(),
                                   .live = false};
// The same while it is followed; what it provides, who started it knows better.
inline constexpr AdapterInfo kFollowing{.name = "run",
                                        .help = "a run of `pastaprof run` that is under way",
                                        .provides = KindSet::all(),
                                        .live = true};

// Whether the folder is one.
bool recognise(const std::string& folder);

// What is in the folder now. Ranges that are open end where the run does, or now when it is still
// under way, and are flagged kUnfinished.
Result<std::unique_ptr<Adapter>> open(const std::string& folder);
// The same, called `path`, of format `format`.
Result<std::unique_ptr<Adapter>> open(const std::string& folder, std::string path,
                                      std::string format);

// Follows the run until `over`: each pump() pushes what can no longer be preceded by anything, and
// once `over` is set all the rest. `over` outlives it. Reports call the source `path`, of format
// `format`: what the run is to be kept as.
Result<std::unique_ptr<Adapter>> follow(const std::string& folder, std::string path,
                                        std::string format, const std::atomic<bool>& over,
                                        KindSet provides);
// The same for who only looks on: each pump() pushes what has come since the last, whatever may
// still come that ended earlier, with neither scopes nor links of device work. Nothing is kept, so
// what waits for hours holds back nothing.
Result<std::unique_ptr<Adapter>> look_on(const std::string& folder, const std::atomic<bool>& over);

}  // namespace pasta::adapters::spool
