// Colours of a terminal, or none.
#pragma once

#include <string>
#include <string_view>

namespace pasta::report {

class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string bold(std::string_view text) const { return code("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return code("2", text); }
  [[nodiscard]] std::string red(std::string_view text) const { return code("1;31", text); }
  [[nodiscard]] std::string yellow(std::string_view text) const { return code("33", text); }
  [[nodiscard]] std::string blue(std::string_view text) const { return code("34", text); }

 private:
  [[nodiscard]] std::string code(std::string_view number, std::string_view text) const {
    if (!colour_) return std::string(text);
    return "\033[" + std::string(number) + "m" + std::string(text) + "\033[0m";
  }
  bool colour_;
};

}  // namespace pasta::report
