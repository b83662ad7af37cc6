// Looks into a zip file.
#pragma once

#include <memory>

#include "base/file_stream.h"

namespace pasta::base {

// The only file in it, decompressed. Folders and macOS's "__MACOSX/" companions do not count.
// Errors: kBadInput (cut, no file, several files, whose names it gives), kUnsupported (encrypted,
// compressed in a way other than deflate), kIo.
Result<std::unique_ptr<ByteStream>> open_zip(RandomAccess file);

}  // namespace pasta::base
