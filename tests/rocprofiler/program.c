/* A program of ROCm without a GPU: registers with rocprofiler-sdk as rocprofiler-register does for
   the libraries of ROCm, and plays a script on it. program SCRIPT [LAST], LAST being exit, _exit,
   kill or abort. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*set_table_function)(const char*, uint64_t, uint64_t, void**, uint64_t);
typedef int (*play_function)(const char*);

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* last = argc > 2 ? argv[2] : "exit";
  /* Whether there is a tool, and then the SDK: in the process already, or to be loaded. */
  const char* tools = getenv("ROCP_TOOL_LIBRARIES");
  if (dlsym(RTLD_DEFAULT, "rocprofiler_configure") != NULL || (tools != NULL && *tools != '\0')) {
    set_table_function set_table;
    *(void**)&set_table = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    if (set_table == NULL) {
      void* sdk = dlopen("librocprofiler-sdk.so.1", RTLD_LAZY | RTLD_GLOBAL);
      if (sdk != NULL) *(void**)&set_table = dlsym(sdk, "rocprofiler_set_api_table");
    }
    if (set_table == NULL) abort(); /* as rocprofiler-register does */
    if (set_table("hip", 60000, 0, NULL, 0) != 0) return 5;
  }
  play_function play;
  *(void**)&play = dlsym(RTLD_DEFAULT, "fake_play");
  if (play != NULL && play(argv[1]) != 0) return 6;
  puts(play != NULL ? "played" : "no SDK");
  if (strcmp(last, "_exit") == 0) {
    fflush(NULL);
    _exit(7);
  }
  if (strcmp(last, "kill") == 0) raise(SIGKILL);
  if (strcmp(last, "abort") == 0) abort();
  return 3;
}
