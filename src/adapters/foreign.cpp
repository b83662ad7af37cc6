#include "adapters/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/csv_reader.h"
#include "base/utf8.h"

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
    {"NVIDIA Tegra Profiler Report"sv, 0,
     "an Nsight Systems report (.nsys-rep), whose format is not public: export it with "
     "`nsys export --type sqlite FILE`"},
    {"tracy\0"sv, 10,
     "a Tracy capture, which cannot be read here: Tracy's `tracy-csvexport FILE` writes its zones "
     "as a table"},
    {"tlZ"sv, 0,
     "a compressed Tracy capture, which cannot be read here: Tracy's `tracy-csvexport FILE` writes "
     "its zones as a table"},
    {"PERFILE2"sv, 0,
     "samples of Linux perf (perf.data), which have no device work: record with a GPU profiler"},
    {"# tracer:"sv, 0, "a trace of the Linux kernel (ftrace), which has no device work"},
    {"#Paraver"sv, 0, "a Paraver trace, which cannot be read here"},
    {"\xC1\x1F\xFC\xC1"sv, 0, "a stream of a CTF trace (LTTng), which cannot be read here"},
    {"HPCTOOLK"sv, 0, "a database of HPCToolkit, which cannot be read here"},
    {"HPCPROF"sv, 0, "a profile of HPCToolkit, which cannot be read here"},
    {"\x93NUMPY"sv, 0, "a NumPy array, not a trace"},
    {"NVPR"sv, 0, "an Nsight Compute report: it holds counters of single kernels, not a timeline"},
    {"\x28\xB5\x2F\xFD"sv, 0, "a zstd file: decompress it first with `zstd -d FILE`"},
    {"BZh"sv, 0, "a bzip2 file: decompress it first with `bunzip2 FILE`"},
    {"\xFD"
     "7zXZ"sv,
     0, "an xz file: decompress it first with `unxz FILE`"},
    {"7z\xBC\xAF\x27\x1C"sv, 0, "a 7-Zip archive: unpack it first"},
    {"\x7F"
     "ELF"sv,
     0, "a program or library (ELF): run it under a profiler"},
    {"ustar"sv, 257, "a tar archive: unpack it first"},
    {"PAR1"sv, 0, "a Parquet file, not a trace"},
    {"\x89HDF\r\n\x1A\n"sv, 0, "an HDF5 file, not a trace"},
    {"\x89PNG"sv, 0, "a picture, not a trace"},
    {"%PDF"sv, 0, "a PDF document, not a trace"},
    {"OTF2"sv, 0,
     "an OTF2 archive, which cannot be read here: rocprofv3 writes what is read with "
     "`--output-format json` or `csv`"},
    {"<?xml"sv, 0,
     "an XML document, not a trace; if it is a session of the NVIDIA Visual Profiler (.nvvp), it "
     "holds "
     "settings and no measurements: run `nvprof -o FILE PROGRAM` and read that file"},
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

// The kind of an ELF file is 16 bits at 16, in the byte order that byte 5 says.
std::optional<std::string> recognise_core_dump(string_view text) {
  constexpr char kCore = 4;
  if (!text.starts_with("\x7F"
                        "ELF") ||
      text.size() < 18)
    return std::nullopt;
  const bool little = text[5] == 1;
  if (text[little ? 16 : 17] != kCore) return std::nullopt;
  return "a core dump, which a program left behind that crashed: open it with `gdb PROGRAM FILE`";
}

// A protocol number and, from protocol 4 on, a frame; then the opcode of an empty container or of a
// global name. Reading a pickle runs what it says, which is why none is read here.
std::optional<std::string> recognise_pickle(string_view text) {
  if (text.size() < 3 || text[0] != '\x80' || text[1] < 2 || text[1] > 5) return std::nullopt;
  const bool framed = text[1] >= 4 && text[2] == '\x95' && text.size() > 11;
  if (string_view("}]c(\x8c)").find(text[framed ? 11 : 2]) == string_view::npos) {
    return std::nullopt;
  }
  return "a Python pickle: PyTorch's memory snapshots are such, look at them on "
         "https://docs.pytorch.org/memory_viz; for times record with torch.profiler and "
         "export_chrome_trace()";
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

bool is_text(string_view text) {
  return base::utf8_valid_prefix(text) == text.size() &&
         std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
}

std::optional<std::string> recognise_csv(std::span<const std::byte> head) {
  constexpr std::size_t kNamesShown = 8;
  const auto rows = base::csv_head(head, 1);
  if (rows.empty() || rows[0].size() < 3) return std::nullopt;
  const std::vector<std::string>& names = rows[0];
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    if (!is_text(names[i])) return std::nullopt;
    shown += fmt::format("{}{}", i == 0 ? "" : ", ", string_view(names[i]).substr(0, 40));
  }
  if (names.size() > kNamesShown) shown += fmt::format(" and {} more", names.size() - kNamesShown);
  return fmt::format(
      "a CSV table with the columns {}, which no trace known here has (read are those of "
      "rocprofv3, rocprof and nvprof)",
      shown);
}

}  // namespace

std::optional<std::string> recognise_foreign(std::span<const std::byte> head) {
  const string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.empty()) return "empty: there is nothing to read";
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "blank: there is nothing to read";
  if (auto pointer = recognise_lfs_pointer(text)) return pointer;
  if (auto core_dump = recognise_core_dump(text)) return core_dump;
  if (auto pickle = recognise_pickle(text)) return pickle;
  for (const Magic& magic : kMagics) {
    if (text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return std::string(magic.answer);
    }
  }
  if (auto protobuf = recognise_protobuf(text)) return protobuf;
  return recognise_csv(head);
}

}  // namespace pasta::adapters
