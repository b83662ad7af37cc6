// Where in the program's Python something was made, as XLA writes it down for each of its
// operations: of several stacks of frames those that they have in common once,
//
//   - train.py:31:4[<module>]
//   -- model.py:12:8[forward] dot_general
//   -- model.py:13:8[forward] tanh
//
// and the beginning that all operations of a module have in common without the dashes. Needs no
// libstdc++: this is for the collector.
#pragma once

#include <cstddef>
#include <string_view>

namespace pasta::adapters::common::python {

// The place of that, in `to`: of each stack the frame that is nearest to the user, as of a
// running program, "model.py(12, 13): forward". What lies in several functions is told of as many
// as have room, "a.py(3): f + b.py(7): g". None where no frame is told.
std::string_view place_of_locations(std::string_view locations, char* to,
                                    std::size_t room) noexcept;

}  // namespace pasta::adapters::common::python
