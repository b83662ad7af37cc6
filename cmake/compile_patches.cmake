# Compiles what runs on a GPU, and holds it to the memory that a patch may have:
#   cmake -DNVCC=... "-DARGUMENTS=..." -DOUTPUT=... -DSOURCE=... -P compile_patches.cmake
execute_process(
  COMMAND ${NVCC} -std=c++20 -O3 --fatbin --compile-as-tools-patch -Xptxas -v -Xfatbin -compress-all
          ${ARGUMENTS} -o ${OUTPUT} ${SOURCE}
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${said}")
endif()
# Registers that do not fit lie on the stack of every thread of the GPU, beside those of the kernel:
# patches of 250 bytes and more ended PyTorch's GPT-2 on an H200 in illegal accesses.
# Of what is compiled only those that Compute Sanitizer calls are; the rest lies within them.
set(most 160)
string(REGEX MATCHALL "[^\n]*Function properties for pasta_[^\n]*\n *[0-9]+ bytes stack frame" functions "${said}")
if(NOT functions)
  message(FATAL_ERROR "ptxas does not say what patches need:\n${said}")
endif()
foreach(function ${functions})
  string(REGEX MATCH "properties for ([^\n ]*)[^\n]*\n *([0-9]+)" matched "${function}")
  if(CMAKE_MATCH_2 GREATER most)
    file(REMOVE ${OUTPUT})
    message(FATAL_ERROR "the patch ${CMAKE_MATCH_1} needs ${CMAKE_MATCH_2} bytes of stack, more than ${most}")
  endif()
endforeach()
