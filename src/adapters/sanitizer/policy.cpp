#include "adapters/sanitizer/policy.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <regex.h>

#include <charconv>
#include <cstdlib>

namespace pasta::adapters::sanitizer {

struct Policy::Regex {
  Regex() = default;
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex() {
    if (is_compiled) regfree(&compiled);
  }
  regex_t compiled{};
  bool is_compiled = true;
  [[nodiscard]] bool matches(const char* text) const {
    return regexec(&compiled, text, 0, nullptr, 0) == 0;
  }
};

Policy::Policy() = default;
Policy::Policy(Policy&&) noexcept = default;
Policy& Policy::operator=(Policy&&) noexcept = default;
Policy::~Policy() = default;

Result<Policy> Policy::parse(std::string_view text) {
  Policy policy;
  if (text == "all") return policy;
  const auto number_after = [&](std::string_view word, Kind kind) {
    if (!text.starts_with(word)) return false;
    const std::string_view digits = text.substr(word.size());
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), policy.number_);
    policy.kind_ = kind;
    return error == std::errc{} && end == digits.data() + digits.size() && policy.number_ > 0;
  };
  if (number_after("first:", Kind::kFirst) || number_after("iterations:1/", Kind::kIterations)) {
    return policy;
  }
  if (text.empty() || text.starts_with("first:") || text.starts_with("iterations:")) {
    return fail(ErrorCode::kUsage,
                fmt::format("--launches cannot be \"{}\"; give all, first:K, iterations:1/N, or a "
                            "regular expression for names of kernels",
                            text));
  }
  policy.kind_ = Kind::kRegex;
  auto regex = std::make_unique<Regex>();
  if (const int error =
          regcomp(&regex->compiled, std::string(text).c_str(), REG_EXTENDED | REG_NOSUB);
      error != 0) {
    char why[128] = {};
    regerror(error, &regex->compiled, why, sizeof why);
    regex->is_compiled = false;
    return fail(ErrorCode::kUsage,
                fmt::format("--launches \"{}\" is no extended regular expression: {}", text, why));
  }
  policy.regex_ = std::move(regex);
  return policy;
}

bool Policy::takes(std::string_view kernel, const Shape& shape, std::uint64_t iteration) {
  switch (kind_) {
    case Kind::kAll:
      return true;
    case Kind::kIterations:
      return iteration % number_ == 0;
    case Kind::kFirst:
      return seen_[{std::string(kernel), shape}]++ < number_;
    case Kind::kRegex:
      break;
  }
  const auto known = matched_.find(kernel);
  if (known != matched_.end()) return known->second;
  std::string name(kernel);
  bool matches = regex_->matches(name.c_str());
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  matches = matches || (status == 0 && regex_->matches(readable.get()));
  matched_.emplace(std::move(name), matches);
  return matches;
}

}  // namespace pasta::adapters::sanitizer
