// How sources, processes, lanes and devices are called in tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/quality.h"
#include "pasta/result.h"
#include "session/quality.h"

namespace pasta::session {

// What the user said of the file that a source is from.
struct GivenName {
  std::string label;     // none when empty
  bool of_job = false;   // it is a rank of a job, so that its rank must be known
  bool several = false;  // the file has more sources, which keep what they are called in it
};

// Fills in ranks that only the names of several files tell, and labels that are empty: where there
// are several sources, "rank 3" or the file's name, or its path where names are equal. Refuses,
// naming them, sources that cannot be told apart: the same file twice, the same label twice, the
// same rank without labels; and those whose rank is needed and not known. `given`: of each source,
// or empty.
Status label_sources(std::span<SourceInfo> sources, std::span<const GivenName> given = {});

std::string process_name(const Dictionary& dictionary, ProcessId id);
std::string lane_name(const Dictionary& dictionary, LaneId id);
// "3" without a prefix, else "PREFIX gpu 3".
std::string device_name(const Device& device, std::string_view prefix);

// Labels of devices. Which prefix a device needs depends on which devices are seen, so a label may
// grow while a trace is read; at its end all tools get the same.
class DeviceLabels {
 public:
  explicit DeviceLabels(const Dictionary& dictionary) : dictionary_(&dictionary) {}
  // Both outlive this.
  void sources(std::span<const SourceInfo> infos, std::span<const Quality* const> qualities);
  std::string label(DeviceId id);

 private:
  void name_all();

  const Dictionary* dictionary_;
  std::span<const SourceInfo> infos_;
  std::span<const Quality* const> qualities_;
  std::uint64_t seen_ = ~std::uint64_t{0};  // state of the tables that labels_ was made from
  std::vector<std::string> labels_;         // by device id
};

}  // namespace pasta::session
