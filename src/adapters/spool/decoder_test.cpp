#include "adapters/spool/decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "trace/spool.h"

namespace pasta::adapters::spool {
namespace {

using namespace trace::spool;

template <class Cell>
Event cell_of(const Cell& cell) {
  Event event{};
  std::memcpy(&event, &cell, sizeof event);
  return event;
}

std::vector<Event> result_of_patch(std::uint32_t number, char letter) {
  StringCell head{};
  head.kind = CellKind::kBlob;
  head.id = number;
  head.bytes = 3;
  Event bytes{}, event{};
  std::memset(&bytes, letter, 3);
  event.kind = Kind::kDevice;
  event.lane = {1};
  event.device.blob = {number};
  return {cell_of(head), bytes, event};
}

// A file of one lane.
class DecoderTest : public testing::Test {
 protected:
  DecoderTest() {
    lane.kind = CellKind::kLane;
    lane.id = 1;
  }
  void decode(const std::vector<Event>& cells) { decoder.decode(cells, events, blobs, problems); }

  Dictionary dictionary;
  Origins origins{dictionary};
  Decoder decoder{dictionary, origins, 0, dictionary.process({.native_id = 7}), 0, 0, "0-1.lane"};
  LaneCell lane{};
  std::vector<Event> events;
  Blobs blobs;
  Problems problems;
};

// Of a file whose beginning has been taken away, the first is not the first.
TEST_F(DecoderTest, ResultsOfPatchesMayBeginWithAnyNumberAndAscend) {
  std::vector<Event> cells = {cell_of(lane)};
  for (const auto& [number, letter] : {std::pair(17u, 'a'), {20u, 'b'}, {19u, 'c'}, {21u, 'd'}}) {
    const auto more = result_of_patch(number, letter);
    cells.insert(cells.end(), more.begin(), more.end());
  }
  decode(cells);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(blobs.kept.at(events[0].device.blob.value), "aaa");
  EXPECT_EQ(blobs.kept.at(events[1].device.blob.value), "bbb");
  EXPECT_EQ(blobs.kept.at(events[2].device.blob.value), "ddd");
  // Its head and its bytes; the event then has none.
  ASSERT_EQ(problems.list().size(), 1u);
  EXPECT_EQ(problems.list()[0].reason, Reason::kRecordSkipped);
}

// Its head and some of its bytes had been read when it was taken away with its event.
TEST_F(DecoderTest, AResultThatIsTakenAwayWhileItIsReadIsOver) {
  StringCell cut{};
  cut.kind = CellKind::kBlob;
  cut.id = 1;
  cut.bytes = 3 * kCellBytes;
  decode({cell_of(lane), cell_of(cut), Event{}});
  decoder.jump();
  decode(result_of_patch(2, 'a'));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(blobs.kept.at(events[0].device.blob.value), "aaa");
  EXPECT_TRUE(problems.list().empty());
}

}  // namespace
}  // namespace pasta::adapters::spool
