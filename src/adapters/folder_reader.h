// Traces that are a folder, not a file.
#pragma once

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

}  // namespace pasta::adapters
