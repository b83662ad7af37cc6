#include "adapters/foreign.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/common/foreign_json.h"

namespace pasta::adapters {
namespace {

using namespace std::string_literals;

std::string recognise(std::string_view head) {
  return recognise_foreign(std::as_bytes(std::span(head))).value_or("");
}

TEST(Foreign, SaysWhatAFileIsAndWhatToDo) {
  const struct {
    std::string head;
    std::string_view kind, advice;
  } files[] = {
      {"NVIDIA Tegra Profiler Report 2025@5@1", ".nsys-rep", "nsys export --type sqlite"},
      {"tlZ\x04\xAC\x58\0\0\xAAtracy\0"s, "Tracy", "tracy-csvexport"},
      {"\x0A\xA1\xF0\x08\x12\x0E/host:metadata\"\xBF"s, ".xplane.pb", "trace.json.gz"},
      {"\x0A\x34\x50\x01\x5A\x30\x08\x80\x80\x10\x12\x04\x0A\x02\x10\x00"s, "Perfetto",
       "traceconv json"},
      {"OTF2\x12\0"s, "OTF2", "--output-format json"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4194304\n", "Git LFS",
       "git lfs pull"},
      {"\x7F"
       "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3E\0"s,
       "core dump", "gdb"},
      {"\x7F"
       "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0"s,
       "library", "profiler"},
      {"\x80\x04\x95\x1C\0\0\0\0\0\0\0}\x94("s, "pickle", "export_chrome_trace"},
      {"\x80\x02}q\0(X"s, "pickle", "memory_viz"},
      {"NVPR\0\0\0\0"s, "Nsight Compute", "not a timeline"},
      {"PERFILE2h\0\0\0"s, "perf", "GPU profiler"},
      {"<?xml version=\"1.0\"?>", "XML", "nvprof"},
      {"\x28\xB5\x2F\xFD\x04", "zstd", "zstd -d"},
      {"", "empty", "nothing to read"},
  };
  for (const auto& file : files) {
    const std::string answer = recognise(file.head);
    EXPECT_NE(answer.find(file.kind), answer.npos) << file.kind << ": " << answer;
    EXPECT_NE(answer.find(file.advice), answer.npos) << file.kind << ": " << answer;
    EXPECT_EQ(answer.find('\n'), answer.npos) << answer;
  }
  EXPECT_EQ(recognise("just a line of text"), "");
  EXPECT_EQ(recognise("\x80\x05 is no pickle"), "");
}

TEST(Foreign, SaysWhatAJsonDocumentIs) {
  const struct {
    std::vector<std::string> members;
    std::string_view kind;
  } documents[] = {
      {{"schema", "pid", "time", "start_ts", "nodes"}, "execution trace of PyTorch"},
      {{"workload_graph"}, "Chakra"},
      {{"name", "version", "private", "dependencies"}, "package.json"},
      {{"segments", "device_traces", "allocator_settings"}, "memory snapshot"},
      {{"projectId", "traceId", "spans"}, "requests between services"},
      {{"pastaprof", "schema", "trace", "reports"}, "report of pastaprof"},
      {{"Time (%)"}, "statistics table"},
  };
  for (const auto& document : documents) {
    const auto kind = recognise_foreign_json(document.members);
    ASSERT_TRUE(kind) << document.kind;
    EXPECT_NE(kind->find(document.kind), kind->npos) << *kind;
  }
  EXPECT_FALSE(recognise_foreign_json(std::vector<std::string>{"name", "version"}));
  EXPECT_FALSE(recognise_foreign_json({}));
}

}  // namespace
}  // namespace pasta::adapters
