#include "base/input.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/temp_file.h"

namespace pasta::base {
namespace {

namespace fs = std::filesystem;

class InputTest : public ::testing::Test {
 protected:
  InputTest() {
    std::string name = (fs::temp_directory_path() / "input_test_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~InputTest() override { fs::remove_all(folder_); }

  std::string put(std::string_view name, std::string_view bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  fs::path folder_;
};

struct Whole {
  std::string text = {};
  std::string head = {};
  std::string damage = {};
  std::string error = {};
};

// Reads by blocks of `block` bytes, to the end.
Whole read_whole(const std::string& path, std::size_t block = 1000) {
  auto input = open_input(path);
  if (!input) return {.error = input.error().message};
  Whole whole;
  whole.head.assign(reinterpret_cast<const char*>(input->head.data()), input->head.size());
  std::vector<std::byte> bytes(block);
  for (;;) {
    auto got = input->stream->read(bytes);
    if (!got) {
      whole.error = got.error().message;
      break;
    }
    whole.text.append(reinterpret_cast<const char*>(bytes.data()), *got);
    if (*got < block) break;
  }
  whole.damage = input->stream->damage();
  return whole;
}

std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
std::string gzipped(std::string_view text) { return deflated(text, 15 + 16); }

// Text that does not compress to nothing.
std::string long_text(std::size_t size) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < size) text += "event " + std::to_string(random()) + ";";
  text.resize(size);
  return text;
}

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

struct ZipMember {
  std::string name = {};
  std::string text = {};
  bool deflate = true;
  bool descriptor = false;  // sizes follow the data, as writers to pipes have it
  bool zip64 = false;
  int flags = 0;
  int method = -1;
  std::uint32_t checksum_error = 0;
};

std::string zip_of(const std::vector<ZipMember>& members, std::string_view comment = "") {
  std::string out;
  std::string directory;
  for (const ZipMember& m : members) {
    const std::string data = m.deflate ? deflated(m.text, -15) : m.text;
    const auto checksum = static_cast<std::uint32_t>(crc32_z(
                              0, reinterpret_cast<const Bytef*>(m.text.data()), m.text.size())) ^
                          m.checksum_error;
    const int method = m.method >= 0 ? m.method : m.deflate ? 8 : 0;
    const int flags = m.flags | (m.descriptor ? 8 : 0);
    const std::string sizes =
        little(checksum, 4) + little(data.size(), 4) + little(m.text.size(), 4);
    const std::uint64_t offset = out.size();
    const std::string local_extra = "\x55\x54" + little(3, 2) + "xyz";
    out += "PK\x03\x04" + little(20, 2) + little(flags, 2) + little(method, 2) + little(0, 4) +
           (m.descriptor ? std::string(12, '\0') : sizes) + little(m.name.size(), 2) +
           little(local_extra.size(), 2) + m.name + local_extra + data;
    if (m.descriptor) out += "PK\x07\x08" + sizes;
    const std::string extra = m.zip64 ? "\x55\x54" + little(1, 2) + "x" + little(1, 2) +
                                            little(24, 2) + little(m.text.size(), 8) +
                                            little(data.size(), 8) + little(offset, 8)
                                      : "";
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(flags, 2) +
                 little(method, 2) + little(0, 4) + little(checksum, 4) +
                 little(m.zip64 ? 0xffffffff : data.size(), 4) +
                 little(m.zip64 ? 0xffffffff : m.text.size(), 4) + little(m.name.size(), 2) +
                 little(extra.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(0, 4) + little(m.zip64 ? 0xffffffff : offset, 4) + m.name + extra;
  }
  const std::uint64_t at = out.size();
  out += directory;
  if (!members.empty() && members.front().zip64) {
    const std::uint64_t end64 = out.size();
    out += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) +
           little(0, 4) + little(members.size(), 8) + little(members.size(), 8) +
           little(directory.size(), 8) + little(at, 8);
    out += "PK\x06\x07" + little(0, 4) + little(end64, 8) + little(1, 4);
    return out + "PK\x05\x06" + little(0, 4) + little(0xffff, 2) + little(0xffff, 2) +
           little(0xffffffff, 4) + little(0xffffffff, 4) + little(0, 2);
  }
  return out + "PK\x05\x06" + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) +
         little(directory.size(), 4) + little(at, 4) + little(comment.size(), 2) +
         std::string(comment);
}

TEST_F(InputTest, PlainFile) {
  const std::string text = long_text(200000);
  for (const std::size_t block : {1, 65536, 65537, 1 << 20}) {
    const Whole whole = read_whole(put("a.json", text), block);
    EXPECT_EQ(whole.text, text);
    EXPECT_EQ(whole.head, text.substr(0, 65536));
    EXPECT_EQ(whole.damage, "");
  }
  EXPECT_EQ(read_whole(put("empty", "")).text, "");
}

TEST_F(InputTest, RefusesWhatCannotBeRead) {
  EXPECT_EQ(open_input("").error().code, ErrorCode::kBadInput);
  const std::string missing = (folder_ / "none.json").string();
  EXPECT_EQ(open_input(missing).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_input(missing).error().message,
            "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(open_input(folder_.string()).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(open_input(folder_.string()).error().message,
            "cannot read " + folder_.string() + ": Is a directory");
  EXPECT_EQ(open_input(put("z", "\x28\xb5\x2f\xfd....")).error().code, ErrorCode::kUnsupported);
}

TEST_F(InputTest, Gzip) {
  const std::string text = long_text(3000000);
  for (const std::size_t block : {std::size_t{777}, std::size_t{1} << 22}) {
    const Whole whole = read_whole(put("a", gzipped(text)), block);
    EXPECT_TRUE(whole.text == text);
    EXPECT_TRUE(whole.head == text.substr(0, 65536));
    EXPECT_EQ(whole.damage, "");
  }
}

TEST_F(InputTest, GzipOfSeveralMembersAndPadding) {
  const std::string text = long_text(100000);
  const std::string members = gzipped(text) + gzipped("") + gzipped("tail");
  EXPECT_EQ(read_whole(put("a", members)).text, text + "tail");
  const Whole padded = read_whole(put("b", members + std::string(1000000, '\0')));
  EXPECT_EQ(padded.text, text + "tail");
  EXPECT_EQ(padded.damage, "");
  const Whole spaced = read_whole(put("c", gzipped("a") + std::string(7, '\0') + gzipped("b")));
  EXPECT_EQ(spaced.text, "ab");
}

TEST_F(InputTest, GzipThatEndsEarly) {
  const std::string text = long_text(300000);
  const std::string whole = gzipped(text);
  for (const std::size_t size : {whole.size() / 2, whole.size() - 1, std::size_t{5}}) {
    const Whole cut = read_whole(put("a", whole.substr(0, size)));
    EXPECT_EQ(cut.damage, "gzip stream ends early");
    EXPECT_EQ(cut.error, "");
    EXPECT_TRUE(text.starts_with(cut.text));
    if (size > 1000) {
      EXPECT_GT(cut.text.size(), text.size() / 3);
    }
  }
}

TEST_F(InputTest, GzipThatIsCorrupt) {
  const std::string text = long_text(300000);
  std::string bytes = gzipped(text);
  bytes[bytes.size() / 2] ^= 0x55;
  bytes[bytes.size() / 2 + 1] ^= 0x2a;
  const Whole broken = read_whole(put("a", bytes));
  EXPECT_EQ(broken.error, "");
  EXPECT_NE(broken.damage.find("gzip stream is corrupt at compressed byte "), std::string::npos)
      << broken.damage;
  const Whole garbage = read_whole(put("b", gzipped("x") + "garbage"));
  EXPECT_EQ(garbage.text, "x");
  EXPECT_NE(garbage.damage.find("corrupt at compressed byte 21"), std::string::npos)
      << garbage.damage;
}

TEST_F(InputTest, GzipLeftInTheMiddle) {
  auto input = open_input(put("a", gzipped(long_text(8000000))));
  ASSERT_TRUE(input);
  std::vector<std::byte> some(10);
  EXPECT_EQ(*input->stream->read(some), 10u);
  input->stream.reset();  // ends its thread
}

TEST_F(InputTest, ZipOfOneFile) {
  const std::string text = long_text(1500000);
  const auto with = [&](ZipMember member) {
    member.name = "trace.json";
    member.text = text;
    return read_whole(put("a.zip", zip_of({member}, "a comment")));
  };
  for (const ZipMember& form : {ZipMember{}, ZipMember{.deflate = false},
                                ZipMember{.descriptor = true}, ZipMember{.zip64 = true}}) {
    const Whole whole = with(form);
    EXPECT_EQ(whole.error, "");
    EXPECT_TRUE(whole.text == text);
    EXPECT_EQ(whole.damage, "");
  }
  EXPECT_EQ(with({.checksum_error = 1}).damage, "zip member has a wrong checksum");
  EXPECT_NE(with({.flags = 1}).error.find("is encrypted"), std::string::npos);
  EXPECT_NE(with({.method = 12}).error.find("method 12"), std::string::npos);
}

TEST_F(InputTest, ZipOfAnotherNumberOfFiles) {
  EXPECT_NE(read_whole(put("a", zip_of({{.name = "a.json"}, {.name = "b.json"}})))
                .error.find("holds 2 files (a.json, b.json)"),
            std::string::npos);
  EXPECT_NE(read_whole(put("b", zip_of({}))).error.find("holds no file"), std::string::npos);
  const Whole whole = read_whole(put("c", zip_of({{.name = "folder/", .deflate = false},
                                                  {.name = "folder/a.json", .text = "[]"},
                                                  {.name = "__MACOSX/._a.json", .text = "x"}})));
  EXPECT_EQ(whole.text, "[]");
}

TEST_F(InputTest, ZipThatIsCut) {
  const std::string bytes = zip_of({{.name = "a.json", .text = long_text(5000)}});
  for (std::size_t size = 4; size < bytes.size(); size += 37) {
    EXPECT_NE(read_whole(put("a", bytes.substr(0, size))).error, "") << size;
  }
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::string mutant = bytes;
    mutant[at] = static_cast<char>(~mutant[at]);
    read_whole(put("b", mutant));  // ends, whatever it gives
  }
}

// Stands in for standard input while it lives.
class StandardInput {
 public:
  explicit StandardInput(int descriptor) : saved_(::dup(STDIN_FILENO)) {
    ::dup2(descriptor, STDIN_FILENO);
    ::close(descriptor);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST_F(InputTest, StandardInput) {
  const std::string text = long_text(20000);
  for (const std::string& bytes : {text, gzipped(text), zip_of({{.name = "a", .text = text}})}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const StandardInput replaced(ends[0]);
    ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
    const Whole whole = read_whole("-");
    EXPECT_EQ(whole.error, "");
    EXPECT_EQ(whole.text, text);
  }
}

TEST_F(InputTest, ProgressIsInBytesOfTheFile) {
  const std::string text = long_text(3000000);
  ReadProgress progress;
  std::uint64_t stored = 0;
  for (const std::string& bytes : {text, gzipped(text)}) {
    stored += bytes.size();
    auto input = open_input(put("a", bytes), &progress);
    ASSERT_TRUE(input);
    EXPECT_EQ(progress.total_bytes, stored);
    std::vector<std::byte> block(text.size() + 1);
    EXPECT_EQ(input->stream->read(block).value(), text.size());
    EXPECT_EQ(progress.read_bytes, stored);
  }
  EXPECT_TRUE(progress.total_known);
  ASSERT_TRUE(open_input("/dev/null", &progress));
  EXPECT_FALSE(progress.total_known);
}

TEST(TempFile, KeepsWhatIsAppended) {
  auto file = TempFile::create();
  ASSERT_TRUE(file);
  const std::string text = long_text(100000);
  const auto bytes = std::as_bytes(std::span(text));
  ASSERT_TRUE(file->append(bytes.first(40000)));
  ASSERT_TRUE(file->append(bytes.subspan(40000)));
  EXPECT_EQ(file->size(), text.size());
  std::string back(50000, '\0');
  ASSERT_TRUE(file->read_at(30000, std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, text.substr(30000, 50000));
  EXPECT_EQ(file->read_at(80000, std::as_writable_bytes(std::span(back))).error().code,
            ErrorCode::kIo);
  TempFile moved = std::move(*file);
  ASSERT_TRUE(moved.clear());
  EXPECT_EQ(moved.size(), 0u);
}

TEST(TempFile, SaysWhatTheSystemSays) {
  auto missing = TempFile::create("/nowhere/at/all");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_EQ(missing.error().message,
            "cannot make a temporary file in /nowhere/at/all: No such file or directory");
}

}  // namespace
}  // namespace pasta::base
