// Stands in for libFuzzer where there is none: gives a driver every file named on the command line
// (folders: every file below) once, as it is and cut in half, and the empty input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// In order of name, so that two runs do the same.
std::vector<fs::path> files_below(const fs::path& path, std::error_code& error) {
  std::vector<fs::path> files;
  if (!fs::is_directory(path, error)) {
    if (!error) files.push_back(path);
    return files;
  }
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A driver may rely on reading nothing past the end, so every input has memory of exactly its size:
// a sanitizer then sees the first byte too many.
void run(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> exact(data, data + size);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  run(nullptr, 0);
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    const std::vector<fs::path> files = files_below(argv[i], error);
    if (error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
      return 1;
    }
    for (const fs::path& file : files) {
      std::ifstream stream(file, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
      if (!stream) {
        std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
        return 1;
      }
      // Names the input of a crash, which ends the program before anything else could.
      std::printf("%s\n", file.c_str());
      std::fflush(stdout);
      const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
      run(data, bytes.size());
      run(data, bytes.size() / 2);
      ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return 0;
}
