// Which rank of a job a process is, as the launchers of jobs tell what they start. Needs no
// libstdc++: this header is for the collector too.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace pasta::trace {

struct JobRank {
  std::int32_t rank = -1;  // -1 = unknown
  std::int32_t world_size = 0;
};

inline JobRank job_rank_of_environment() noexcept {
  struct Launcher {
    const char* rank;
    const char* world_size;
  };
  // In the order in which one may run inside the other.
  static constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                            {"PMI_RANK", "PMI_SIZE"},
                                            {"RANK", "WORLD_SIZE"},
                                            {"SLURM_PROCID", "SLURM_NTASKS"}};
  const auto number_of = [](const char* name) -> std::int32_t {
    const char* text = std::getenv(name);
    if (text == nullptr) return -1;
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    const bool whole = end != text && *end == '\0' && number >= 0 && number <= 0x7fffffff;
    return whole ? static_cast<std::int32_t>(number) : -1;
  };
  for (const Launcher& launcher : kLaunchers) {
    const JobRank known{number_of(launcher.rank), number_of(launcher.world_size)};
    if (known.rank >= 0 && known.world_size > known.rank) return known;
  }
  return {};
}

}  // namespace pasta::trace
