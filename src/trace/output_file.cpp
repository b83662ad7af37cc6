#include "trace/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace pasta::trace {
namespace {

std::string errno_text() { return std::error_code(errno, std::generic_category()).message(); }

int nameless_file() {
  std::error_code ignored;
  std::string name = (std::filesystem::temp_directory_path(ignored) / "pasta-out-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(name.c_str());
  return fd;
}

// mkstemp() makes files that only their owner may read; a trace is as public as any other output.
void give_usual_mode(int fd) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  static_cast<void>(::fchmod(fd, 0666 & ~mask));
}

}  // namespace

Status OutputFile::io_error(std::string_view what) const {
  return fail(ErrorCode::kIo, fmt::format("{}: {}: {}", path_, what, errno_text()));
}

Result<OutputFile> OutputFile::open(std::string path, OutputOptions options) {
  OutputFile file;
  file.path_ = std::move(path);
  file.overwrite_ = options.overwrite;
  file.keeps_partial_ = options.keeps_partial;
  int direct = -1;
  if (file.path_ == "-") {
    direct = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (direct < 0) return tl::unexpected(file.io_error("cannot write").error());
  } else {
    struct stat found {};
    if (::stat(file.path_.c_str(), &found) == 0) {
      if (S_ISDIR(found.st_mode)) {
        return fail(ErrorCode::kUsage, fmt::format("{}: is a folder; name a file", file.path_));
      }
      if (!S_ISREG(found.st_mode)) {
        direct = ::open(file.path_.c_str(), O_WRONLY | O_CLOEXEC);
        if (direct < 0) return tl::unexpected(file.io_error("cannot open for writing").error());
      } else if (!options.overwrite) {
        return fail(ErrorCode::kUsage,
                    fmt::format("{}: exists; name another file, or say that it may be overwritten",
                                file.path_));
      }
    }
  }
  if (direct >= 0) {
    if (!options.patchable) {
      file.fd_ = direct;
      return file;
    }
    file.copy_to_ = direct;
    file.fd_ = nameless_file();
    if (file.fd_ < 0) return tl::unexpected(file.io_error("cannot make a temporary file").error());
    return file;
  }
  std::error_code unresolved;
  file.target_ = std::filesystem::weakly_canonical(file.path_, unresolved).string();
  if (unresolved) file.target_ = file.path_;
  file.temporary_ = file.target_ + ".tmp-XXXXXX";
  file.fd_ = ::mkostemp(file.temporary_.data(), O_CLOEXEC);
  if (file.fd_ < 0) {
    const Status error = file.io_error("cannot make a file there");
    file.temporary_.clear();
    return tl::unexpected(error.error());
  }
  give_usual_mode(file.fd_);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      copy_to_(std::exchange(other.copy_to_, -1)),
      overwrite_(other.overwrite_),
      keeps_partial_(other.keeps_partial_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (copy_to_ >= 0) ::close(copy_to_);
  const bool stays = keeps_partial_ != nullptr && *keeps_partial_;
  if (!temporary_.empty() && !stays) ::unlink(temporary_.c_str());
}

Status OutputFile::write_to(int fd, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status OutputFile::write(std::span<const std::byte> bytes) { return write_to(fd_, bytes); }

Status OutputFile::rewrite_front(std::span<const std::byte> bytes) {
  off_t at = 0;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), at);
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot write");
    }
    at += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status OutputFile::copy_out() {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read back its temporary copy");
    if (got == 0) return {};
    PASTA_TRY(write_to(copy_to_, std::span(buffer).first(static_cast<std::size_t>(got))));
    at += got;
  }
}

Status OutputFile::close() {
  if (copy_to_ >= 0) {
    PASTA_TRY(copy_out());
    if (::close(std::exchange(copy_to_, -1)) != 0) return io_error("cannot write");
  }
  // Some file systems tell only now that the disk is full.
  if (::close(std::exchange(fd_, -1)) != 0) return io_error("cannot write");
  if (temporary_.empty()) return {};
  if (overwrite_) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return io_error("cannot rename to it");
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                         RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) {
      return fail(ErrorCode::kUsage,
                  fmt::format("{}: was made by somebody else meanwhile; not overwritten", path_));
    }
    // Not every file system can refuse to replace.
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return io_error("cannot rename to it");
  }
  temporary_.clear();
  return {};
}

}  // namespace pasta::trace
