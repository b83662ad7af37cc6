#include "tools/common/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pasta::tools {
namespace {

std::string process_label(const Dictionary& dictionary, ProcessId id) {
  const Process process = dictionary.process(id);
  if (process.rank != kUnknownRank) return fmt::format("rank {}", process.rank);
  const std::string_view name = dictionary.text(process.name);
  if (process.native_text) return std::string(dictionary.text(process.native_text));
  return name.empty() ? fmt::format("process {}", process.native_id)
                      : fmt::format("{} {}", name, process.native_id);
}

}  // namespace

std::vector<std::string> process_labels(const Dictionary& dictionary,
                                        std::span<const ProcessId> processes) {
  std::vector<std::string> labels;
  for (const ProcessId id : processes) labels.push_back(process_label(dictionary, id));
  const std::vector<std::string> short_ones = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string_view source = dictionary.text(dictionary.process(processes[i]).source);
    if (std::ranges::count(short_ones, short_ones[i]) < 2 || source.empty()) continue;
    labels[i] += fmt::format(" of {}", source.substr(source.find_last_of('/') + 1));
  }
  return labels;
}

std::string queue_label(const Dictionary& dictionary, LaneId queue) {
  const Lane lane = dictionary.lane(queue);
  if (lane.name) return std::string(dictionary.text(lane.name));
  if (lane.native_text) return std::string(dictionary.text(lane.native_text));
  return fmt::format("stream {}", lane.native_id);
}

Finding info(std::string id, std::string text) {
  return {.id = std::move(id),
          .level = Finding::Level::kInfo,
          .text = std::move(text),
          .of = {},
          .evidence = {},
          .advice = {}};
}

}  // namespace pasta::tools
