// Where in the program's Python calls of vendors' libraries are made, as ranges around them: of
// launches, copies, fills and waits that no operator of PyTorch surrounds, which has its own. Needs
// no libstdc++: this is for the collector.
#pragma once

#include <cstdint>

#include "adapters/common/python/places.h"
#include "trace/spool_writer.h"

namespace pasta::adapters::common::python {

// Opens a range for each of the places, on this thread; gives the outermost of those opened, 0
// where the thread is in that place already, or what is open says more than these places.
std::uint64_t open_places(trace::SpoolPush& push, const Places& places,
                          std::uint32_t stack = 0) noexcept;

// When the process loads a library: the first time that a thread has Python's lock then, frames are
// looked at, if the run wants to know of calls.
void begin_call_places() noexcept;
// From now on operators tell where PyTorch's calls come from, and what is called in one has its
// place.
void operators_have_places() noexcept;

// Whether the places of calls are to be asked for now. Any thread; changes when Python is loaded.
bool wants_call_places() noexcept;

// The thread's place becomes a range around the call that it is about to make. Any thread; waits
// for nobody, and makes no object of Python unless the thread has its lock. 0: it has no place, or
// none is wanted.
std::uint64_t open_call_place() noexcept;
// What open_call_place() has given on this thread; 0 is nothing.
void close_call_place(std::uint64_t place) noexcept;

// While one of these exists, calls of this thread lie in the place that it is in.
class CallPlace {
 public:
  CallPlace() noexcept : place_(wants_call_places() ? open_call_place() : 0) {}
  ~CallPlace() { close_call_place(place_); }
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;

 private:
  std::uint64_t place_;
};

}  // namespace pasta::adapters::common::python
