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
  void add(const SiteSum& other);
  void add(const device::SiteRow& row);
  bool operator==(const SiteSum&) const = default;
};

// How lanes follow one another: "unit", "strided by 512 B", of most of its warps.
std::string pattern_of(const SiteSum& site);
// How many times as much is moved as would hold what is asked for, or passed as without conflicts.
double excess_sectors(const SiteSum& site);
double excess_passes(const SiteSum& site);
// Lanes that wait one for the other at the address with the most of them, for each access.
double mean_crowd(const SiteSum& site);
// Of the bytes that are moved, those that any lane asks for. 1 where none are moved.
double used_share(const SiteSum& site);

// Why more is moved than is asked for.
enum class Fault : std::uint8_t {
  kNone,
  kMisaligned,  // lane after lane, but from where no sector begins
  kBroadcast,   // all lanes want the same few bytes
  kFew,         // so do the few lanes that take part
  kGaps,        // lanes between those that take part stay out
  kStructures,  // lanes are a little apart: a field of structures, or a narrow row
  kRows,        // or far: a column of rows
  kGather,
  kMixed,  // of several
};
Fault fault_of(const SiteSum& site);

// "swap the loops ...: 8.0 times fewer sectors". `times`: how often a warp of the kernel passes the
// place, on average; 0 where that is not known.
std::string sector_advice(const SiteSum& site, double times);
std::string conflict_advice(const SiteSum& site);
// `of_group`: atomic operations of a group for each address; 0 where these are few, or not known.
std::string contention_advice(const SiteSum& site, double of_group);

}  // namespace pasta::tools
