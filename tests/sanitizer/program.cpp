// Loads what analyses accesses as the driver would, and launches kernels on a device that there is
// not: program SCENE. See sanitizer_test.py for what is to come of each scene.
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/sanitizer/api.h"
#include "adapters/sanitizer/testing.h"
#include "fake.h"
#include "pasta/pasta.h"

namespace {

using pasta::adapters::sanitizer::DriverCallback;
using pasta::device::Access;
using pasta::device::Space;
using pasta::device::Warp;

template <class Function>
void find(void* library, const char* name, Function& to) {
  void* const found = dlsym(library, name);
  if (found == nullptr) std::exit(3);
  std::memcpy(&to, &found, sizeof to);
}

#define FUNCTION(name) decltype(&::name) name = nullptr
struct Fake {
  FUNCTION(fake_context);
  FUNCTION(fake_destroy_context);
  FUNCTION(fake_create_stream);
  FUNCTION(fake_destroy_stream);
  FUNCTION(fake_module);
  FUNCTION(fake_unload_module);
  FUNCTION(fake_allocate);
  FUNCTION(fake_free);
  FUNCTION(fake_encode);
  FUNCTION(fake_call);
  FUNCTION(fake_launch);
  FUNCTION(fake_launch_graph);
  FUNCTION(fake_make_graph_for_device);
  FUNCTION(fake_upload_graph);
  FUNCTION(fake_hold);
  FUNCTION(fake_go_on);
  FUNCTION(fake_synchronize);
  FUNCTION(fake_fault);
  FUNCTION(fake_refuse);
  explicit Fake(void* library) {
#define FIND(name) find(library, #name, name)
    FIND(fake_context);
    FIND(fake_destroy_context);
    FIND(fake_create_stream);
    FIND(fake_destroy_stream);
    FIND(fake_module);
    FIND(fake_unload_module);
    FIND(fake_allocate);
    FIND(fake_free);
    FIND(fake_encode);
    FIND(fake_call);
    FIND(fake_launch);
    FIND(fake_launch_graph);
    FIND(fake_make_graph_for_device);
    FIND(fake_upload_graph);
    FIND(fake_hold);
    FIND(fake_go_on);
    FIND(fake_synchronize);
    FIND(fake_fault);
    FIND(fake_refuse);
  }
};

// 32 lanes, each `width` bytes, `stride` bytes apart.
Warp warp(Access access, std::uint64_t site, std::uint64_t address, std::uint32_t width,
          std::uint32_t stride, Space space = Space::kGlobal) {
  Warp made;
  made.space = space;
  made.access = access;
  made.site = site;
  made.width = width;
  made.active = ~std::uint32_t{0};
  for (std::uint32_t lane = 0; lane < 32; ++lane) made.address[lane] = address + lane * stride;
  return made;
}

constexpr std::uint64_t kIn = 0x7f4000000000, kOut = 0x7f4000100000;
void* const kContext = reinterpret_cast<void*>(0x10);
void* const kModule = reinterpret_cast<void*>(0x20);

void* stream(std::uintptr_t number) { return reinterpret_cast<void*>(0x100 + number); }

// After all that was loaded later has ended.
std::function<void()> at_end;

}  // namespace

int main(int argc, char** argv) {
  std::atexit([] {
    if (at_end) at_end();
  });
  if (argc != 2) return 2;
  const std::string scene = argv[1];
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return 4;
  void* const injected = dlopen(path, RTLD_NOW);
  if (injected == nullptr) return 3;
  int (*initialize)() = nullptr;
  find(injected, "InitializeInjection", initialize);
  if (initialize() != 1) return 5;
  void* const library = dlopen("libsanitizer-public.so", RTLD_NOW);
  if (library == nullptr) return 3;
  const Fake fake(library);

  fake.fake_context(kContext);
  fake.fake_module(kContext, kModule, "no code", 7);
  fake.fake_allocate(kIn, 4096, 0);
  fake.fake_allocate(kOut, 4096, 0x1);
  const std::vector<Warp> copies = {warp(Access::kRead, 0x40, kIn, 4, 4),
                                    warp(Access::kWrite, 0x80, kOut, 4, 4)};
  const std::vector<Warp> strides = {warp(Access::kRead, 0x40, kIn, 4, 64),
                                     warp(Access::kAtomic, 0x90, kOut, 4, 0),
                                     warp(Access::kRead, 0xa0, 0, 4, 128, Space::kShared),
                                     // Its last lane asks for what is behind the object.
                                     warp(Access::kRead, 0xb0, kIn + 4096 - 31 * 4, 4, 4)};
  const FakeKernel copy{"_Z4copyPfS_", {1, 1, 1}, {32, 1, 1}, copies.data(), copies.size()};
  const FakeKernel stride{"stride", {2, 1, 1}, {32, 1, 1}, strides.data(), strides.size()};
  const auto launch = [&](const FakeKernel& kernel, std::uintptr_t on = 0) {
    fake.fake_launch(kContext, kModule, stream(on), &kernel);
  };

  if (scene == "kernels") {
    launch(copy);
    launch(copy);
    launch(stride);
  } else if (scene == "tiles") {
    // A kernel that loads tiles through a map of kOut; the other has a map that nobody encoded.
    const std::string code =
        pasta::adapters::sanitizer::testing::cubin("tiles", {0x00000008060075b4});
    void* const module = reinterpret_cast<void*>(0x30);
    fake.fake_module(kContext, module, code.data(), code.size());
    alignas(64) char map[128] = "map", other[128] = "other";
    fake.fake_encode(map, kOut);
    FakeKernel tiles{"tiles", {1, 1, 1}, {32, 1, 1}, copies.data(), 1, map};
    fake.fake_launch(kContext, module, stream(0), &tiles);
    tiles.map = other;
    fake.fake_launch(kContext, module, stream(0), &tiles);
  } else if (scene == "variables") {
    // Of a module that is loaded, unloaded, and loaded again; its kernel writes the variable.
    const std::string code =
        pasta::adapters::sanitizer::testing::cubin_with_variable("_ZN7program7counterE");
    void* const module = reinterpret_cast<void*>(0x30);
    const Warp write = warp(Access::kWrite, 0x40, 0x7f5000000000, 4, 0);
    const FakeKernel counts{"counts", {1, 1, 1}, {32, 1, 1}, &write, 1};
    for (int i = 0; i < 2; ++i) {
      fake.fake_module(kContext, module, code.data(), code.size());
      fake.fake_launch(kContext, module, stream(0), &counts);
      fake.fake_unload_module(module);
      launch(FakeKernel{"late", {1, 1, 1}, {32, 1, 1}, &write, 1});
    }
  } else if (scene == "refused") {
    // What was written for it comes to the device behind what others wrote later.
    fake.fake_hold();
    fake.fake_refuse();
    launch(copy, 1);
    fake.fake_allocate(kIn + (1 << 30), 4096, 0);
    const Warp read = warp(Access::kRead, 0x40, kIn + (1 << 30), 4, 4);
    const FakeKernel later{"later", {1, 1, 1}, {32, 1, 1}, &read, 1};
    launch(later, 2);
    fake.fake_go_on();
    launch(later, 2);
  } else if (scene == "graph_of_twins") {
    const FakeKernel all[] = {copy, stride, copy, copy};
    fake.fake_launch_graph(kContext, kModule, stream(0), all, 4);
    // What was given to functions is not for launches.
    launch(stride);
  } else if (scene == "large_graph") {
    std::vector<std::string> names;
    for (int i = 0; i < 200; ++i) names.push_back("node" + std::to_string(i));
    std::vector<FakeKernel> nodes;
    for (const std::string& name : names) {
      nodes.push_back({name.c_str(), {1, 1, 1}, {32, 1, 1}, copies.data(), copies.size()});
    }
    for (int i = 0; i < 2; ++i) {
      fake.fake_launch_graph(kContext, kModule, stream(0), nodes.data(), nodes.size());
      fake.fake_synchronize(kContext, stream(0));
    }
  } else if (scene == "graphs_for_kernels") {
    fake.fake_upload_graph(kContext, kModule, stream(0), &copy, 1);
    fake.fake_launch_graph(kContext, kModule, stream(0), &copy, 1);
    fake.fake_make_graph_for_device();
    fake.fake_upload_graph(kContext, kModule, stream(0), &copy, 1);
    fake.fake_launch_graph(kContext, kModule, stream(0), &stride, 1);
  } else if (scene == "unseen") {
    // Reads c[0x3], and multiplies by HGMMA.
    const std::string code = pasta::adapters::sanitizer::testing::cubin(
        "unseen", {0x00c0000000077b82, 0x00000000041879f0});
    void* const module = reinterpret_cast<void*>(0x30);
    fake.fake_module(kContext, module, code.data(), code.size());
    const Warp seen[] = {copies[0], warp(Access::kRead, 0xa0, 0, 4, 4, Space::kShared)};
    const FakeKernel unseen{"unseen", {1, 1, 1}, {32, 1, 1}, seen, 2};
    fake.fake_launch(kContext, module, stream(0), &unseen);
  } else if (scene == "tags") {
    pasta_tag(reinterpret_cast<void*>(kIn), 64, "weights");
    launch(copy);
  } else if (scene == "graph") {
    const FakeKernel both[] = {copy, stride};
    for (int i = 0; i < 3; ++i) fake.fake_launch_graph(kContext, kModule, stream(0), both, 2);
  } else if (scene == "objects") {
    // What was live when it was launched, whatever becomes of it until the device is there.
    fake.fake_hold();
    launch(copy);
    fake.fake_free(kIn);
    launch(copy);
    const std::uint64_t range = pasta_begin("load");
    fake.fake_allocate(kIn, 64, 0x2);
    pasta_end(range);
    launch(copy);
    fake.fake_go_on();
  } else if (scene == "tables") {
    // At each launch another object is live, all at one place in a table of pieces, and the one
    // before it no more: 64 times before the device comes to the first, and then as often as it
    // takes to need more memory than there is for tables.
    const auto begin = [](std::uint64_t i) { return 0x7f5040000000 + (i << 33); };
    for (std::uint64_t i = 0; i < 300; ++i) {
      if (i == 0) fake.fake_hold();
      if (i == 64) fake.fake_go_on();
      fake.fake_allocate(begin(i), 40 << 20, 0);
      const Warp warps[] = {warp(Access::kRead, 0x40, begin(i), 4, 4),
                            warp(Access::kRead, 0x80, begin(i - 1), 2, 2)};
      const FakeKernel kernel{"kernel", {1, 1, 1}, {32, 1, 1}, warps, 2};
      launch(kernel, 1);
      launch(kernel, 2);
      fake.fake_free(begin(i));
    }
  } else if (scene.starts_with("cost:")) {
    // cost:OBJECTS:MIB: what a launch takes of the thread that launches, where so much is live.
    std::uint64_t objects = 0, mib = 0;
    if (std::sscanf(scene.c_str(), "cost:%lu:%lu", &objects, &mib) != 2) return 2;
    for (std::uint64_t i = 0; i < objects; ++i) {
      fake.fake_allocate(0x7f5000000000 + i * (mib << 20), mib << 20, 0);
    }
    const FakeKernel nothing{"nothing", {64, 1, 1}, {256, 1, 1}, nullptr, 0};
    const auto now_ns = [] {
      timespec now{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
      return now.tv_sec * 1'000'000'000 + now.tv_nsec;
    };
    for (const bool changes : {false, true}) {
      std::vector<long> ns;
      for (int i = 0; i < 1000; ++i) {
        if (changes) fake.fake_allocate(kIn, 4096, 0);
        const long before = now_ns();
        launch(nothing);
        ns.push_back(now_ns() - before);
      }
      std::ranges::sort(ns);
      std::printf("a launch%s: median %ld ns, of 90 %% at most %ld\n",
                  changes ? " after an allocation" : "", ns[ns.size() / 2], ns[ns.size() * 9 / 10]);
    }
  } else if (scene == "threads") {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 100; ++k) launch(k % 2 == 0 ? copy : stride, 2 * i + (k & 1));
        fake.fake_synchronize(kContext, stream(2 * i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  } else if (scene == "streams_that_go") {
    int green = 0;
    for (void* of : {static_cast<void*>(nullptr), static_cast<void*>(&green)}) {
      const std::uintptr_t on = of == nullptr ? 1 : 2;
      launch(copy, on);
      launch(copy, on);  // behind the mark of the first
      fake.fake_destroy_stream(kContext, of, stream(on));
      fake.fake_create_stream(kContext, stream(3));
    }
  } else if (scene == "many") {
    // More than finds room at once.
    for (int i = 0; i < 2000; ++i) launch(copy);
  } else if (scene == "fault") {
    launch(copy);
    fake.fake_hold();
    launch(copy);
    fake.fake_fault();
    launch(copy);
  } else if (scene == "context") {
    launch(copy);
    fake.fake_destroy_context(kContext);
    launch(copy);
  } else if (scene == "context_again") {
    launch(copy);
    fake.fake_destroy_context(kContext);
    // Another, with the handle of the one that is gone.
    fake.fake_context(kContext);
    fake.fake_module(kContext, kModule, "no code", 7);
    launch(copy);
  } else if (scene == "steps") {
    for (int i = 0; i < 6; ++i) {
      launch(copy);
      launch(stride);
      pasta_step();
    }
  } else if (scene == "ranges") {
    for (int i = 0; i < 6; ++i) {
      const pasta::annotate step(("step " + std::to_string(i)).c_str());
      launch(copy);
      launch(stride);
    }
  } else if (scene == "steps_around_ranges") {
    for (int i = 0; i < 6; ++i) {
      pasta_step();
      const pasta::annotate step(("step " + std::to_string(i)).c_str());
      launch(copy);
    }
  } else if (scene == "capture") {
    const auto call = [&](DriverCallback callback) {
      fake.fake_call(static_cast<std::uint32_t>(callback));
    };
    launch(copy);
    call(DriverCallback::kBeginCapture2);
    pasta_step();
    call(DriverCallback::kEndCapture);
    launch(copy);
    pasta_step();
    launch(copy);
  } else if (scene == "profiler") {
    const auto call = [&](DriverCallback callback) {
      fake.fake_call(static_cast<std::uint32_t>(callback));
    };
    launch(copy);
    call(DriverCallback::kProfilerStart);
    launch(stride);
    call(DriverCallback::kProfilerStop);
    launch(copy);
  } else if (scene == "range") {
    launch(copy);
    const std::uint64_t range = pasta_begin("inside");
    launch(stride);
    pasta_end(range);
    launch(copy);
  } else if (scene == "switch") {
    int (*take)(const char* name) = nullptr;
    find(injected, "pasta_sanitizer_patch", take);
    for (const char* patch : {"", "access", "empty_global", "access"}) {
      if (take(patch) != 1) return 6;
      launch(copy);
    }
    if (take("none") != 0) return 6;
  } else if (scene == "refuse") {
    int (*take)(const char* name) = nullptr;
    find(injected, "pasta_sanitizer_patch", take);
    if (take("hotpages") != 0) return 6;
    launch(copy);
    if (take("access") != 1) return 6;
    launch(copy);
  } else if (scene == "late") {
    launch(copy);
    at_end = [&] { launch(copy); };
    std::exit(0);
  } else if (scene == "_exit") {
    launch(copy);
    _exit(7);
  }
  return 0;
}
