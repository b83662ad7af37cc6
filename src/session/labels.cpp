#include "session/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "session/rank_names.h"

namespace pasta::session {
namespace {

std::string file_name(const SourceInfo& info) {
  const std::string name = std::filesystem::path(info.path).filename().string();
  return name.empty() ? info.path : name;
}

std::string native_id(const Dictionary& dictionary, std::uint64_t number, StringId text) {
  return text ? std::string(dictionary.text(text)) : fmt::to_string(number);
}

void name_as_given(SourceInfo& source, const GivenName& given) {
  if (given.label.empty()) return;
  if (given.several) {
    const std::string own = !source.label.empty() ? source.label
                            : source.rank >= 0    ? fmt::format("rank {}", source.rank)
                                                  : file_name(source);
    source.label = fmt::format("{} {}", given.label, own);
    return;
  }
  source.label = given.label;
  if (source.rank < 0) source.rank = rank_in_label(given.label).value_or(kUnknownRank);
}

// Of each source, whether its rank is from its name. A label that the user chose may say that it is
// no rank at all.
std::vector<bool> take_ranks_from_names(std::span<SourceInfo> sources) {
  std::vector<std::string> paths;
  for (const SourceInfo& source : sources) paths.push_back(source.path);
  const std::vector<NamedRank> named = ranks_in_names(paths);
  std::vector<bool> taken(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    SourceInfo& source = sources[i];
    if (source.rank >= 0 || named[i].rank < 0 || !source.label.empty()) continue;
    source.rank = named[i].rank;
    if (source.world_size == 0) source.world_size = named[i].world_size;
    taken[i] = true;
  }
  return taken;
}

// Of a job, every rank must be known: a guess would be a wrong number.
Status check_ranks(std::span<const SourceInfo> sources, std::span<const GivenName> given) {
  constexpr std::size_t kNamesShown = 5;
  std::vector<std::string_view> unknown;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const SourceInfo& source = sources[i];
    // One without a path could not be read, and says so itself.
    const bool unsaid = source.rank < 0 && source.label.empty() && !source.path.empty();
    if (given[i].of_job && unsaid) unknown.push_back(source.path);
  }
  if (unknown.empty()) return {};
  const std::size_t shown = std::min(unknown.size(), kNamesShown);
  return fail(
      ErrorCode::kUsage,
      fmt::format("which rank {} is, neither the file nor its name says{}: {}{}; rename files so "
                  "that they do (rank3.json), or give a --label for each of the {} traces in their "
                  "order, such as --label \"rank 0,rank 1\"",
                  unknown.size() == 1 ? "this" : "each of these",
                  unknown.size() == 1 ? "" : fmt::format(" ({} files)", unknown.size()),
                  fmt::join(std::span(unknown).first(shown), ", "),
                  shown < unknown.size() ? ", ..." : "", sources.size()));
}

}  // namespace

Status label_sources(std::span<SourceInfo> sources, std::span<const GivenName> given) {
  for (std::size_t i = 0; i < given.size(); ++i) name_as_given(sources[i], given[i]);
  std::vector<bool> labelled;
  for (const SourceInfo& source : sources) labelled.push_back(!source.label.empty());
  const std::vector<bool> by_name =
      sources.size() > 1 ? take_ranks_from_names(sources) : std::vector<bool>(sources.size());
  for (std::size_t b = 0; b < sources.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (sources[a].path == sources[b].path) {
        return fail(ErrorCode::kUsage,
                    fmt::format("{} is given twice; give each file once", sources[a].path));
      }
      if (labelled[a] && labelled[b]) {
        if (sources[a].label != sources[b].label) continue;
        return fail(ErrorCode::kUsage,
                    fmt::format("{} and {} have the same label \"{}\"; give each its own --label",
                                sources[a].path, sources[b].path, sources[a].label));
      }
      if (sources[a].rank >= 0 && sources[a].rank == sources[b].rank) {
        return fail(
            ErrorCode::kUsage,
            fmt::format("{} and {} {} rank {}; if they are different runs, tell them apart "
                        "with one --label for each file",
                        sources[a].path, sources[b].path,
                        by_name[a] || by_name[b] ? "are by their names both" : "both say they are",
                        sources[a].rank));
      }
    }
  }
  if (sources.size() < 2) return {};
  PASTA_TRY(check_ranks(sources, given));
  std::map<std::string, int> uses;
  for (const SourceInfo& source : sources) ++uses[file_name(source)];
  for (SourceInfo& source : sources) {
    if (!source.label.empty()) continue;
    source.label = source.rank >= 0               ? fmt::format("rank {}", source.rank)
                   : uses[file_name(source)] == 1 ? file_name(source)
                                                  : source.path;
  }
  return {};
}

std::string process_name(const Dictionary& dictionary, ProcessId id) {
  if (!id) return "";
  const Process process = dictionary.process(id);
  const std::string native = native_id(dictionary, process.native_id, process.native_text);
  const std::string_view name = dictionary.text(process.name);
  return name.empty() || name == native ? native : fmt::format("{} ({})", name, native);
}

std::string lane_name(const Dictionary& dictionary, LaneId id) {
  const Lane lane = dictionary.lane(id);
  if (lane.name) return std::string(dictionary.text(lane.name));
  if (lane.native_text) return std::string(dictionary.text(lane.native_text));
  return fmt::format("{} {}", lane.type == LaneType::kQueue ? "stream" : "thread", lane.native_id);
}

std::string device_name(const Device& device, std::string_view prefix) {
  // A CPU has numbers of its own: it is never the device that a bare number is.
  if (prefix.empty() && device.type != DeviceType::kCpu) return fmt::to_string(device.ordinal);
  const char* word = device.type == DeviceType::kCpu           ? "cpu"
                     : device.type == DeviceType::kAccelerator ? "accelerator"
                                                               : "gpu";
  return fmt::format("{}{}{} {}", prefix, prefix.empty() ? "" : " ", word, device.ordinal);
}

void DeviceLabels::sources(std::span<const SourceInfo> infos,
                           std::span<const Quality* const> qualities) {
  infos_ = infos;
  qualities_ = qualities;
  seen_ = ~std::uint64_t{0};
}

std::string DeviceLabels::label(DeviceId id) {
  std::uint64_t seen = dictionary_->updates() + dictionary_->device_count();
  for (const Quality* quality : qualities_) seen += quality->lanes().size();
  if (seen != seen_) {
    seen_ = seen;
    name_all();
  }
  return id.value < labels_.size() ? labels_[id.value] : "";
}

void DeviceLabels::name_all() {
  struct Owner {
    std::size_t source;
    ProcessId process;
    auto operator<=>(const Owner&) const = default;
  };
  std::map<DeviceId, std::set<Owner>> owners;
  std::set<Owner> all;
  for (std::size_t source = 0; source < qualities_.size(); ++source) {
    for (const LaneId id : qualities_[source]->lanes()) {
      const Lane lane = dictionary_->lane(id);
      if (!lane.device) continue;
      owners[lane.device].insert({source, lane.process});
      all.insert({source, lane.process});
    }
  }

  labels_.assign(dictionary_->device_count(), {});
  std::set<std::string> used;
  for (std::uint32_t id = 1; id < labels_.size(); ++id) {
    const Device device = dictionary_->device({id});
    const auto& mine = owners[{id}];
    std::string prefix;
    // A device that several share belongs to none of them.
    if (all.size() > 1 && mine.size() == 1) {
      const Owner owner = *mine.begin();
      const Process process = dictionary_->process(owner.process);
      const bool alone = std::count_if(all.begin(), all.end(), [&](const Owner& other) {
                           return other.source == owner.source;
                         }) == 1;
      prefix = infos_[owner.source].label;
      if (!alone) {
        prefix += prefix.empty() ? "" : " ";
        prefix += process.rank >= 0
                      ? fmt::format("rank {}", process.rank)
                      : fmt::format("process {}", native_id(*dictionary_, process.native_id,
                                                            process.native_text));
      }
    }
    std::string label = device_name(device, prefix);
    if (!used.insert(label).second) {
      label += device.uuid ? fmt::format(" {}", dictionary_->text(device.uuid))
                           : fmt::format(" #{}", id);
      used.insert(label);
    }
    labels_[id] = std::move(label);
  }
}

}  // namespace pasta::session
