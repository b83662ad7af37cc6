// The Python interpreter of the watched process, by its public functions, which are found by name
// at run time: of any version from 3.9 on, whether it is a program or a library. Needs no
// libstdc++: this is for the collector.
#pragma once

#include <cstddef>
#include <string_view>

namespace pasta::adapters::common::python {

struct Object;       // PyObject
struct ThreadState;  // PyThreadState

// Those of Python's functions that are called. All but the ones said need the interpreter's lock.
struct Api {
  // May be called without the lock.
  ThreadState* (*this_thread)();  // PyGILState_GetThisThreadState
  int (*has_lock)();              // PyGILState_Check
  int (*take_lock)();             // PyGILState_Ensure
  void (*leave_lock)(int);        // PyGILState_Release
  int (*is_ending)();             // Py_IsFinalizing; may be none
  ThreadState* (*current)();      // PyThreadState_GetUnchecked; may be none
  const char* (*version)();       // Py_GetVersion
  // Of an object that somebody keeps.
  std::ptrdiff_t (*length)(Object*);                 // PyUnicode_GetLength
  std::uint32_t (*letter)(Object*, std::ptrdiff_t);  // PyUnicode_ReadChar
  int (*line_of)(Object*, int);                      // PyCode_Addr2Line, of the code's byte

  void (*release)(Object*);                 // Py_DecRef
  Object* (*frame)(ThreadState*);           // PyThreadState_GetFrame: a new reference, or none
  Object* (*caller)(Object*);               // PyFrame_GetBack: a new reference, or none
  Object* (*code)(Object*);                 // PyFrame_GetCode: a new reference
  int (*line)(Object*);                     // PyFrame_GetLineNumber
  Object* (*member)(Object*, const char*);  // PyObject_GetAttrString
  const char* (*text)(Object*, std::ptrdiff_t*);      // PyUnicode_AsUTF8AndSize
  Object* (*make_text)(const char*, std::ptrdiff_t);  // PyUnicode_FromStringAndSize
  Object* (*make_number)(unsigned long long);         // PyLong_FromUnsignedLongLong
  unsigned long long (*number)(Object*);              // PyLong_AsUnsignedLongLongMask
  Object* (*item)(Object*, std::ptrdiff_t);           // PyTuple_GetItem: borrowed
  Object* (*make_dictionary)();                       // PyDict_New
  int (*set_item)(Object*, const char*, Object*);     // PyDict_SetItemString
  Object* (*make_function)(void*, Object*, Object*);  // PyCFunction_NewEx
  Object* (*builtins)();                              // PyEval_GetBuiltins: borrowed
  Object* (*compile)(const char*, const char*, int);  // Py_CompileString
  Object* (*evaluate)(Object*, Object*, Object*);     // PyEval_EvalCode
  void (*clear_error)();                              // PyErr_Clear
  Object* (*error)();                                 // PyErr_Occurred: borrowed
  int (*stop_collector)();                            // PyGC_Disable; may be none
  int (*start_collector)();                           // PyGC_Enable; may be none
};

// None when there is no interpreter yet, or one that is too old. Does not need the lock.
const Api* api() noexcept;
// Whether this thread runs Python and has the lock: has_lock() alone says yes to any, once there is
// a second interpreter.
bool holds_lock(const Api& python) noexcept;

// A function for Python: gets a tuple of its arguments.
struct Function {
  const char* name;
  Object* (*call)(Object* self, Object* arguments);
};

// Runs a program, which is called `name`, with these functions and texts among its global names.
// Whoever calls has the lock. False when it has failed; nothing is left of that.
struct Text {
  const char* name;
  std::string_view value;
};
bool run(const char* program, const char* name, const Function* functions, std::size_t count,
         const Text* texts, std::size_t text_count) noexcept;

}  // namespace pasta::adapters::common::python
