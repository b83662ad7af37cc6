// Tells `pastaprof run` what a program is doing. C and C++; this header is all there is to it.
//
//   pasta::annotate scope("load");        // C++: until the end of the block
//   uint64_t range = pasta_begin("load"); // C
//   pasta_end(range);
//   pasta_mark("cache miss");             // a moment
//   pasta_step();                         // between iterations: from one call to the next is one
//   pasta_tag(weights, bytes, "weights"); // what a piece of memory is
//   pasta_stop(); pasta_start();          // leave out what is in between, in the whole process
//
// There is nothing to link and nothing to initialise. When nobody watches, each call costs one load
// and one branch. All may be called from any thread and from what runs at exit, none fails or
// throws. A range ends on the thread on which it began. Names are copied.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __linux__
#include <dlfcn.h>
// A program need not link what has it.
#pragma weak dlsym
#endif

#ifdef __cplusplus
extern "C" {
#endif

// What the collector offers, found by its name. Only grows; `size` says how much of it there is.
struct pasta_collector {
  size_t size;
  // A range from now on; gives what end() needs. `name` need not end with a zero.
  uint64_t (*begin)(const char* name, size_t bytes);
  void (*end)(uint64_t range);  // 0: the innermost
  void (*mark)(const char* name, size_t bytes);
  void (*step)(void);
  void (*start)(void);
  void (*stop)(void);
  void (*tag)(const void* address, size_t size, const char* name, size_t bytes);
};
typedef const struct pasta_collector* (*pasta_collector_function)(void);
// The function of this name gives the collector, or null when it has nowhere to write.
#define PASTA_COLLECTOR_FUNCTION "pasta_collector_v1"

// Null when nobody watches.
static inline const struct pasta_collector* pasta_find_collector(void) {
  // 0: not looked for yet; 1: there is none.
  static uintptr_t known = 0;
  uintptr_t collector = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (collector == 0) {
#ifdef __linux__
    void* symbol = dlsym != NULL ? dlsym(NULL, PASTA_COLLECTOR_FUNCTION) : NULL;
    if (symbol != NULL) {
      pasta_collector_function function;
      memcpy(&function, &symbol, sizeof function);
      collector = (uintptr_t)function();
    }
#endif
    if (collector == 0) collector = 1;
    __atomic_store_n(&known, collector, __ATOMIC_RELEASE);
  }
  if (collector == 1) return NULL;
  return (const struct pasta_collector*)collector;  // NOLINT(performance-no-int-to-ptr): kept so
}

static inline uint64_t pasta_begin(const char* name) {
  const struct pasta_collector* collector = pasta_find_collector();
  return collector == NULL ? 0 : collector->begin(name, strlen(name));
}
static inline void pasta_end(uint64_t range) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL && range != 0) collector->end(range);
}
static inline void pasta_mark(const char* name) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL) collector->mark(name, strlen(name));
}
static inline void pasta_step(void) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL) collector->step();
}
static inline void pasta_start(void) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL) collector->start();
}
static inline void pasta_stop(void) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL) collector->stop();
}
static inline void pasta_tag(const void* address, size_t bytes, const char* name) {
  const struct pasta_collector* collector = pasta_find_collector();
  if (collector != NULL) collector->tag(address, bytes, name, strlen(name));
}

#ifdef __cplusplus
}  // extern "C"

namespace pasta {

// A range as long as this lives.
class annotate {
 public:
  explicit annotate(const char* name) noexcept : range_(pasta_begin(name)) {}
  ~annotate() { pasta_end(range_); }
  annotate(const annotate&) = delete;
  annotate& operator=(const annotate&) = delete;

 private:
  uint64_t range_;
};

}  // namespace pasta
#endif
