// What to do about accesses at one place of a program, with numbers.
#pragma once

#include <cstdint>
#include <string>

#include "device/access.h"

namespace pasta::tools {

// Of all launches of one kernel.
struct SiteSum {
  device::SiteCounts counts;
  std::uint64_t width = 0, degree = 0, crowd = 0;
  std::int64_t least_step = 0, most_step = 0;  // of strided warps
  std::uint64_t object = 0;                    // as in SiteRow
  void add(const device::SiteRow& row);
};

// How lanes follow one another: "unit", "strided by 512 B", of most of its warps.
std::string pattern_of(const SiteSum& site);
// How many times as much is moved as would hold what is asked for, or passed as without conflicts.
double excess_sectors(const SiteSum& site);
double excess_passes(const SiteSum& site);
// Lanes that wait one for the other at the address with the most of them, for each access.
double mean_crowd(const SiteSum& site);

// "swap the loops ...: 8.0 times fewer sectors".
std::string sector_advice(const SiteSum& site);
std::string conflict_advice(const SiteSum& site);
std::string contention_advice(const SiteSum& site);

}  // namespace pasta::tools
