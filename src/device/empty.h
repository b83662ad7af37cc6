// A patch that does nothing: what calling patches costs by itself.
#pragma once

#include "device/launch.h"
#include "device/layout.h"

namespace pasta::device {

struct EmptyPatch {
  struct Settings {};
  struct State {};
  static State lay_out(const Launch&, const Settings&, Layout&) { return {}; }
  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State&, const Launch&, const AnyWarp&) {}
};

}  // namespace pasta::device
