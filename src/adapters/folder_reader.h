// Traces that are a folder, not a file.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::adapters {

// One line of builtin.cpp.
struct FolderReader {
  AdapterInfo info;
  bool (*recognise)(const std::string& folder);
  Result<std::unique_ptr<Adapter>> (*open)(const std::string& folder);
};
std::span<const FolderReader> folder_readers();

// Who reads this folder as one trace; none: it is a folder of traces, or there is no such folder.
const FolderReader* folder_reader(const std::string& folder);

// Reads what is in the folder of a run. Reports call it `path`, of format `format`.
Result<std::unique_ptr<Adapter>> read_run(const std::string& folder, std::string path,
                                          std::string format);
// Follows the run that writes into `folder` until `over` is set. Reports call it `path`, of format
// `format`. `provides`: what can be seen of the program, by how it is run.
Result<std::unique_ptr<Adapter>> follow_run(const std::string& folder, std::string path,
                                            std::string format, const std::atomic<bool>& over,
                                            KindSet provides);
// The same for who only looks on, see adapters/spool/spool.h.
Result<std::unique_ptr<Adapter>> look_on_run(const std::string& folder,
                                             const std::atomic<bool>& over);

}  // namespace pasta::adapters
