// Texts of this folder, for the watched process: made of extension.cpp, start.py and fallback.py
// when PASTA is built.
#pragma once

#include <string_view>

namespace pasta::adapters::torch {

extern const std::string_view kExtensionSource;
extern const std::string_view kFallbackSource;
extern const char* const kStartSource;

}  // namespace pasta::adapters::torch
