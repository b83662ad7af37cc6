// Which launches of a watched program are analysed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pasta/result.h"

namespace pasta::device {

// What the program that watches tells the one that is watched.
inline constexpr const char* kLaunchesVariable = "PASTA_LAUNCHES";

//   all
//   first:K            the first K of each kernel, shape and position in the iteration
//   iterations:1/N     those of whole iterations, one in N, from the first
//   REGEX              those of kernels whose name matches this extended regular expression, as the
//                      compiler made it or as people read it
class LaunchPolicy {
 public:
  enum class Sort : std::uint8_t { kAll, kFirst, kIterations, kName };

  LaunchPolicy() = default;  // all
  // kUsage for what is none of the above. An empty text is all.
  static Result<LaunchPolicy> parse(std::string_view text);

  [[nodiscard]] Sort sort() const { return sort_; }
  // K or N.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // Of iterations: whether this one is analysed; all are by the other policies.
  [[nodiscard]] bool takes_iteration(std::uint64_t iteration) const {
    return sort_ != Sort::kIterations || iteration % number_ == 0;
  }
  // To be asked once for each launch of a process, in their order. `iteration` is the number of
  // iterations that had ended before.
  bool take(std::string_view kernel, const std::uint32_t (&grid)[3],
            const std::uint32_t (&block)[3], std::uint64_t iteration);

  // Kinds of launches that `first` keeps apart; those beyond are not analysed.
  static constexpr std::size_t kMostKinds = std::size_t{1} << 16;

 private:
  struct Expression;
  bool matches(const std::string& kernel);

  Sort sort_ = Sort::kAll;
  std::uint64_t number_ = 0;
  std::shared_ptr<const Expression> expression_;  // shared only because a policy can be copied
  std::uint64_t iteration_ = 0, position_ = 0;    // of the last launch
  std::unordered_map<std::string, std::uint64_t> seen_;
  std::unordered_map<std::string, bool> matched_;  // by name
};

}  // namespace pasta::device
