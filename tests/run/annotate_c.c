// pasta.h is C too.
#include "pasta/pasta.h"

int main(void) {
  uint64_t range = pasta_begin("range");
  pasta_mark("mark");
  pasta_step();
  pasta_end(range);
  return 0;
}
