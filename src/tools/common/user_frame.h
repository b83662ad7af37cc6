// Whose code a Python frame of a call path is.
#pragma once

#include <string_view>

namespace pasta::tools {

// Whether a frame, as "file.py(12): function", is of the program itself, as far as its name tells:
// not of a package, of Python's own library, or built in.
inline bool is_user_frame(std::string_view name) {
  constexpr std::string_view kNotTheirs[] = {
      "torch/",         "site-packages/", "dist-packages/", "lib/python3",     "<built-in",
      "<frozen",        "nn.Module: ",    "torch\\",        "<eval_with_key>", "importlib",
      "_contextlib.py", "<method",        "<slot",          "<attribute"};
  if (name.empty() || name.find('(') == std::string_view::npos) return false;
  for (const std::string_view part : kNotTheirs) {
    const std::size_t at = name.find(part);
    // Beginnings of paths count only there, but for the folders that packages lie in.
    if (at == 0 || (at != std::string_view::npos && part.find("packages/") != part.npos) ||
        (at != std::string_view::npos && part == "lib/python3")) {
      return false;
    }
  }
  return true;
}

}  // namespace pasta::tools
