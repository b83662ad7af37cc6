# Compiles what runs on a GPU, and holds it to the memory that a patch may have:
#   cmake -DNVCC=... "-DARCHITECTURES=80;90" "-DARGUMENTS=-I..." -DOUTPUT=... -DSOURCE=... [-DTOGETHER=ON]
#     -P compile_patches.cmake
# In two steps: in one, nvcc keeps for tools also each function that has become part of another, and with a
# patch that is loaded all threads that a GPU can have get the stack of all its functions.
get_filename_component(bin ${NVCC} DIRECTORY)
set(images "")
set(left "")
foreach(architecture ${ARCHITECTURES})
  set(work ${OUTPUT}.${architecture})
  execute_process(
    COMMAND ${NVCC} -std=c++20 -O3 -ptx -rdc=true -arch=compute_${architecture} ${ARGUMENTS} -o ${work}.ptx ${SOURCE}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${said}")
  endif()
  # The lanes of a warp come to a patch together, and where all of them are asked they still are. But nvcc has
  # each question wait until they are, and in code for tools that takes more registers and time than the question.
  # PTX up to version 6.3 has questions that do not wait; those that compare values of lanes always do.
  if(TOGETHER)
    file(READ ${work}.ptx text)
    string(REGEX REPLACE "(shfl|vote)[.]sync([^;]*), *[^,;]*;" "\\1\\2;" text "${text}")
    string(REGEX REPLACE "\n[.]version [0-9.]+" "\n.version 6.3" text "${text}")
    string(REGEX REPLACE "\n[.]target sm_[0-9]+" "\n.target sm_70" text "${text}")
    file(WRITE ${work}.ptx "${text}")
  endif()
  execute_process(
    COMMAND ${NVCC} --cubin --compile-as-tools-patch -arch=sm_${architecture} -Xptxas -v -o ${work}.cubin ${work}.ptx
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${said}")
  endif()
  # What does not fit into registers lies on the stack of every thread of the GPU, beside that of the kernel:
  # patches of 250 bytes and more ended PyTorch's GPT-2 on an H200 in illegal accesses, of 224 they did not.
  # Code for GPUs of compute capability 8.0 needs the most.
  set(most 240)
  string(REGEX MATCHALL "[^\n]*Function properties for [^\n]*\n *[0-9]+ bytes stack frame" functions "${said}")
  if(NOT functions)
    message(FATAL_ERROR "ptxas does not say what patches need:\n${said}")
  endif()
  set(sum 0)
  foreach(function ${functions})
    string(REGEX MATCH "properties for ([^\n ]*)[^\n]*\n *([0-9]+)" matched "${function}")
    if(CMAKE_MATCH_2 GREATER most)
      message(FATAL_ERROR "the patch ${CMAKE_MATCH_1} needs ${CMAKE_MATCH_2} bytes of stack, more than ${most}")
    endif()
    math(EXPR sum "${sum} + ${CMAKE_MATCH_2}")
  endforeach()
  if(DEFINED MOST_STACK AND sum GREATER MOST_STACK)
    message(FATAL_ERROR "the functions of ${SOURCE} need ${sum} bytes of stack together, more than ${MOST_STACK}")
  endif()
  list(APPEND images --image3=kind=elf,sm=${architecture},file=${work}.cubin)
  list(APPEND left ${work}.ptx ${work}.cubin)
endforeach()
execute_process(COMMAND ${bin}/fatbinary --create=${OUTPUT} -64 --compress-all ${images}
                OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
file(REMOVE ${left})
if(failed)
  message(FATAL_ERROR "${said}")
endif()
