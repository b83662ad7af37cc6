// Where in the program's Python a thread is. Needs no libstdc++: this is for the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::adapters::common::python {

inline constexpr std::uint32_t kMostPlaces = 48;  // more of a deep stack are not told
inline constexpr std::size_t kLongestPlace = 1024;
// What run() calls a program of ours, whose frames are no places.
inline constexpr char kOwnProgram[] = "<pastaprof>";

// Places, outermost first, each "file.py(12): function".
class Places {
 public:
  // Waits for nobody, where begin_places() has said so. Else it takes the interpreter's lock where
  // the thread does not have it, and gives it back: then it must not be called while a lock is held
  // that another thread may wait for inside of Python. None on a thread that runs no Python.
  // `all`: the whole stack; else only the innermost place of the user's own, or where nothing is,
  // of a package, or else of anything.
  void find(bool all) noexcept;
  // The same, waiting for nobody in any case: where that takes a lock that the thread does not
  // have, there are none.
  void find_at_once(bool all) noexcept;
  // Of code that a compiler has written: the modules of the program that the innermost place lies
  // in, as add_origin() was told.
  [[nodiscard]] std::string_view modules() const { return modules_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // All of them are of PyTorch, what it has written, or Python's library.
  [[nodiscard]] bool are_of_library() const { return is_library_; }
  [[nodiscard]] std::string_view operator[](std::uint32_t i) const {
    return {places_[i].begin, places_[i].size};
  }

 private:
  void find(bool all, bool at_once) noexcept;
  template <class Stack>
  void find_in(Stack& frames, bool all) noexcept;
  std::uint32_t count_ = 0;
  bool is_library_ = false;
  std::string_view modules_;
  struct Place {
    const char* begin;
    std::size_t size;
  };
  Place places_[kMostPlaces + 1];  // `count_` of them: to clear all takes longer than a push
  char text_[6 * kLongestPlace];  // of what could not be kept: all of a stack, if it is like others
};

// With the interpreter's lock, on a thread that runs Python: false where Python's frames cannot be
// read without it.
bool begin_places() noexcept;
// What it has said; false before.
bool reads_places() noexcept;
// When the interpreter is about to end: from now on there are none, if they are read so.
void end_places() noexcept;

// A folder whose places are nobody's own: of PyTorch, and of what its compiler writes. At most
// four, with the interpreter's lock.
void add_library(std::string_view folder) noexcept;
// Code that a compiler has written: these lines of `file`, the last included, were made of `place`,
// which is the innermost of whoever is in them. `modules`: names of the modules around it, the
// outermost first, each ended by a line feed. Before the file is run.
void add_origin(std::string_view file, int first_line, int last_line, std::string_view place,
                std::string_view modules) noexcept;
// Whose code that is by the name of its file, the nearer to the user the larger.
int nearness(std::string_view file) noexcept;
// How a file is called: below the folder that the process began in, else below where packages are.
std::string_view short_path(std::string_view path) noexcept;

}  // namespace pasta::adapters::common::python
