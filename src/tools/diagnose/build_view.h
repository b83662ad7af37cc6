// From what was observed of a device, and its iterations, to a View.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pasta/dictionary.h"
#include "tools/common/iterations.h"
#include "tools/diagnose/observed.h"
#include "tools/diagnose/view.h"

namespace pasta::tools::diagnose {

// The mean steady iteration in equal bins.
struct Timeline {
  std::vector<double> busy;  // part of each bin, mean over the iterations
  // By class of kernel, and for copies and fills in the last row: device time of a bin's length.
  std::vector<std::vector<double>> classes;
  std::vector<std::vector<float>> each;  // busy, by iteration
};

struct Diagnosis {
  View view;
  Timeline timeline;
};

// `run` may be null: the whole span of the device is looked at then.
Diagnosis diagnose_device(const DeviceWork& device, const IterationRun* run, Observed& observed,
                          std::string label, std::size_t bins, const Dictionary& dictionary);

}  // namespace pasta::tools::diagnose
