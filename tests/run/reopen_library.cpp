// What run_reopen opens and closes: annotates, and has the memory of a new library each time.
#include "pasta/pasta.h"

namespace {
int calls = 0;
}  // namespace

extern "C" __attribute__((visibility("default"))) int said() {
  pasta::annotate around("around");
  pasta_mark("said");
  return calls++;
}
