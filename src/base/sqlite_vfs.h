// How SQLite reads bytes that are no file it could open by name: compressed ones that were put
// aside, those of a pipe, those in memory; and files whose progress is to be seen.
#pragma once

#include <memory>
#include <string>

#include "base/file_stream.h"

namespace pasta::base::sqlite {

// The bytes of one database for as long as it is open.
struct Image {
  RandomAccess main;
  RandomAccess log;  // the write-ahead log beside it; of size 0 when there is none
};

// Registers a read-only file system of SQLite's that knows `image` under some name as long as this
// object lives.
class Mount {
 public:
  explicit Mount(Image image);
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount();

  // For sqlite3_open_v2().
  [[nodiscard]] const char* file_name() const;
  [[nodiscard]] const char* vfs_name() const;
  // Why the last read failed, when it was not the database's fault; empty otherwise.
  [[nodiscard]] const std::string& io_error() const;

  struct Impl;  // public for the functions that SQLite calls

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::base::sqlite
