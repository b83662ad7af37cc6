// Parts of a whole, of any two numbers: unknown or nothing where there is nothing to divide by.
#pragma once

#include "pasta/report.h"

namespace pasta::tools {

// For limits and texts: 0 where the divisor is nothing.
template <class A, class B>
double ratio(A dividend, B divisor) {
  return divisor > 0 ? static_cast<double>(dividend) / static_cast<double>(divisor) : 0;
}

// For cells of tables: unknown where the divisor is nothing.
template <class A, class B>
Cell ratio_cell(A dividend, B divisor) {
  return divisor > 0 ? Cell(ratio(dividend, divisor)) : Cell();
}

}  // namespace pasta::tools
