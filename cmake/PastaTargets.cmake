# How a folder of src/ becomes a target. The link lists in src/*/CMakeLists.txt are the table of
# floors in docs/design.md; tests/layers_test.py holds the #includes to the same table.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(PASTA_CCACHE ccache)
if(PASTA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PASTA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${PASTA_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(PASTA_TESTS)
  find_package(GTest REQUIRED)
endif()
if(PASTA_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

add_library(pasta_options INTERFACE)
target_include_directories(pasta_options INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pasta_options INTERFACE tl::expected Threads::Threads)
target_compile_options(pasta_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                               -Wno-sign-conversion -Wnon-virtual-dtor)
if(PASTA_WERROR)
  target_compile_options(pasta_options INTERFACE -Werror)
endif()

# pasta_precompile(TARGET [HEADER...])
# The standard headers that most files include (and HEADERs) are parsed once a target instead of
# once a file, where PASTA_PRECOMPILED_HEADERS is on. Never the project's own: a file that forgets
# to include one must not compile.
function(pasta_precompile target)
  if(PASTA_PRECOMPILED_HEADERS)
    target_precompile_headers(
      ${target} PRIVATE <algorithm> <array> <charconv> <cstdint> <filesystem> <functional> <map>
      <memory> <optional> <span> <string> <string_view> <unordered_map> <variant> <vector>
      <fmt/format.h> <fmt/ranges.h> <tl/expected.hpp> ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC forgets which parts of a precompiled header are the system's, and then warns about
      # bounds inside of the standard library. The first flag is for ccache.
      target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds
                                               -Wno-stringop-overflow -Wno-stringop-overread
                                               -Wno-restrict)
    else()
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
endfunction()

# pasta_folder(NAME [DEPENDS folder...] [LIBRARIES lib...] [PRIVATE_LIBRARIES lib...])
# Makes target pasta_NAME of all sources of the current folder (and its subfolders), and test
# NAME_test of all *_test.cpp beside them.
function(pasta_folder name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBRARIES;PRIVATE_LIBRARIES;TEST_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(sources)
    add_library(pasta_${name} STATIC ${sources})
    pasta_precompile(pasta_${name})
    set(scope PUBLIC)
    target_link_libraries(pasta_${name} PRIVATE ${arg_PRIVATE_LIBRARIES})
  else()
    add_library(pasta_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(pasta_${name} ${scope} pasta_options ${arg_LIBRARIES})
  foreach(folder IN LISTS arg_DEPENDS)
    target_link_libraries(pasta_${name} ${scope} pasta_${folder})
  endforeach()
  if(PASTA_TESTS AND tests)
    string(REPLACE "/" "_" test_name ${name}_test)
    add_executable(${test_name} ${tests})
    target_link_libraries(${test_name} PRIVATE pasta_${name} ${arg_TEST_LIBRARIES} GTest::gtest
                                               GTest::gtest_main)
    pasta_precompile(${test_name} <gtest/gtest.h>)
    # What a test file says runs once, what it costs to compile is paid in every build.
    target_compile_options(${test_name} PRIVATE -O0 -fno-sanitize=undefined)
    target_compile_definitions(${test_name} PRIVATE PASTA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME ${test_name} COMMAND ${test_name})
  endif()
endfunction()
