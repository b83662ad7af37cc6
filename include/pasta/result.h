// Errors are values. No function of PASTA throws across a public border, prints or aborts.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace pasta {

enum class ErrorCode : std::uint8_t {
  kUsage,        // the caller asked for something that does not exist or does not fit together
  kNotFound,     // a file or a named thing is not there
  kUnsupported,  // recognised, but cannot be done here
  kBadInput,     // the input is not what it should be
  kIo,           // the operating system refused
  kVendor,       // a vendor's library refused
};

// Why an operation failed, in words a user can act on: what failed, on what, and what to do.
struct Error {
  ErrorCode code;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace pasta

// Evaluates `expression` (a Result or Status); on failure returns its error from the calling
// function.
#define PASTA_TRY(expression)                                                     \
  do {                                                                            \
    auto pasta_try_result = (expression);                                         \
    if (!pasta_try_result.has_value())                                            \
      return tl::unexpected<::pasta::Error>(std::move(pasta_try_result).error()); \
  } while (false)
