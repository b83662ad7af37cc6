#include "device/launch_policy.h"

#include <cxxabi.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>

namespace pasta::device {
namespace {

std::optional<std::uint64_t> positive(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

Error usage(std::string_view text, const std::string& why) {
  return {ErrorCode::kUsage,
          "--launches cannot be \"" + std::string(text) + "\": " + why +
              "; give all, first:K, iterations:1/N or a regular expression of kernels' names"};
}

}  // namespace

struct LaunchPolicy::Expression {
  Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() {
    if (compiled) regfree(&regex);
  }
  [[nodiscard]] bool finds(const char* text) const {
    return regexec(&regex, text, 0, nullptr, 0) == 0;
  }
  regex_t regex{};
  bool compiled = false;
};

Result<LaunchPolicy> LaunchPolicy::parse(std::string_view text) {
  constexpr std::string_view kFirst = "first:", kIterations = "iterations:", kOneIn = "1/";
  LaunchPolicy policy;
  if (text.empty() || text == "all") return policy;
  if (text.starts_with(kFirst)) {
    const auto number = positive(text.substr(kFirst.size()));
    if (!number) return tl::unexpected(usage(text, "after first: comes a number from 1 up"));
    policy.sort_ = Sort::kFirst;
    policy.number_ = *number;
    return policy;
  }
  if (text.starts_with(kIterations)) {
    const std::string_view share = text.substr(kIterations.size());
    const auto number =
        share.starts_with(kOneIn) ? positive(share.substr(kOneIn.size())) : std::nullopt;
    if (!number) return tl::unexpected(usage(text, "after iterations: comes 1/N, N from 1 up"));
    policy.sort_ = Sort::kIterations;
    policy.number_ = *number;
    return policy;
  }
  auto expression = std::make_shared<Expression>();
  if (const int error =
          regcomp(&expression->regex, std::string(text).c_str(), REG_EXTENDED | REG_NOSUB);
      error != 0) {
    std::array<char, 128> why{};
    regerror(error, &expression->regex, why.data(), why.size());
    return tl::unexpected(usage(text, why.data()));
  }
  expression->compiled = true;
  policy.sort_ = Sort::kName;
  policy.expression_ = std::move(expression);
  return policy;
}

bool LaunchPolicy::matches(const std::string& kernel) {
  const auto [known, is_new] = matched_.try_emplace(kernel, false);
  if (is_new) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(kernel.c_str(), nullptr, nullptr, &status), &std::free);
    known->second =
        expression_->finds(kernel.c_str()) || (status == 0 && expression_->finds(readable.get()));
  }
  return known->second;
}

bool LaunchPolicy::take(std::string_view kernel, const std::uint32_t (&grid)[3],
                        const std::uint32_t (&block)[3], std::uint64_t iteration) {
  asked_ = true;
  if (iteration != iteration_) position_ = 0;
  iteration_ = iteration;
  const std::uint64_t position = position_++;
  switch (sort_) {
    case Sort::kAll:
      return true;
    case Sort::kIterations:
      return iteration % number_ == 0;
    case Sort::kName:
      return matches(std::string(kernel));
    case Sort::kFirst:
      break;
  }
  std::string kind(kernel);
  // Without iterations there is no position in one.
  const std::uint64_t numbers[] = {
      grid[0], grid[1], grid[2], block[0], block[1], block[2], iteration == 0 ? 0 : position + 1};
  for (const std::uint64_t number : numbers) kind += '/' + std::to_string(number);
  if (seen_.size() >= kMostKinds && !seen_.contains(kind)) return false;
  std::uint64_t& count = seen_[kind];
  if (count >= number_) return false;
  ++count;
  took_ = true;
  return true;
}

bool LaunchPolicy::wants_iteration(std::uint64_t iteration) {
  if (sort_ == Sort::kIterations) return iteration % number_ == 0;
  if (sort_ != Sort::kFirst) return true;
  if (left_ > 0) {
    --left_;
    return left_ == 0;
  }
  // Of one in which nothing was launched, nothing follows.
  if (asked_) leave_out_ = took_ ? 0 : std::min(2 * leave_out_ + 1, kMostLeftOut);
  asked_ = took_ = false;
  left_ = leave_out_;
  return left_ == 0;
}

}  // namespace pasta::device
