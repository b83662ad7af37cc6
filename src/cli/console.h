// The terminal: the only place of PASTA that prints.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/verb.h"
#include "pasta/report.h"
#include "pasta/result.h"
#include "report/render.h"
#include "trace/output_file.h"

namespace pasta::cli {

// A result, to standard output.
Status print(std::string_view text);
// Anything else, to standard error.
void say(std::string_view line);

int exit_code(const Error& error);

// The candidate that `word` is most likely a slip of, or "".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// Where an answer goes and how it looks there. Made before anything is read, so that what is wrong
// with it is said at once.
class Destination {
 public:
  // What "-" is.
  enum class Stream : unsigned char { kOutput, kError };
  static Result<Destination> open(const Settings& settings, Stream stream = Stream::kOutput);
  // Once.
  Status write(const Document& document);

 private:
  std::string format_;
  Stream stream_ = Stream::kOutput;
  bool page_ = false;
  report::TextOptions text_;
  std::optional<trace::OutputFile> file_;  // none: standard output
};

}  // namespace pasta::cli
