// JSON objects as the verbs print them: one to a line.
#pragma once

#include <string>
#include <string_view>

#include "base/json_writer.h"

namespace pasta::cli {

// Members of an object, separated by ", ".
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) {
    start(key);
    base::append_json_string(json_, value);
    return *this;
  }
  template <class Texts>
  JsonObject& texts(std::string_view key, const Texts& values) {
    start(key);
    json_ += '[';
    for (std::string_view separator = ""; const std::string_view value : values) {
      json_ += separator;
      base::append_json_string(json_, value);
      separator = ", ";
    }
    json_ += ']';
    return *this;
  }
  JsonObject& raw(std::string_view key, std::string_view value) {
    start(key);
    json_ += value;
    return *this;
  }
  [[nodiscard]] std::string done() const { return json_ + "}"; }

 private:
  void start(std::string_view key) {
    if (json_.size() > 1) json_ += ", ";
    base::append_json_string(json_, key);
    json_ += ": ";
  }
  std::string json_ = "{";
};

}  // namespace pasta::cli
