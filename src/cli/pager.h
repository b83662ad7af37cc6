// Long text on a terminal.
#pragma once

#include <string_view>

namespace pasta::cli {

// Shows `text` through the user's pager and waits for its end: $PASTA_PAGER, else $PAGER, else
// less. False when nothing was shown: the pager is set to nothing, or cannot start.
bool page(std::string_view text);

}  // namespace pasta::cli
