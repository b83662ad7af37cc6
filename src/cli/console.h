// The terminal: the only place of PASTA that prints.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/verb.h"
#include "pasta/report.h"
#include "pasta/result.h"
#include "report/render.h"

namespace pasta::cli {

// A result, to standard output.
Status print(std::string_view text);
// Anything else, to standard error.
void say(std::string_view line);

int exit_code(const Error& error);

// The candidate that `word` is most likely a slip of, or "".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// Width, colour and the like of text: as the settings say, else as the terminal is.
Result<report::TextOptions> text_options_of(const Settings& settings);
// The document in the format and to the place that the settings ask for.
Status deliver(const Document& document, const Settings& settings,
               const report::TextOptions& text_options);
// To a file or standard output, as `settings.output` and `settings.force` say.
Status deliver(std::string_view text, const Settings& settings);

}  // namespace pasta::cli
