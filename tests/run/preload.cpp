// A library that is preloaded as well, and stands in front of what ours does too.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "pasta/pasta.h"

namespace {

void say(const char* text, size_t bytes) {
  if (write(STDOUT_FILENO, text, bytes) != static_cast<ssize_t>(bytes)) abort();
}

__attribute__((constructor)) void load() {
  pasta_mark("their constructor");
  say("loaded\n", 7);
}

}  // namespace

extern "C" __attribute__((visibility("default"), noreturn)) void _exit(int status) {
  say("their _exit\n", 12);
  const auto next = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "_exit"));
  next(status);
  abort();
}
