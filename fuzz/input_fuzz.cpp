// Any bytes as a file that may be gzip or zip: never a crash, an endless loop, or memory that grows
// with what a header claims.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("input", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  auto opened = pasta::base::open_input("/proc/self/fd/" + std::to_string(file));
  if (opened) {
    // A few kilobytes of zeros compressed are enough for gigabytes: what comes out is bounded here.
    constexpr std::size_t kEnough = std::size_t{4} << 20;
    std::array<std::byte, 4096> block;
    for (std::size_t read = 0; read < kEnough;) {
      const auto got = opened->stream->read(block);
      if (!got || *got == 0) break;
      if (*got > block.size()) std::abort();
      read += *got;
    }
  } else if (opened.error().message.empty()) {
    std::abort();
  }
  close(file);
  return 0;
}
