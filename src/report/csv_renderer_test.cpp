#include <gtest/gtest.h>

#include "report/render.h"
#include "report/sample_document.h"

namespace pasta::report {
namespace {

TEST(Csv, SeveralTablesStandBelowTheirNames) {
  EXPECT_EQ(render_csv(sample_document()), R"(# summary.devices: Devices
device,busy,copy_bytes,kernels,share
0,1000613000,1536,19370,0.5
1,2000000,,4,1e-05

# other.used: Memory in use
time,value
0,0.0
10,1024.0
39,512.0

# other.paths: Time by call path
depth,name,value
0,all,4000.0
1,aten::mm,3000.0
2,gemm,1000.0
1,x,1.0

# other.pairs: Bytes from rank to rank
row,0,1
r0,0.0,8.0
r1,4.0,2.0
)");
}

TEST(Csv, OneTableIsPureAndQuotedWhereItMustBe) {
  Document document;
  document.reports.push_back({"kernels",
                              "Kernels",
                              {Finding{"f", {}, "prose", 0, "", {}, ""},
                               Table{"kernels",
                                     "Kernels",
                                     {{"name"}, {"the \"total\"", Unit::kNanoseconds}},
                                     {{"void f<1, 2>()", integer(7)},
                                      {"say \"hi\"", std::monostate()},
                                      {"two\nlines", -1.5},
                                      {" blanks ", "a\rb"}}}}});
  EXPECT_EQ(render_csv(document),
            "name,\"the \"\"total\"\"\"\n"
            "\"void f<1, 2>()\",7\n"
            "\"say \"\"hi\"\"\",\n"
            "\"two\nlines\",-1.5\n"
            " blanks ,\"a\rb\"\n");
}

TEST(Csv, AnUnknownAloneInItsLineIsStillALine) {
  Document document;
  document.reports.push_back({"t", "", {Table{"t", "", {{"a"}}, {{std::monostate()}}}}});
  EXPECT_EQ(render_csv(document), "a\n\"\"\n");
}

TEST(Csv, NothingIsNothing) { EXPECT_EQ(render_csv(Document()), ""); }

}  // namespace
}  // namespace pasta::report
