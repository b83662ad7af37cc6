#include "base/csv_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/input.h"

namespace pasta::base {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Rows as "line: field|field", problems as "line! text", comments as "# text".
std::string read(std::string_view text, std::size_t window = 16, std::size_t max_row = 64,
                 std::string_view comment = {}) {
  std::string seen;
  const auto stream = memory_stream(bytes_of(text));
  CsvReader::Options options;
  options.window_bytes = window;
  options.max_row_bytes = max_row;
  options.comment = comment;
  options.on_comment = [&](std::string_view line) { seen += "# " + std::string(line) + "\n"; };
  options.on_problem = [&](const CsvProblem& problem) {
    seen += std::to_string(problem.line) + "! " + std::string(problem.text) + "\n";
  };
  CsvReader reader(*stream, std::move(options));
  for (;;) {
    const auto more = reader.next();
    if (!more) return seen + more.error().message;
    if (!*more) return seen;
    seen += std::to_string(reader.line()) + ":";
    for (const std::string_view field : reader.fields()) {
      seen += " <" + std::string(field) + ">";
    }
    seen += "\n";
  }
}

TEST(CsvReader, ReadsWhatRfc4180Allows) {
  EXPECT_EQ(read("a,b\n1,2\n"), "1: <a> <b>\n2: <1> <2>\n");
  EXPECT_EQ(read("a,b\r\n1,2\r\n"), "1: <a> <b>\n2: <1> <2>\n");
  EXPECT_EQ(read("a,b\n1,2"), "1: <a> <b>\n2: <1> <2>\n") << "no line end behind the last row";
  EXPECT_EQ(read("\"x,y\",\"say \"\"hi\"\"\"\n"), "1: <x,y> <say \"hi\">\n");
  EXPECT_EQ(read("\"two\nlines\",1\nnext,2\n"), "1: <two\nlines> <1>\n3: <next> <2>\n");
  EXPECT_EQ(read(",,\n"), "1: <> <> <>\n");
  EXPECT_EQ(read("\"\",\"\"\"\"\n"), "1: <> <\">\n");
  EXPECT_EQ(read("a,"), "1: <a> <>\n");
}

TEST(CsvReader, PassesOverByteOrderMarkAndBlankLines) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a,b\n\n\r\n1,2\n\n"),
            "1: <a> <b>\n4: <1> <2>\n");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("\n\n"), "");
}

TEST(CsvReader, CostsALineWhereAQuoteIsNeverClosed) {
  EXPECT_EQ(read("a,\"b\n1,2\n3,4\n"), "1! a quote that is never closed\n2: <1> <2>\n3: <3> <4>\n");
  // Also far from the end, where the rest does not fit into a row.
  EXPECT_EQ(read("a,\"b\n1,2\n" + std::string(100, 'x') + "\n3,4\n"),
            "1! a quote that is never closed\n2: <1> <2>\n3! a line that is too long\n"
            "4: <3> <4>\n");
  EXPECT_EQ(read("1,2\n3,\"x"), "1: <1> <2>\n2! the file ends inside a quoted field\n");
}

TEST(CsvReader, KeepsTextBehindAQuoteAndZeroBytes) {
  EXPECT_EQ(read("\"a\"b,c\n"), "1! text behind a closing quote\n1: <\"a\"b> <c>\n");
  EXPECT_EQ(read(std::string_view("a\0b,c\n", 6)),
            std::string("1! a zero byte\n1: <a") + '\0' + "b> <c>\n");
  EXPECT_EQ(read("a\"b,c\n"), "1: <a\"b> <c>\n");
}

TEST(CsvReader, SkipsALineThatIsTooLong) {
  EXPECT_EQ(read(std::string(200, 'x') + "\n1,2\n"), "1! a line that is too long\n2: <1> <2>\n");
  EXPECT_EQ(read("\"" + std::string(200, 'x') + "\"\n1,2\n"),
            "1! a line that is too long\n2: <1> <2>\n");
}

TEST(CsvReader, GivesCommentsApart) {
  EXPECT_EQ(read("==1== a, \"b\na,b\n==1== c\r\n1,2\n=\n", 16, 64, "=="),
            "# ==1== a, \"b\n2: <a> <b>\n# ==1== c\n4: <1> <2>\n5: <=>\n");
}

TEST(CsvReader, SeesTheSameWhateverItsWindow) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i) + ",\"name, " + std::string(static_cast<std::size_t>(i % 37), 'n') +
            "\"\"q\"\"\"," + std::to_string(i * 12345) + (i % 2 == 0 ? "\r\n" : "\n");
  }
  const std::string expected = read(text, 4096, 4096);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 300);
  for (std::size_t window = 16; window < 200; window += 7) {
    EXPECT_EQ(read(text, window, 4096), expected) << window;
  }
}

// A stream that a cut gzip file gives.
class Damaged final : public ByteStream {
 public:
  explicit Damaged(std::string_view text) : inner_(memory_stream(bytes_of(text))) {}
  Result<std::size_t> read(std::span<std::byte> to) override { return inner_->read(to); }
  [[nodiscard]] std::string_view damage() const override { return "gzip stream ends early"; }

 private:
  std::unique_ptr<ByteStream> inner_;
};

TEST(CsvReader, LeavesOutTheLastRowOfACutFile) {
  Damaged stream("1,2\n3,45");  // 456, perhaps
  std::vector<std::string> problems;
  CsvReader::Options options;
  options.on_problem = [&](const CsvProblem& problem) { problems.emplace_back(problem.text); };
  CsvReader reader(stream, std::move(options));
  ASSERT_TRUE(*reader.next());
  EXPECT_EQ(reader.fields()[1], "2");
  EXPECT_FALSE(*reader.next());
  EXPECT_FALSE(*reader.next());
  EXPECT_EQ(problems, std::vector<std::string>{"gzip stream ends early"});
}

TEST(CsvHead, GivesTheFirstRows) {
  const auto rows = csv_head(bytes_of("==1== x\n\"a,b\",c\n1,2\n"), 1, "==");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"a,b", "c"}));
}

}  // namespace
}  // namespace pasta::base
