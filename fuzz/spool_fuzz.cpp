// Any bytes as the folder of a run: a page of the run, one of a process, and a lane, as they lie in
// their files one after the other; the last is also what is left of the lane's beginning. What only
// makes files be passed over is made right first. The reader ends, and what it gives keeps the
// contract, while the run goes on or afterwards.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "adapters/spool/spool.h"
#include "checking_sink.h"
#include "trace/spool.h"

namespace {

using namespace pasta::trace::spool;

constexpr std::size_t kPage = 4096;

// In memory where there is such a place, made once.
const std::string& folder() {
  // Never destroyed: what takes the folder away at exit reads it.
  static const std::string& path = *new std::string([] {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm/spool-fuzz-XXXXXX"
                                                           : "/tmp/spool-fuzz-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return name;
  }());
  return path;
}

void write(const char* name, std::span<const std::uint8_t> bytes) {
  std::ofstream file(folder() + '/' + name, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file) std::abort();
}

// The next `size` bytes of `from` (zeros where it ends) with `magic` and our version in front.
std::vector<std::uint8_t> page(std::span<const std::uint8_t>& from, std::size_t size,
                               std::uint64_t magic) {
  std::vector<std::uint8_t> bytes(size);
  const std::size_t given = std::min(size, from.size());
  std::copy_n(from.data(), given, bytes.data());
  from = from.subspan(given);
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + sizeof magic, &kVersion, sizeof kVersion);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::uint8_t> rest(data, size);
  write("run", page(rest, kPage, kRunMagic));
  write("0.process", page(rest, kPage, kProcessMagic));
  std::vector<std::uint8_t> lane = page(rest, kLanePageBytes, kLaneMagic);
  lane.insert(lane.end(), rest.begin(), rest.end());
  write("0-1.lane", lane);
  // Read where the page says that a beginning of the lane has gone.
  write("0-1.before", rest);
  for (const bool strict : {false, true}) {
    auto stored = pasta::adapters::spool::open(folder());
    if (!stored) return 0;  // its clock cannot be one
    pasta::fuzz::drain(**stored, strict);
  }
  const std::atomic<bool> over = true;
  auto followed =
      pasta::adapters::spool::follow(folder(), "fuzz", "run", over, pasta::KindSet::all());
  if (!followed) std::abort();  // as it was read before
  pasta::fuzz::drain(**followed, false);
  return 0;
}
