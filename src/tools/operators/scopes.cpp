#include "tools/operators/scopes.h"

namespace pasta::tools::operators {

std::span<const Scopes> all_scopes() {
  static constexpr Scopes kScopes[] = {
      {"operator", "operator", "operators", "Operators by the device time they launch",
       "(outside operators)", ScopeDomain::kOperator},
      {"module", "module", "modules", "Modules by the device time they launch", "(outside modules)",
       ScopeDomain::kModule},
      {"python", "Python function", "Python functions",
       "Python functions by the device time they launch", "(outside Python functions)",
       ScopeDomain::kPython},
      {"annotation", "annotation", "annotations", "Annotations by the device time they launch",
       "(outside annotations)", ScopeDomain::kAnnotation},
      {"all", "range", "ranges", "Ranges of the host by the device time they launch",
       "(outside ranges)", ScopeDomain::kUnknown},
  };
  return kScopes;
}

}  // namespace pasta::tools::operators
