// Which bytes of an event's payload its kind uses.
#pragma once

#include "pasta/event.h"

namespace pasta::trace {

// Zeroes every field that the kind has, so that what remains is what should have been zero.
void clear_known_payload(Event& event);
// Whether all bytes that the kind does not use are zero.
bool unused_payload_is_zero(const Event& event);

}  // namespace pasta::trace
