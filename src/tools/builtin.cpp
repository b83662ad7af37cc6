// Every tool of the program: adding one touches its own folder and this list.
#include "pasta/tool.h"
#include "tools/access/access.h"
#include "tools/diagnose/diagnose.h"
#include "tools/divergence/divergence.h"
#include "tools/hotpages/hotpages.h"
#include "tools/idle/idle.h"
#include "tools/iterations/iterations.h"
#include "tools/kernels/kernels.h"
#include "tools/launches/launches.h"
#include "tools/layers/layers.h"
#include "tools/memory/memory.h"
#include "tools/operators/operators.h"
#include "tools/overlap/overlap.h"
#include "tools/patterns/patterns.h"
#include "tools/processes/processes.h"
#include "tools/reuse/reuse.h"
#include "tools/samples/samples.h"
#include "tools/summary/summary.h"

namespace pasta {

std::span<const ToolEntry> builtin_tools() {
  static const ToolEntry kTools[] = {
      tools::kSummary,  tools::kKernels,  tools::kOperators,  tools::kOverlap,    tools::kIdle,
      tools::kLaunches, tools::kMemory,   tools::kIterations, tools::kPatterns,   tools::kProcesses,
      tools::kAccess,   tools::kHotpages, tools::kReuse,      tools::kDivergence, tools::kDiagnose,
      tools::kLayers,   tools::kSamples,
  };
  return kTools;
}

}  // namespace pasta
