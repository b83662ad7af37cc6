/* Loads what watches CUDA as the driver would, and launches kernels on a CUPTI without a GPU:
   program LAST, which is profiler, exit, _exit or kill. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pasta/pasta.h"

typedef int (*initialize_function)(void);
typedef int (*register_function)(void*, void*);
typedef void (*launch_function)(const char*, unsigned);

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) exit(3);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  initialize_function initialize;
  launch_function launch;
  const char* library = getenv("CUDA_INJECTION64_PATH");
  if (library == NULL) return 4;
  void* collector = dlopen(library, RTLD_NOW);
  if (collector == NULL) return 3;
  *(void**)&initialize = find(collector, "InitializeInjection");
  if (initialize() != 1) return 5;
  void* cupti = dlopen("libcupti.so.13", RTLD_NOW);
  if (cupti == NULL) return 5;
  *(void**)&launch = find(cupti, "launch");
  const unsigned thread = (unsigned)syscall(SYS_gettid);
  const uint64_t step = pasta_begin("step");
  const uint64_t forward = pasta_begin("forward");
  launch("_Z4gemmPfi", thread);
  pasta_end(forward);
  launch("relu", thread);
  pasta_end(step);
  launch("relu", thread);
  if (strcmp(argv[1], "profiler") == 0) {
    register_function take;
    *(void**)&take = find(RTLD_DEFAULT, "cuptiActivityRegisterCallbacks");
    if (take(NULL, NULL) != 0) return 6;
    launch("after", thread);
  }
  if (strcmp(argv[1], "_exit") == 0) _exit(7);
  if (strcmp(argv[1], "kill") == 0) raise(SIGKILL);
  return 0;
}
