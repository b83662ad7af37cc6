#include "adapters/cupti/api.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace pasta::adapters::cupti {
namespace {

// Found by the first that asks, who may come before any constructor.
constinit std::atomic<Dlsym*> g_dlsym = nullptr;

// Newest first; a driver serves the CUPTI of its own major version and of those before.
constexpr int kVersions[] = {13, 12};

class Text {
 public:
  Text(char* to, std::size_t size) : to_(to), left_(size) { *to_ = '\0'; }
  Text& operator<<(const char* text) {
    while (*text != '\0' && left_ > 1) {
      *to_++ = *text++;
      --left_;
    }
    *to_ = '\0';
    return *this;
  }
  Text& operator<<(int number) {
    const char digits[] = {static_cast<char>('0' + number / 10 % 10),
                           static_cast<char>('0' + number % 10), '\0'};
    return *this << digits;
  }

 private:
  char* to_;
  std::size_t left_;
};

// What is asked of the driver. Found once, as CUDA begins: later it is asked from inside of its own
// calls, where waiting for the loader could be for ever.
struct Driver {
  int (*version)(int*);
  int (*get)(int*, int);
  int (*get_name)(char*, int, int);
  int (*get_uuid)(unsigned char*, int);
  int (*total_memory)(std::size_t*, int);
  int (*get_attribute)(int*, int, int);
};
constinit Driver g_driver{};

template <class Function>
bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(system_dlsym()(library, name));
  return to != nullptr;
}

const Driver& driver() {
  static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&finding);
  void* cuda = g_driver.get == nullptr ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (cuda != nullptr) {
    find(cuda, "cuDriverGetVersion", g_driver.version);
    find(cuda, "cuDeviceGetName", g_driver.get_name);
    if (!find(cuda, "cuDeviceGetUuid_v2", g_driver.get_uuid)) {
      find(cuda, "cuDeviceGetUuid", g_driver.get_uuid);
    }
    find(cuda, "cuDeviceTotalMem_v2", g_driver.total_memory);
    find(cuda, "cuDeviceGetAttribute", g_driver.get_attribute);
    find(cuda, "cuDeviceGet", g_driver.get);
  }
  pthread_mutex_unlock(&finding);
  return g_driver;
}

int driver_major() {
  int version = 0;
  const bool known = driver().version != nullptr && driver().version(&version) == 0;
  return known ? version / 1000 : 0;
}

// Folders of libraries in the process near which a CUPTI may lie.
struct Folders {
  static constexpr int kMost = 8;
  char path[kMost][PATH_MAX];
  int count;

  void add(const char* folder, std::size_t size) {
    if (count == kMost || size >= PATH_MAX) return;
    for (int i = 0; i < count; ++i) {
      if (std::strncmp(path[i], folder, size) == 0 && path[i][size] == '\0') return;
    }
    std::memcpy(path[count], folder, size);
    path[count++][size] = '\0';
  }
};

struct Near {
  Folders cuda;      // of CUDA's libraries and the driver's
  Folders packages;  // of Python's packages, whatever of them is loaded
};

int collect_folder(dl_phdr_info* info, std::size_t, void* data) {
  auto& near = *static_cast<Near*>(data);
  const char* path = info->dlpi_name;
  const char* slash = path == nullptr ? nullptr : std::strrchr(path, '/');
  if (slash == nullptr) return 0;
  constexpr const char* kOfCuda[] = {"/libcudart.so", "/libcublas.so",   "/libcublasLt.so",
                                     "/libcudnn.so",  "/libnvrtc.so",    "/libcufft.so",
                                     "/libnccl.so",   "/libcusparse.so", "/libcuda.so"};
  for (const char* name : kOfCuda) {
    if (std::strncmp(slash, name, std::strlen(name)) == 0) {
      near.cuda.add(path, static_cast<std::size_t>(slash - path));
    }
  }
  for (const char* packages : {"/site-packages/", "/dist-packages/"}) {
    if (const char* found = std::strstr(path, packages); found != nullptr) {
      near.packages.add(path, static_cast<std::size_t>(found - path) + std::strlen(packages) - 1);
    }
  }
  return 0;
}

void* open_at(const char* folder, const char* below, int version) {
  char path[PATH_MAX];
  Text(path, sizeof path) << folder << below << "/libcupti.so." << version;
  return dlopen(path, RTLD_NOW);
}

void* find_version(int version, const Near& near) {
  char name[32];
  Text(name, sizeof name) << "libcupti.so." << version;
  if (void* library = dlopen(name, RTLD_NOW); library != nullptr) return library;
  // In a toolkit, beside cudart or in extras; of wheels, beside (13) or in a package beside (12).
  constexpr const char* kBelow[] = {"", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64",
                                    "/../../cuda_cupti/lib", "/../../cu13/lib"};
  for (int i = 0; i < near.cuda.count; ++i) {
    for (const char* below : kBelow) {
      if (void* library = open_at(near.cuda.path[i], below, version); library != nullptr)
        return library;
    }
  }
  // Of a Python that has it installed and has loaded none of CUDA's libraries.
  for (int i = 0; i < near.packages.count; ++i) {
    for (const char* below : {"/nvidia/cu13/lib", "/nvidia/cuda_cupti/lib"}) {
      if (void* library = open_at(near.packages.path[i], below, version); library != nullptr)
        return library;
    }
  }
  constexpr const char* kInToolkit[] = {"/extras/CUPTI/lib64", "/targets/x86_64-linux/lib",
                                        "/targets/sbsa-linux/lib", "/lib64"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = std::getenv(variable);
    for (const char* below : kInToolkit) {
      if (home == nullptr) break;
      if (void* library = open_at(home, below, version); library != nullptr) return library;
    }
  }
  char named[32];
  Text(named, sizeof named) << "/usr/local/cuda-" << version;
  for (const char* below : kInToolkit) {
    if (void* library = open_at("/usr/local/cuda", below, version); library != nullptr)
      return library;
    if (void* library = open_at(named, below, version); library != nullptr) return library;
  }
  return nullptr;
}

// The one that the program has loaded: another beside it would be blind.
void* loaded_library() {
  for (const int version : kVersions) {
    char name[32];
    Text(name, sizeof name) << "libcupti.so." << version;
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD); library != nullptr) return library;
  }
  return nullptr;
}

void* open_library() {
  if (void* library = loaded_library(); library != nullptr) return library;
  // Too large for the stack of any thread.
  static Near near;
  near.cuda.count = near.packages.count = 0;
  dl_iterate_phdr(collect_folder, &near);
  const int driver = driver_major();
  for (const int version : kVersions) {
    if (driver != 0 && version > driver) continue;
    if (void* library = find_version(version, near); library != nullptr) return library;
  }
  return nullptr;
}

}  // namespace

Dlsym* system_dlsym() noexcept {
  Dlsym* next = g_dlsym.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  // Since when the C library has it: since libdl is part of it; AArch64; x86-64.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    next = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (next != nullptr) break;
  }
  g_dlsym.store(next, std::memory_order_relaxed);
  return next;
}

bool load_api(Api& api, char* where, std::size_t size) noexcept {
  api = {};
  driver();
  void* library = open_library();
  if (library == nullptr) {
    Text(where, size) << "no libcupti.so.13 or libcupti.so.12 that this driver can serve is found, "
                         "neither near the program's CUDA libraries nor in a CUDA toolkit";
    return false;
  }
  api.library = library;
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& to) {
    if (!find(library, name, to) && missing == nullptr) missing = name;
  };
  need("cuptiGetVersion", api.get_version);
  need("cuptiGetResultString", api.get_result_string);
  need("cuptiGetTimestamp", api.get_timestamp);
  need("cuptiGetCallbackName", api.get_callback_name);
  need("cuptiActivityRegisterCallbacks", api.register_callbacks);
  need("cuptiActivityEnable", api.enable);
  need("cuptiActivityDisable", api.disable);
  need("cuptiActivityFlushAll", api.flush_all);
  need("cuptiActivityGetNextRecord", api.next_record);
  need("cuptiActivityGetNumDroppedRecords", api.dropped_records);
  need("cuptiActivitySetAttribute", api.set_attribute);
  need("cuptiSetThreadIdType", api.set_thread_id_type);
  need("cuptiSubscribe", api.subscribe);
  need("cuptiUnsubscribe", api.unsubscribe);
  need("cuptiEnableCallback", api.enable_callback);
  need("cuptiGetStreamIdEx", api.stream_id);
  find(library, "cuptiGetGraphNodeId", api.graph_node_id);
  find(library, "cuptiActivityEnableRuntimeApi", api.enable_runtime_api);
  find(library, "cuptiActivityEnableDriverApi", api.enable_driver_api);
  find(library, "cuptiGetDeviceId", api.device_id);
  find(library, "cuptiActivityEnableRawTimestamps", api.enable_raw_times);
  link_map* map = nullptr;
  const bool named = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  Text path(where, size);
  if (missing != nullptr) path << "no " << missing << " in ";
  path << (named ? map->l_name : "libcupti");
  return missing == nullptr;
}

void* find_function(const char* name) noexcept {
  void* library = open_library();
  return library == nullptr ? nullptr : system_dlsym()(library, name);
}

DeviceFacts device_facts(std::uint32_t ordinal) noexcept {
  DeviceFacts facts;
  const Driver& cuda = driver();
  constexpr int kMultiprocessorCount = 16;
  int device = 0;
  if (cuda.get == nullptr || cuda.get(&device, static_cast<int>(ordinal)) != 0) return facts;
  if (cuda.get_name != nullptr && cuda.get_name(facts.name, sizeof facts.name - 1, device) != 0) {
    facts.name[0] = '\0';
  }
  unsigned char uuid[16] = {};
  if (cuda.get_uuid != nullptr && cuda.get_uuid(uuid, device) == 0) {
    char* to = facts.uuid;
    for (const char c : {'G', 'P', 'U', '-'}) *to++ = c;
    for (std::size_t i = 0; i < std::size(uuid); ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
      *to++ = "0123456789abcdef"[uuid[i] >> 4];
      *to++ = "0123456789abcdef"[uuid[i] & 15];
    }
  }
  std::size_t bytes = 0;
  if (cuda.total_memory != nullptr && cuda.total_memory(&bytes, device) == 0) {
    facts.memory_bytes = bytes;
  }
  int count = 0;
  if (cuda.get_attribute != nullptr &&
      cuda.get_attribute(&count, kMultiprocessorCount, device) == 0) {
    facts.multiprocessors = static_cast<std::uint32_t>(count);
  }
  return facts;
}

bool device_place(std::uint32_t ordinal, PciPlace& place) noexcept {
  const Driver& cuda = driver();
  // CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, _PCI_BUS_ID and _PCI_DEVICE_ID.
  constexpr int kWords[] = {50, 33, 34};
  int device = 0, words[3] = {};
  bool known = cuda.get != nullptr && cuda.get_attribute != nullptr &&
               cuda.get(&device, static_cast<int>(ordinal)) == 0;
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    known = known && cuda.get_attribute(&words[i], kWords[i], device) == 0 && words[i] >= 0;
  }
  place = {static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[1]),
           static_cast<std::uint32_t>(words[2])};
  return known;
}

}  // namespace pasta::adapters::cupti
