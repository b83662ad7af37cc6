#include "base/file_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace pasta::base {
namespace {

tl::unexpected<Error> io_error(ErrorCode code, std::string_view path, int number) {
  return fail(code, fmt::format("cannot read {}: {}", path == "-" ? "standard input" : path,
                                std::generic_category().message(number)));
}

class FileStream final : public ByteStream {
 public:
  explicit FileStream(std::shared_ptr<File> file) : file_(std::move(file)) {}
  Result<std::size_t> read(std::span<std::byte> to) override { return file_->read(to); }
  [[nodiscard]] std::string_view damage() const override { return {}; }

 private:
  std::shared_ptr<File> file_;
};

class PartStream final : public ByteStream {
 public:
  PartStream(RandomAccess source, std::uint64_t offset, std::uint64_t size)
      : source_(std::move(source)), offset_(offset), left_(size) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left_)));
    auto got = source_.read_at(offset_, to);
    if (got) {
      offset_ += *got;
      left_ -= *got;
      if (*got < to.size()) cut_ = true;
    }
    return got;
  }
  [[nodiscard]] std::string_view damage() const override {
    return cut_ ? std::string_view("the file ends early") : std::string_view();
  }

 private:
  RandomAccess source_;
  std::uint64_t offset_;
  std::uint64_t left_;
  bool cut_ = false;
};

class JoinedStream final : public ByteStream {
 public:
  JoinedStream(std::vector<std::byte> head, std::unique_ptr<ByteStream> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    const std::size_t first = std::min(to.size(), head_.size() - used_);
    if (first > 0) std::memcpy(to.data(), head_.data() + used_, first);
    used_ += first;
    if (first == to.size()) return first;
    head_ = {};
    used_ = 0;
    return rest_->read(to.subspan(first)).map([&](std::size_t more) { return first + more; });
  }
  [[nodiscard]] std::string_view damage() const override { return rest_->damage(); }

 private:
  std::vector<std::byte> head_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteStream> rest_;
};

}  // namespace

Result<std::shared_ptr<File>> File::open(std::string_view path, ReadProgress* progress) {
  std::string name(path);
  if (name.empty()) return fail(ErrorCode::kBadInput, "the path of a file to read is empty");
  const int descriptor = name == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                     : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int number = errno;
    return io_error(number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                    name, number);
  }
  std::shared_ptr<File> file(new File(descriptor, std::move(name), progress));
  struct stat facts;
  if (::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return io_error(ErrorCode::kBadInput, path, EISDIR);
  }
  // A hint only: it fails on pipes, which need none.
  static_cast<void>(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL));
  if (progress != nullptr) {
    const auto size = file->size();
    progress->total_bytes += size.value_or(0);
    progress->total_known = progress->total_known && size.has_value();
  }
  return file;
}

File::~File() { ::close(descriptor_); }

template <class Call>
Result<std::size_t> File::fill(std::span<std::byte> to, Call&& call) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = call(to.subspan(done), done);
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error(ErrorCode::kIo, path_, errno);
    }
    done += static_cast<std::size_t>(got);
    if (progress_ == nullptr) continue;
    progress_->read_bytes.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
  }
  return done;
}

Result<std::size_t> File::read(std::span<std::byte> to) {
  return fill(to, [this](std::span<std::byte> part, std::size_t) {
    return ::read(descriptor_, part.data(), part.size());
  });
}

Result<std::size_t> File::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  return fill(to, [&](std::span<std::byte> part, std::size_t done) {
    return ::pread(descriptor_, part.data(), part.size(), static_cast<off_t>(offset + done));
  });
}

std::optional<std::uint64_t> File::size() const {
  struct stat facts;
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(facts.st_size);
}

std::unique_ptr<ByteStream> file_stream(std::shared_ptr<File> file) {
  return std::make_unique<FileStream>(std::move(file));
}

std::unique_ptr<ByteStream> part_stream(RandomAccess source, std::uint64_t offset,
                                        std::uint64_t size) {
  return std::make_unique<PartStream>(std::move(source), offset, size);
}

std::unique_ptr<ByteStream> joined_stream(std::vector<std::byte> head,
                                          std::unique_ptr<ByteStream> rest) {
  return std::make_unique<JoinedStream>(std::move(head), std::move(rest));
}

}  // namespace pasta::base
