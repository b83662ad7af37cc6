#include "report/shape.h"

#include <gtest/gtest.h>

#include "report/sample_document.h"

namespace pasta::report {
namespace {

Document document_of(std::vector<std::vector<Cell>> rows) {
  Document document;
  document.reports = {{"t", "T", {Table{"t", "", {{"name"}, {"calls", Unit::kCount}}, rows}}}};
  return document;
}

std::string names_of(const Document& document) {
  std::string names;
  for (const auto& row : std::get<Table>(document.reports[0].parts[0]).rows) {
    names += std::get<std::string>(row[0]);
  }
  return names;
}

std::string sorted(std::string_view sort) {
  Document document = document_of({{"b", integer(2)},
                                   {"u", {}},
                                   {"a", 2.5},
                                   {"n", std::nan("")},
                                   {"c", integer(9)},
                                   {"B", integer(2)}});
  const auto shape = Shape::make(sort, "");
  return shape && shape->apply(document) ? names_of(document) : "refused";
}

TEST(Shape, SortsNumbersDownAndWordsUpAndTheUnknownLast) {
  EXPECT_EQ(sorted("calls"), "cabBun");
  EXPECT_EQ(sorted("calls:desc"), "cabBun");
  EXPECT_EQ(sorted("calls:asc"), "bBacun");
  EXPECT_EQ(sorted("name"), "Babcnu");
  EXPECT_EQ(sorted("name:desc"), "uncbaB");
  EXPECT_EQ(sorted(""), "buancB");
}

TEST(Shape, SortsWholeNumbersThatDoublesCannotTellApart) {
  Document document =
      document_of({{"a", integer(9007199254740992)}, {"b", integer(9007199254740993)}});
  ASSERT_TRUE(Shape::make("calls", "")->apply(document));
  EXPECT_EQ(names_of(document), "ba");
}

TEST(Shape, RefusesWhatItCannotSortBy) {
  EXPECT_EQ(sorted("callz"), "refused");
  for (const char* sort : {"calls:up", "calls:", ":asc", ":"}) {
    EXPECT_EQ(Shape::make(sort, "").error().code, ErrorCode::kUsage) << sort;
  }
  Document document = sample_document();
  const Status status = Shape::make("name", "")->apply(document);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  EXPECT_EQ(status.error().message,
            "--sort name: no table has such a column; there are device, busy, copy_bytes, kernels, "
            "share");
}

TEST(Shape, KeepsRowsWhoseNameMatchesAndSaysSo) {
  Document document = document_of({{"gemm", integer(1)}, {"Xgemm<1>", integer(2)}, {"relu", {}}});
  document.trace.filter = "from 1 ms";
  ASSERT_TRUE(Shape::make("", "gemm|^tan")->apply(document));
  EXPECT_EQ(names_of(document), "gemmXgemm<1>");
  EXPECT_EQ(document.trace.filter,
            "from 1 ms; rows whose name matches gemm|^tan (2 of 3; shares are of all)");
}

TEST(Shape, LeavesTablesWithoutNamesAlone) {
  Document document = sample_document();
  document.reports.push_back(document_of({{"gemm", {}}}).reports[0]);
  const Document before = document;
  ASSERT_TRUE(Shape::make("", "none like this")->apply(document));
  EXPECT_EQ(document.reports[0], before.reports[0]);
  EXPECT_TRUE(std::get<Table>(document.reports[2].parts[0]).rows.empty());
  Document nameless = sample_document();
  EXPECT_EQ(Shape::make("", "x")->apply(nameless).error().code, ErrorCode::kUsage);
}

TEST(Shape, RefusesWhatIsNoExpression) {
  for (const char* filter : {"(", "[a", "a{2", "*(", "\\d+"}) {
    EXPECT_EQ(Shape::make("", filter).error().code, ErrorCode::kUsage) << filter;
  }
}

TEST(Shape, StandsNamesOfAnyLength) {
  Document document = document_of({{std::string(3'000'000, 'a'), {}}});
  ASSERT_TRUE(Shape::make("", "a.*b")->apply(document));
  EXPECT_EQ(names_of(document), "");
}

}  // namespace
}  // namespace pasta::report
