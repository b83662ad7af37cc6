// Names of kernels as people read them. For show and for grouping only: a kernel's identity is the
// name its source gave.
#pragma once

#include <string>
#include <string_view>

namespace pasta::tools {

// A mangled C++ name in source form ("_Z3addPf" becomes "add(float*)"); any other text unchanged.
std::string demangle(std::string_view name);

// A demangled function name without return type, template arguments and parameters:
// "void at::native::reduce<512>(int)" becomes "at::native::reduce". Text that is not such a name
// comes back whole: nothing is cut by guessing.
std::string qualified_name(std::string_view demangled);

// The last part of qualified_name(): "reduce".
std::string short_name(std::string_view demangled);

}  // namespace pasta::tools
