#include "trace/payload.h"

namespace pasta::trace {

void clear_known_payload(Event& event) {
  switch (event.kind) {
    case Kind::kApi:
      event.api.status = 0;
      break;
    case Kind::kScope:
      event.range.sequence = 0;
      event.range.arguments = {};
      event.range.forward_thread = 0;
      break;
    case Kind::kFill:
      event.fill.bytes = event.fill.address = 0;
      event.fill.pattern = 0;
      break;
    case Kind::kSync:
      event.sync.on = {};
      event.sync.object = 0;
      break;
    case Kind::kCounter:
      event.counter.value = 0;
      event.counter.unit = {};
      event.counter.device = {};
      break;
    case Kind::kDevice:
      event.device.blob = {};
      event.device.format = {};
      event.device.launch = 0;
      break;
    case Kind::kGap:
      event.gap.lost = 0;
      break;
    case Kind::kKernel:
    case Kind::kCopy:
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kFault:
      event.raw[0] = event.raw[1] = event.raw[2] = 0;
      break;
  }
}

bool unused_payload_is_zero(const Event& event) {
  Event rest = event;
  clear_known_payload(rest);
  return (rest.raw[0] | rest.raw[1] | rest.raw[2]) == 0;
}

}  // namespace pasta::trace
