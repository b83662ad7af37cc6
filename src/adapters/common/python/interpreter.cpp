#include "adapters/common/python/interpreter.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

namespace pasta::adapters::common::python {
namespace {

enum class Found : int { kNotTried, kTrying, kYes };
constinit std::atomic<Found> g_found = Found::kNotTried;
constinit Api g_api = {};

template <class Pointer>
bool find(const char* name, Pointer& to) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  std::memcpy(&to, &symbol, sizeof symbol);
  return symbol != nullptr;
}

bool find_all(Api& api) {
  if (!find("Py_IsFinalizing", api.is_ending)) find("_Py_IsFinalizing", api.is_ending);
  if (!find("PyThreadState_GetUnchecked", api.current)) {
    find("_PyThreadState_UncheckedGet", api.current);
  }
  if (!find("PyGC_Disable", api.stop_collector) || !find("PyGC_Enable", api.start_collector)) {
    api.stop_collector = nullptr;
    api.start_collector = nullptr;
  }
  return find("PyGILState_GetThisThreadState", api.this_thread) &&
         find("PyGILState_Check", api.has_lock) && find("PyGILState_Ensure", api.take_lock) &&
         find("PyGILState_Release", api.leave_lock) && find("Py_DecRef", api.release) &&
         find("PyThreadState_GetFrame", api.frame) && find("PyFrame_GetBack", api.caller) &&
         find("PyFrame_GetCode", api.code) && find("PyFrame_GetLineNumber", api.line) &&
         find("PyObject_GetAttrString", api.member) && find("PyUnicode_AsUTF8AndSize", api.text) &&
         find("PyUnicode_FromStringAndSize", api.make_text) &&
         find("PyLong_FromUnsignedLongLong", api.make_number) &&
         find("PyLong_AsUnsignedLongLongMask", api.number) && find("PyTuple_GetItem", api.item) &&
         find("PyDict_New", api.make_dictionary) && find("PyDict_SetItemString", api.set_item) &&
         find("PyCFunction_NewEx", api.make_function) && find("PyEval_GetBuiltins", api.builtins) &&
         find("Py_CompileString", api.compile) && find("PyEval_EvalCode", api.evaluate) &&
         find("Py_GetVersion", api.version) && find("PyUnicode_GetLength", api.length) &&
         find("PyUnicode_ReadChar", api.letter) && find("PyCode_Addr2Line", api.line_of) &&
         find("PyErr_Clear", api.clear_error) && find("PyErr_Occurred", api.error);
}

// As PyMethodDef, whose layout is part of Python's stable interface.
struct Method {
  const char* name;
  Object* (*call)(Object*, Object*);
  int flags;
  const char* help;
};
constexpr int kTakesTuple = 1;  // METH_VARARGS
constexpr int kFile = 257;      // Py_file_input
constexpr std::size_t kMostFunctions = 16;
// Of all programs, with the lock; Python keeps their addresses.
constinit Method g_methods[kMostFunctions] = {};
constinit std::size_t g_method_count = 0;

bool give(const Api& api, Object* names, const char* name, Object* value) {
  if (value == nullptr) return false;
  const bool given = api.set_item(names, name, value) == 0;
  api.release(value);
  return given;
}

}  // namespace

const Api* api() noexcept {
  Found found = g_found.load(std::memory_order_acquire);
  if (found == Found::kNotTried &&
      g_found.compare_exchange_strong(found, Found::kTrying, std::memory_order_acquire)) {
    found = find_all(g_api) ? Found::kYes : Found::kNotTried;  // it may be loaded later
    g_found.store(found, std::memory_order_release);
  }
  return found == Found::kYes ? &g_api : nullptr;
}

bool holds_lock(const Api& python) noexcept {
  ThreadState* thread = python.this_thread();
  return thread != nullptr && python.has_lock() != 0 &&
         (python.current == nullptr || python.current() == thread);
}

bool run(const char* program, const char* name, const Function* functions, std::size_t count,
         const Text* texts, std::size_t text_count) noexcept {
  const Api* python = api();
  if (python == nullptr || g_method_count + count > kMostFunctions) return false;
  Object* names = python->make_dictionary();
  bool fine = names != nullptr && python->set_item(names, "__builtins__", python->builtins()) == 0;
  for (std::size_t i = 0; fine && i < count; ++i) {
    Method& method = g_methods[g_method_count++];
    method = {functions[i].name, functions[i].call, kTakesTuple, nullptr};
    fine =
        give(*python, names, functions[i].name, python->make_function(&method, nullptr, nullptr));
  }
  for (std::size_t i = 0; fine && i < text_count; ++i) {
    fine = give(*python, names, texts[i].name,
                python->make_text(texts[i].value.data(),
                                  static_cast<std::ptrdiff_t>(texts[i].value.size())));
  }
  Object* code = fine ? python->compile(program, name, kFile) : nullptr;
  Object* result = code != nullptr ? python->evaluate(code, names, names) : nullptr;
  for (Object* object : {result, code, names}) {
    if (object != nullptr) python->release(object);
  }
  if (result == nullptr) python->clear_error();
  return result != nullptr;
}

}  // namespace pasta::adapters::common::python
