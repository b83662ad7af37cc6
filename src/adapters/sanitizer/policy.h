// Which launches are analysed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pasta/result.h"

namespace pasta::adapters::sanitizer {

class Policy {
 public:
  // "all", "first:K" of each kernel with each shape, "iterations:1/N", or an extended regular
  // expression that the name of a kernel matches, as the compiler made it or for people. kUsage
  // when it is none of them.
  static Result<Policy> parse(std::string_view text);
  Policy();
  Policy(Policy&&) noexcept;
  Policy& operator=(Policy&&) noexcept;
  ~Policy();

  struct Shape {
    std::uint32_t grid[3], block[3];
    auto operator<=>(const Shape&) const = default;
  };
  // The launch that is about to be; `iteration` of the program is under way, from 0.
  bool takes(std::string_view kernel, const Shape& shape, std::uint64_t iteration);

 private:
  struct Regex;
  enum class Kind : std::uint8_t { kAll, kFirst, kIterations, kRegex };
  Kind kind_ = Kind::kAll;
  std::uint64_t number_ = 0;  // K or N
  std::unique_ptr<Regex> regex_;
  std::map<std::pair<std::string, Shape>, std::uint64_t, std::less<>> seen_;
  std::map<std::string, bool, std::less<>> matched_;
};

}  // namespace pasta::adapters::sanitizer
