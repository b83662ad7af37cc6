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
  LaunchPolicy() = default;  // all
  // kUsage for what is none of the above. An empty text is all.
  static Result<LaunchPolicy> parse(std::string_view text);

  // To be asked each time that an iteration has ended, with how many have: whether any launch of
  // the next is to be taken. Of `first`, iterations are left out that hold nothing new, as far as
  // can be told: after one that did not, one, then two, four, and so on.
  bool wants_iteration(std::uint64_t iteration);
  // One in so many iterations.
  [[nodiscard]] bool is_of_iterations() const { return sort_ == Sort::kIterations; }
  // Whether wants_iteration() may ever answer no.
  [[nodiscard]] bool leaves_out_iterations() const {
    return sort_ == Sort::kIterations || sort_ == Sort::kFirst;
  }
  // To be asked once for each launch of a process, in their order. `iteration` is the number of
  // iterations that had ended before.
  bool take(std::string_view kernel, const std::uint32_t (&grid)[3],
            const std::uint32_t (&block)[3], std::uint64_t iteration);

  // Kinds of launches that `first` keeps apart; those beyond are not analysed.
  static constexpr std::size_t kMostKinds = std::size_t{1} << 16;
  // Iterations that `first` leaves out between two that it looks at.
  static constexpr std::uint64_t kMostLeftOut = 255;

 private:
  enum class Sort : std::uint8_t { kAll, kFirst, kIterations, kName };
  struct Expression;
  bool matches(const std::string& kernel);

  Sort sort_ = Sort::kAll;
  std::uint64_t number_ = 0;
  std::shared_ptr<const Expression> expression_;  // shared only because a policy can be copied
  std::uint64_t iteration_ = 0, position_ = 0;    // of the last launch
  bool asked_ = false, took_ = false;             // in this iteration
  std::uint64_t leave_out_ = 0, left_ = 0;        // iterations: at a time, and still
  std::unordered_map<std::string, std::uint64_t> seen_;
  std::unordered_map<std::string, bool> matched_;  // by name
};

}  // namespace pasta::device
