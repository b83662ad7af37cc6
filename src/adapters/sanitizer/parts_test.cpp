#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "adapters/sanitizer/cubin.h"
#include "adapters/sanitizer/objects.h"
#include "adapters/sanitizer/opcodes.h"
#include "adapters/sanitizer/patches.h"
#include "adapters/sanitizer/pool.h"
#include "adapters/sanitizer/tensor_maps.h"
#include "adapters/sanitizer/testing.h"
#include "device/reducers.h"

namespace pasta::adapters::sanitizer {
namespace {

using testing::cubin;

auto unseen(const std::string& code) { return find_unseen(std::as_bytes(std::span(code))); }

TEST(SanitizerOpcodes, WhatNoPatchSees) {
  // As ptxas 13.0 writes them for compute capability 9.0, 10.0 and 12.0.
  constexpr std::uint64_t kLoadTile = 0x00000008060075b4, kLoadMulticast = 0x00000008060073b4,
                          kStoreTile = 0x00000006040073b5, kReduceTile = 0x00000004080073b6,
                          kPrefetchTile = 0x00000004060075b8, kBulkCopy = 0x00000004080073ba,
                          kTexture = 0x2000040006077f60, kFetch = 0x000004ff05057f66,
                          kSurface = 0x7000060008097f99, kLoad = 0x0000000402007981,
                          kStore = 0x0000000702007986, kReduce = 0x00000009040079a6,
                          kReduceSurface = 0x7000040002007f9f,
                          kReduceMulticast = 0x00000000020779a5;
  const auto found = unseen(cubin(
      "gemm", {kLoad, kLoadTile, kLoadMulticast, kStore, kStoreTile, kReduceTile, kPrefetchTile,
               kBulkCopy, kTexture, kFetch, kSurface, kReduceSurface, kReduceMulticast, kReduce}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("gemm").global,
            (device::UnseenRow{.tensor_loads = 2, .tensor_stores = 2, .textures = 4}));
  EXPECT_EQ(found.at("gemm").other, (device::UnseenTooRow{.multicast = 1}));
  EXPECT_TRUE(unseen(cubin("plain", {kLoad, kStore, kReduce, kBulkCopy})).empty());
}

TEST(SanitizerOpcodes, ConstantMemoryOfTheProgram) {
  // c[0x3] by LDC, ULDC, LDCU of compute capability 10.0, and as an operand on 8.0.
  const auto found = unseen(cubin(
      "table", {0x00c0000000077b82, 0x00c0030000067ab9, 0x00c00180ff0677ac, 0x00c0030000057621}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("table"), (Unseen{.global = {}, .other = {.constants = 4}}));
  // What is given to a launch (c[0x0]), what the compiler has put there (c[0x2], c[0x4]); a barrier
  // with the number 3, and a load and a store.
  EXPECT_TRUE(unseen(cubin("plain", {0x0000840000057b82, 0x0080080000047ab9, 0x008000000a047a28,
                                     0x01000400ff047b82, 0x00c0000000007b1d, 0x0000000402007981,
                                     0x0000000702007986}))
                  .empty());
}

TEST(SanitizerOpcodes, ProductsOutOfSharedMemory) {
  // HGMMA, QGMMA, IGMMA, BGMMA of 9.0; UTCHMMA and UTCCP of 10.0. Of MMAs of registers none.
  const auto found = unseen(cubin(
      "product", {0x00000000041879f0, 0x00000000041c79f3, 0x00000000041879f1, 0x00000000041879f2,
                  0x00ff0412120075ea, 0x000000120a0079e7, 0x000000080404723c}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("product"), (Unseen{.global = {}, .other = {.products = 6}}));
}

TEST(SanitizerOpcodes, FillsOfSharedMemory) {
  // st.bulk of 10.0: UMEMSETS.
  const auto found = unseen(cubin("fill", {0x000000ff060073cb}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("fill"), (Unseen{.global = {}, .other = {.fills = 1}}));
}

TEST(SanitizerOpcodes, WhatIsNoProgramOrCut) {
  const std::string whole = cubin("gemm", {0x5b4, 0x5b4});
  for (std::size_t size = 0; size < whole.size(); ++size) unseen(whole.substr(0, size));
  EXPECT_TRUE(unseen("\x7f"
                     "ELF")
                  .empty());
  std::string wrong = whole;
  for (std::size_t at = 0; at < sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr); ++at) {
    for (const char byte : {'\x7f', '\xff'}) {
      wrong[at] = byte;
      unseen(wrong);
    }
    wrong[at] = whole[at];
  }
  EXPECT_EQ(unseen(whole).at("gemm").global.tensor_loads, 2u);
}

TEST(SanitizerCubin, VariablesInGlobalMemory) {
  const std::string whole = testing::cubin_with_variable("counter");
  const auto variables = [](const std::string& code) {
    const auto program = Cubin::read(std::as_bytes(std::span(code)));
    std::vector<std::string> names;
    if (program) {
      for (const std::string_view name : program->global_variables()) names.emplace_back(name);
    }
    return names;
  };
  EXPECT_EQ(variables(whole), std::vector<std::string>{"counter"});
  EXPECT_TRUE(variables(cubin("gemm", {0x5b4})).empty());
  EXPECT_TRUE(variables(testing::cubin_with_variable("__unnamed_7", 15)).empty()) << "a text";
  EXPECT_TRUE(variables(testing::cubin_with_variable("$str$2", 15)).empty());
  EXPECT_TRUE(variables(testing::cubin_with_variable("begin", 1)).empty()) << "of no state";
  EXPECT_EQ(variables(testing::cubin_with_variable("half", 2)).size(), 1u);
  for (std::size_t size = 0; size < whole.size(); ++size) variables(whole.substr(0, size));
}

TEST(SanitizerObjects, VariablesOfModules) {
  Objects objects;
  objects.allocated(0x1000, 0x100, MemoryKind::kDevice);
  objects.found_variable(0x2000, 8, "counter");
  // Where the library has told of the whole.
  objects.found_variable(0x1080, 8, "inside");
  objects.found_variable(0xff8, 16, "into");
  const auto told = objects.snapshot();
  ASSERT_EQ(told->objects.size(), 2u);
  EXPECT_EQ(told->objects[1].address, 0x2000u);
  EXPECT_EQ(told->kinds[1], MemoryKind::kModule);
  EXPECT_EQ(told->names, (std::map<std::uint64_t, std::string>{{2, "counter"}}));
  objects.freed(0x2000);
  EXPECT_EQ(objects.snapshot()->names.size(), 0u);
}

TEST(SanitizerApi, TheStreamThatGoesInBothVersions) {
  int context = 0, stream = 0, handle = 0;
  const StreamData old{&context, &stream, &handle};
  const GreenStreamData since_13_1{&context, nullptr, &stream, &handle};
  const GreenStreamData green{&context, &context, &stream, &handle};
  EXPECT_FALSE(is_since_13_1(&old));
  EXPECT_TRUE(is_since_13_1(&since_13_1));
  EXPECT_EQ(handle_of(&old, false), &handle);
  EXPECT_EQ(handle_of(&green, true), &handle);
}

TEST(SanitizerObjects, PiecesWithNames) {
  Objects objects;
  using Pieces = std::vector<std::array<std::uint64_t, 3>>;  // address, bytes, number
  const auto pieces = [&objects] {
    Pieces found;
    for (const auto& object : objects.snapshot()->objects) {
      found.push_back({object.address, object.bytes, object.number});
    }
    return found;
  };
  objects.allocated(0x1000, 0x1000, MemoryKind::kManaged);
  objects.allocated(0x3000, 0x100, MemoryKind::kDevice);
  const Pieces whole = {{0x1000, 0x1000, 1}, {0x3000, 0x100, 2}};
  objects.tagged(0x1000, 0x1000);
  objects.tagged(0x1104, 0x100);  // an access may begin before it
  objects.tagged(0x1f00, 0x101);  // goes on behind the end
  objects.tagged(0x2000, 0x10);   // is in none
  objects.tagged(0x0ff0, 0x10);
  objects.tagged(0x1100, 0);
  EXPECT_EQ(pieces(), whole);
  objects.tagged(0x1100, 0x101);
  EXPECT_EQ(
      pieces(),
      (Pieces{{0x1000, 0x100, 1}, {0x1100, 0x110, 3}, {0x1210, 0xdf0, 4}, {0x3000, 0x100, 2}}));
  EXPECT_EQ(objects.snapshot()->kinds, (std::vector{MemoryKind::kManaged, MemoryKind::kManaged,
                                                    MemoryKind::kManaged, MemoryKind::kDevice}));
  const auto before = objects.snapshot();
  objects.tagged(0x1100, 0x101);
  EXPECT_EQ(objects.snapshot(), before) << "again";
  // A piece of a piece; the beginning, and the end, which is no multiple.
  objects.tagged(0x1120, 0x10);
  objects.tagged(0x1000, 0x20);
  objects.tagged(0x1ff0, 0x10);
  EXPECT_EQ(pieces().size(), 8u);
  objects.freed(0x1100);
  EXPECT_EQ(pieces().size(), 7u) << "of what nobody has told, as little as is said";
  objects.freed(0x1000);
  EXPECT_EQ(pieces(), (Pieces{{0x3000, 0x100, 2}}));
  objects.tagged(0x3010, 0x10);
  objects.allocated(0x30f0, 0x20, MemoryKind::kDevice);
  EXPECT_EQ(pieces().size(), 1u) << "another is in its place";
}

TEST(SanitizerObjects, WhatIsLive) {
  Objects objects;
  objects.allocated(0x2000, 0x100, MemoryKind::kDevice);
  objects.allocated(0x1000, 0x100, MemoryKind::kManaged);
  const auto before = objects.snapshot();
  EXPECT_EQ(objects.snapshot(), before) << "nothing has changed";
  ASSERT_EQ(before->objects.size(), 2u);
  EXPECT_EQ(before->objects[0].address, 0x1000u);
  EXPECT_EQ(before->objects[0].number, 2u);
  EXPECT_EQ(before->kinds[0], MemoryKind::kManaged);
  // What is freed twice, or in the middle, was no allocation.
  objects.freed(0x1080);
  EXPECT_EQ(objects.snapshot(), before);
  // A larger one in the place of both, of one from its middle on, and one that ends in another.
  objects.allocated(0x0f00, 0x1200, MemoryKind::kDevice);
  EXPECT_EQ(objects.snapshot()->objects.size(), 1u);
  objects.allocated(0x2000, 0x10, MemoryKind::kDevice);
  EXPECT_EQ(objects.snapshot()->objects.size(), 1u);
  EXPECT_EQ(objects.snapshot()->objects[0].number, 4u);
  objects.freed(0x2000);
  EXPECT_TRUE(objects.snapshot()->objects.empty());
  EXPECT_EQ(before->objects.size(), 2u) << "who holds it goes on with it";
  objects.allocated(~std::uint64_t{0} - 10, 100, MemoryKind::kDevice);
  objects.allocated(1, 0, MemoryKind::kDevice);
  EXPECT_EQ(objects.snapshot()->objects.size(), 1u);
}

TEST(SanitizerObjects, TooManyLeaveTheSmallestOut) {
  Objects objects;
  for (std::uint64_t i = 0; i < Objects::kMost + 10; ++i) {
    objects.allocated(i << 20, i < 10 ? 8 : 16, MemoryKind::kDevice);
  }
  const auto snapshot = objects.snapshot();
  EXPECT_EQ(snapshot->objects.size(), Objects::kMost);
  EXPECT_EQ(snapshot->left_out, 10u);
  EXPECT_EQ(snapshot->objects[0].bytes, 16u);
}

TEST(SanitizerTensorMaps, AreFoundAmongArguments) {
  TensorMaps maps;
  std::array<std::byte, TensorMaps::kBytes> first{}, second{};
  first[5] = std::byte{1};
  second[127] = std::byte{2};
  std::vector<std::byte> arguments(8, std::byte{7});
  EXPECT_TRUE(maps.in(arguments).empty());
  maps.encoded(first, 0x1000);
  maps.encoded(second, 0x2000);
  arguments.resize(64);
  for (const auto* map : {&second, &first, &second}) {
    arguments.insert(arguments.end(), map->begin(), map->end());
  }
  EXPECT_EQ(maps.in(arguments), (std::vector<std::uint64_t>{0x2000, 0x1000}));
  arguments.resize(64 + 127);  // cut
  EXPECT_TRUE(maps.in(arguments).empty());
  maps.encoded(second, 0x3000);
  arguments.resize(64 + 128, std::byte{2});
  EXPECT_EQ(maps.in(arguments), std::vector<std::uint64_t>{0x3000}) << "encoded once more";
}

TEST(SanitizerPool, PiecesDoNotMeet) {
  Pool pool(4096);
  EXPECT_EQ(pool.take(4097), std::nullopt);
  const auto a = pool.take(1), b = pool.take(512), c = pool.take(3072);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 256u);
  EXPECT_EQ(c, 768u);
  EXPECT_EQ(pool.take(257), std::nullopt);
  EXPECT_EQ(pool.take(256), 3840u);
  pool.give(*b);
  EXPECT_EQ(pool.take(513), std::nullopt);
  pool.give(*a);
  EXPECT_EQ(pool.take(768), 0u) << "holes side by side are one";
  pool.give(*c);
  pool.give(3840);
  pool.give(0);
  EXPECT_EQ(pool.take(4096), 0u);
}

TEST(SanitizerPatches, BlocksHoldWhatTheySay) {
  const std::vector<device::MemoryObject> objects = {{0x10000, 4096, 1}, {0x20000, 64, 2}};
  const device::Launch launch;
  for (const PatchKind& patch : patches()) {
    const auto of = patch.of(objects);
    of->put_table(0x7e0000000000);
    const Block small = of->block(launch, 0, 0x7f0000000000);
    EXPECT_EQ(of->block(launch, 0, 0).bytes, small.bytes) << patch.name;
    EXPECT_LE(small.image.size(), small.bytes) << patch.name;
    EXPECT_LE(small.result_begin, small.result_end);
    EXPECT_LE(small.result_end, small.bytes);
    EXPECT_LT(small.bytes, std::size_t{4} << 20) << "many launches find room beside each other";
    EXPECT_EQ(find_patch(patch.name), &patch);
    if (!patch.has_results()) continue;
    std::vector<std::byte> back(small.result_end - small.result_begin);
    // Behind the image are zeros.
    const std::size_t begin = std::min(small.result_begin, small.image.size());
    std::memcpy(back.data(), small.image.data() + begin,
                std::min(back.size(), small.image.size() - begin));
    EXPECT_EQ(of->result(launch, back, {}).dropped, 0u) << "of a launch that accessed nothing";
  }
  EXPECT_EQ(find_patch("none"), nullptr);
}

TEST(SanitizerPatches, LaunchesShareWhatTellsOfObjects) {
  std::vector<device::MemoryObject> objects;
  for (std::uint64_t i = 0; i < 64; ++i) {
    objects.push_back({(std::uint64_t{0x7f} << 40) + (i << 30), std::uint64_t{1} << 30, i + 1});
  }
  for (const char* name : {"hotpages", "reuse"}) {
    const auto of = find_patch(name)->of(objects);
    const std::span<const std::byte> table = of->table();
    const std::vector<std::byte> before(table.begin(), table.end());
    of->put_table(0x7e0000000000);
    EXPECT_TRUE(std::ranges::equal(of->table(), before)) << "the same wherever it lies";
    EXPECT_EQ(std::memcmp(table.data(), objects.data(), sizeof objects[0] * objects.size()), 0);
    EXPECT_GT(table.size(), 32768 * sizeof(device::Pieces::Piece));
    EXPECT_LT(of->block({}, 0, 0x7f0000000000).image.size(), 1024u) << "for each launch";
  }
}

}  // namespace
}  // namespace pasta::adapters::sanitizer
