#include "trace/run_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pasta::trace {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

Result<MappedRunPage> MappedRunPage::open(const std::string& folder) {
  const std::string path = folder + '/' + spool::kRunFile;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* page = MAP_FAILED;
  if (file >= 0) page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  if (file >= 0) close(file);
  if (page == MAP_FAILED) {
    return fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(reason)));
  }
  return MappedRunPage(static_cast<spool::RunPage*>(page));
}

MappedRunPage::MappedRunPage(MappedRunPage&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}
MappedRunPage::~MappedRunPage() {
  if (page_ != nullptr) munmap(page_, kPageBytes);
}

void MappedRunPage::keeps_from(std::int64_t ns) const {
  std::int64_t from_ns = page_->kept_from_ns.load();
  while (ns > from_ns && !page_->kept_from_ns.compare_exchange_weak(from_ns, ns)) {
  }
}

}  // namespace pasta::trace
