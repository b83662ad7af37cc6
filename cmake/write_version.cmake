cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown commit")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"#pragma once
#define PASTA_VERSION \"@VERSION@\"
#define PASTA_COMMIT \"@commit@\"
" @ONLY)
