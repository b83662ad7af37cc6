// Exact quantiles of launch delays, which are negative where clocks disagree.
#pragma once

#include <cstdint>
#include <vector>

#include "stats/quantiles.h"

namespace pasta::tools::launches {

class Delays {
 public:
  void add(std::int64_t delay_ns);
  [[nodiscard]] std::int64_t count() const;
  // Of at least one value:
  [[nodiscard]] std::int64_t min() const;
  [[nodiscard]] std::int64_t max() const;
  [[nodiscard]] std::int64_t mean() const;  // rounded to the nearest
  // Nearest rank, as stats::Quantiles. Reorders its own storage.
  std::int64_t quantile(double q);

 private:
  std::vector<std::int64_t> negative_;  // few
  stats::Quantiles rest_;
  double sum_ = 0;
};

}  // namespace pasta::tools::launches
