#include "tools/common/idle_cause.h"

#include <algorithm>
#include <array>

namespace pasta::tools {
namespace {

constexpr std::array<IdleCauseInfo, kIdleCauseCount> kCauses = {{
    {"launch_bound", "the host did not issue work fast enough",
     "give the device more work per launch: larger batches, fused or compiled operators, or a "
     "captured graph of the part that repeats; the tool launches shows what launching costs"},
    {"sync_bound", "the host sat in calls that wait for the device, and issued nothing meanwhile",
     "remove what makes the host wait (reading a value back in every step, blocking copies, "
     "explicit synchronisation), so that work is queued ahead"},
    {"input_bound", "the host waited for its next input",
     "load data in more worker processes, prefetch further ahead, or make loading cheaper"},
    {"host_busy", "the host did something that issues no work",
     "see in the table of gaps what the host was in; make it shorter, or move it off the thread "
     "that issues work"},
    {"work_queued",
     "launched work was already waiting, so it was not the host that held the device back",
     "look at what that work waited for: events of other streams, other devices, or the device's "
     "own step from one kernel to the next, which fewer and longer kernels pay less often"},
    {"no_host_thread", "the trace does not say why: it holds nothing of the host",
     "record the host too (the profiler's CPU activities) to see the cause"},
    {"unknown", "the trace does not say why: nothing that was recorded covers those times",
     "record more of the host (operators, call stacks, annotations) to see the cause"},
}};

// Ranges in which a loop takes the next batch from its loader. Not in the list: what the loader's
// own workers do, on threads and in processes of theirs.
struct InputName {
  std::string_view begin, part, end;
};
constexpr InputName kInputs[] = {
    {"enumerate(DataLoader)#", "", ""},                  // PyTorch's own annotation
    {"enumerate(DataPipe)#", "", ""},                    //
    {"", "DataLoaderIter.__next__", ""},                 //
    {"", "torch/utils/data/dataloader.py", "__next__"},  // its Python frame
    {"", "train_dataloader_next", ""},                   // Lightning
    {"IteratorGetNext", "", ""},                         // TensorFlow
    {"Iterator::Root", "", ""},                          //
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

const IdleCauseInfo& idle_cause_info(IdleCause cause) {
  return kCauses[static_cast<std::size_t>(cause)];
}

bool awaits_input(std::string_view range) {
  return std::any_of(std::begin(kInputs), std::end(kInputs), [&](const InputName& name) {
    return range.starts_with(name.begin) && contains(range, name.part) && range.ends_with(name.end);
  });
}

}  // namespace pasta::tools
