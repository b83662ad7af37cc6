// What calls into runtimes and drivers mean for a device, told from their names.
#pragma once

#include <string_view>

namespace pasta::tools {

struct ApiRole {
  bool issues = false;      // gives the device work
  bool copies = false;      // that work is a copy; an "asynchronous" one may wait all the same
  bool graph = false;       // that work is all that a graph holds
  bool waits = false;       // returns only when device work is done; a blocking copy issues, too
  bool asks = false;        // asks whether device work is done, and returns at once
  bool may_launch = false;  // device work can name it as its launch; wider than `issues`

  // One call launches one piece of work: a graph holds many, and a copy may be cut into several.
  [[nodiscard]] bool launches_one() const { return issues && !copies && !graph; }
};

// Takes about a microsecond: ask once per distinct name.
ApiRole api_role(std::string_view name);

}  // namespace pasta::tools
