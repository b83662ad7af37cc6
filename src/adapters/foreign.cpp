#include "adapters/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace pasta::adapters {
namespace {

using std::string_view;
using namespace std::string_view_literals;

struct Magic {
  string_view bytes;
  std::size_t offset;
  string_view answer;
};

constexpr Magic kMagics[] = {
    {"SQLite format 3\0"sv, 0,
     "an SQLite database (such as Nsight Systems, rocpd or nvprof write): reading these is planned "
     "and not there yet"},
    {"NVIDIA Tegra Profiler Report"sv, 0,
     "an Nsight Systems report (.nsys-rep), whose format is not public: export it with "
     "`nsys export --type sqlite FILE`"},
    {"tracy\0"sv, 10, "a Tracy capture: it cannot be read here"},
    {"tlZ"sv, 0, "a compressed Tracy capture: it cannot be read here"},
    {"NVPR"sv, 0, "an Nsight Compute report: it holds counters of single kernels, not a timeline"},
    {"\x28\xB5\x2F\xFD"sv, 0, "a zstd file: decompress it first with `zstd -d FILE`"},
    {"BZh"sv, 0, "a bzip2 file: decompress it first with `bunzip2 FILE`"},
    {"\xFD"
     "7zXZ"sv,
     0, "an xz file: decompress it first with `unxz FILE`"},
    {"7z\xBC\xAF\x27\x1C"sv, 0, "a 7-Zip archive: unpack it first"},
    {"\x7F"
     "ELF"sv,
     0, "a program, library or core dump (ELF), not a trace"},
    {"ustar"sv, 257, "a tar archive: unpack it first"},
    {"PAR1"sv, 0, "a Parquet file, not a trace"},
    {"\x89HDF\r\n\x1A\n"sv, 0, "an HDF5 file, not a trace"},
    {"\x89PNG"sv, 0, "a picture, not a trace"},
    {"%PDF"sv, 0, "a PDF document, not a trace"},
    {"OTF2"sv, 0, "an OTF2 archive: it cannot be read here"},
    {"<?xml"sv, 0,
     "an XML document (an nvprof session of this kind holds no measurements), not a trace"},
    {"<!DOCTYPE"sv, 0, "a web page: was the download a login or an error page?"},
    {"<html"sv, 0, "a web page: was the download a login or an error page?"},
    {"\xFF\xFE"sv, 0, "text in UTF-16: save it as UTF-8"},
    {"\xFE\xFF"sv, 0, "text in UTF-16: save it as UTF-8"},
};

// "version https://git-lfs..." with a line "size 4194304".
std::optional<std::string> recognise_lfs_pointer(string_view text) {
  if (!text.starts_with("version https://git-lfs")) return std::nullopt;
  const std::size_t at = text.find("\nsize ");
  if (at == text.npos) return "not a trace; this is a Git LFS pointer: run `git lfs pull`";
  string_view size = text.substr(at + 6);
  size = size.substr(0, size.find_first_not_of("0123456789"));
  return fmt::format(
      "not a trace and not a SQLite database; this is a Git LFS pointer to {} bytes: run "
      "`git lfs pull`",
      size);
}

bool is_printable(char c) { return c == '\t' || c == '\n' || c == '\r' || (c >= ' ' && c <= '~'); }

// Messages of a protocol buffer follow each other as (tag, length, bytes).
std::optional<std::string> recognise_protobuf(string_view text) {
  if (text.size() < 16 || text[0] != '\x0A') return std::nullopt;
  if (text.find("/host:") < 64 || text.find("/device:") < 64) {
    return "an XPlane of TensorFlow or JAX (.xplane.pb): export it as a Chrome trace "
           "(trace.json.gz lies beside it in most profiler folders)";
  }
  if (std::all_of(text.begin(), text.end(), is_printable)) return std::nullopt;
  return "a protocol buffer, perhaps a Perfetto trace: convert it with "
         "`traceconv json FILE OUT.json`";
}

}  // namespace

std::optional<std::string> recognise_foreign(std::span<const std::byte> head) {
  const string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.empty()) return "empty: there is nothing to read";
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "blank: there is nothing to read";
  if (auto pointer = recognise_lfs_pointer(text)) return pointer;
  for (const Magic& magic : kMagics) {
    if (text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return std::string(magic.answer);
    }
  }
  if (auto protobuf = recognise_protobuf(text)) return protobuf;
  const string_view first_line = text.substr(0, text.find('\n'));
  if (std::count(first_line.begin(), first_line.end(), ',') >= 2 &&
      std::all_of(first_line.begin(), first_line.end(), is_printable)) {
    return "a CSV table: reading rocprofv3's and nvprof's tables is planned and not there yet";
  }
  return std::nullopt;
}

}  // namespace pasta::adapters
