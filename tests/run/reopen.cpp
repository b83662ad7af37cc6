// Opens a library, calls its function `said`, and closes it, as often as it is told.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int i = std::atoi(argv[2]); i > 0; --i) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 3;
    }
    const auto said = reinterpret_cast<int (*)()>(dlsym(library, "said"));
    if (said == nullptr || said() != 0) return 4;
    if (dlclose(library) != 0) return 5;
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != nullptr) return 6;  // it is still there
  }
  std::puts("done");
  return 0;
}
