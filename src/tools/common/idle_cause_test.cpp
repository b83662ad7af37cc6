#include "tools/common/idle_cause.h"

#include <gtest/gtest.h>

#include <set>

namespace pasta::tools {
namespace {

TEST(IdleCause, EachHasAnIdAndAnAdvice) {
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < kIdleCauseCount; ++i) {
    const IdleCauseInfo& info = idle_cause_info(static_cast<IdleCause>(i));
    ids.insert(info.id);
    EXPECT_FALSE(info.advice.empty()) << info.id;
  }
  EXPECT_EQ(ids.size(), kIdleCauseCount);
  EXPECT_EQ(idle_cause_info(IdleCause::kInputBound).id, "input_bound");
  EXPECT_EQ(idle_cause_info(IdleCause::kUnknown).id, "unknown");
}

TEST(IdleCause, InputIsWaitedForByTheLoopNotByWorkers) {
  for (const char* name : {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                           "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                           "torch/utils/data/dataloader.py(628): __next__", "IteratorGetNext"}) {
    EXPECT_TRUE(awaits_input(name)) << name;
  }
  for (const char* name : {"torch/utils/data/_utils/worker.py(120): _worker_loop",
                           "torch/utils/data/dataloader.py(410): __iter__", "aten::copy_",
                           "Optimizer.step#SGD.step"}) {
    EXPECT_FALSE(awaits_input(name)) << name;
  }
}

}  // namespace
}  // namespace pasta::tools
