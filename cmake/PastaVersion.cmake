# The commit of the working tree, looked up at build time, so that --version tells what was built.
set(PASTA_VERSION_HEADER ${PROJECT_BINARY_DIR}/generated/pasta_version.h)
add_custom_target(
  pasta_version_header
  BYPRODUCTS ${PASTA_VERSION_HEADER}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${PASTA_VERSION_HEADER}
          -DVERSION=${PROJECT_VERSION} -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake)
add_library(pasta_version INTERFACE)
target_include_directories(pasta_version INTERFACE ${PROJECT_BINARY_DIR}/generated)
add_dependencies(pasta_version pasta_version_header)
