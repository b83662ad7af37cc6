#include "base/sqlite_vfs.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace pasta::base::sqlite {

struct Mount::Impl {
  Image image;
  std::string name;  // of this VFS
  std::string error;
  sqlite3_vfs vfs{};
};

namespace {

constexpr std::string_view kFileName = "database";
constexpr std::string_view kLogName = "database-wal";  // SQLite makes this name itself

// SQLite allocates szOsFile bytes and calls xOpen on them.
struct OpenFile {
  sqlite3_file base;  // first: SQLite sees only this
  const RandomAccess* bytes;
  std::string* error;
};

OpenFile& as_open(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }
Mount::Impl& mount_of(sqlite3_vfs* vfs) { return *static_cast<Mount::Impl*>(vfs->pAppData); }

int close_file(sqlite3_file*) { return SQLITE_OK; }

int read_file(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  OpenFile& open = as_open(file);
  const auto want = static_cast<std::size_t>(size);
  auto* const bytes = static_cast<std::byte*>(to);
  const auto got = open.bytes->read_at(static_cast<std::uint64_t>(offset), {bytes, want});
  if (!got) {
    *open.error = got.error().message;
    return SQLITE_IOERR_READ;
  }
  if (*got == want) return SQLITE_OK;
  std::memset(bytes + *got, 0, want - *got);  // SQLite asks for this
  return SQLITE_IOERR_SHORT_READ;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(as_open(file).bytes->size);
  return SQLITE_OK;
}

int refuse_write(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
int refuse_truncate(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
int ignore(sqlite3_file*, int) { return SQLITE_OK; }  // sync, lock, unlock
int not_reserved(sqlite3_file*, int* out) {
  *out = 0;
  return SQLITE_OK;
}
int no_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return 0; }

// Version 1: without shared memory, so that SQLite keeps the index of a write-ahead log in its own.
constexpr sqlite3_io_methods kMethods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = refuse_write,
    .xTruncate = refuse_truncate,
    .xSync = ignore,
    .xFileSize = file_size,
    .xLock = ignore,
    .xUnlock = ignore,
    .xCheckReservedLock = not_reserved,
    .xFileControl = no_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs& system_vfs() { return *sqlite3_vfs_find(nullptr); }

const RandomAccess* find_bytes(const Mount::Impl& mount, std::string_view name) {
  if (name == kFileName) return &mount.image.main;
  return name == kLogName ? &mount.image.log : nullptr;
}

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  // Without a name: scratch space for a sort or an index.
  if (name == nullptr) return system_vfs().xOpen(&system_vfs(), name, file, flags, out_flags);
  Mount::Impl& mount = mount_of(vfs);
  const RandomAccess* const bytes = find_bytes(mount, name);
  if (bytes == nullptr) {
    file->pMethods = nullptr;
    return SQLITE_CANTOPEN;
  }
  new (file) OpenFile{{&kMethods}, bytes, &mount.error};
  if (out_flags != nullptr) {
    *out_flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  }
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; }

// An empty log can be opened, as databases that were kept with one ask for, but is none.
int access_file(sqlite3_vfs* vfs, const char* name, int flags, int* out) {
  const RandomAccess* const bytes = find_bytes(mount_of(vfs), name);
  *out = flags == SQLITE_ACCESS_EXISTS && bytes != nullptr && bytes->size != 0 ? 1 : 0;
  return SQLITE_OK;
}

int full_name(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

}  // namespace

// Time, randomness and the like are the system's.
Mount::Mount(Image image) : impl_(std::make_unique<Impl>()) {
  static std::atomic<std::uint64_t> count = 0;
  impl_->image = std::move(image);
  impl_->name = fmt::format("pasta-{}", ++count);
  const sqlite3_vfs& system = system_vfs();
  sqlite3_vfs& vfs = impl_->vfs;
  vfs = system;
  vfs.pNext = nullptr;
  vfs.zName = impl_->name.c_str();
  vfs.pAppData = impl_.get();
  vfs.szOsFile = std::max(system.szOsFile, static_cast<int>(sizeof(OpenFile)));
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  vfs.xFullPathname = full_name;
  sqlite3_vfs_register(&vfs, 0);
}

Mount::~Mount() { sqlite3_vfs_unregister(&impl_->vfs); }

const char* Mount::file_name() const { return kFileName.data(); }
const char* Mount::vfs_name() const { return impl_->name.c_str(); }
const std::string& Mount::io_error() const { return impl_->error; }

}  // namespace pasta::base::sqlite
