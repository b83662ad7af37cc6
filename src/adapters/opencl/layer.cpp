// The layer: what the ICD loader calls in place of the runtime's functions. Each call becomes an
// event of its thread; those that make, use and release objects are followed besides.
//
// Answers are those that the program would get without us. Queues are made with profiling on;
// whoever did not ask for it is told that it is off.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "adapters/opencl/layer.h"

#include <CL/cl_layer.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "adapters/common/python/call_places.h"
#include "adapters/opencl/calls.h"
#include "adapters/opencl/state.h"
#include "adapters/opencl/words.h"

namespace pasta::adapters::opencl {
namespace {

using common::python::CallPlace;
using trace::SpoolPush;

constinit cl_icd_dispatch g_next{};
constinit cl_icd_dispatch g_layer{};
constinit bool g_ready = false;

// Of a call that failed and has no way to say why.
constexpr cl_int kNoReason = std::numeric_limits<cl_int>::min();

// --- Where this thread is

constinit pthread_key_t g_depth{};
constinit bool g_depth_known = false;

// A call of this thread is under way. A signal handler that ends the program from inside of one
// must not find us waiting for what the call holds.
class Inside {
 public:
  Inside() : before_(pthread_getspecific(g_depth)) { pthread_setspecific(g_depth, this); }
  ~Inside() { pthread_setspecific(g_depth, before_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool any() { return pthread_getspecific(g_depth) != nullptr; }

 private:
  void* before_;
};

// --- Events of calls

Event call_event(SpoolPush& push, std::string_view name, cl_int status, std::int64_t start_ns,
                 std::uint64_t correlation) {
  Event event{};
  event.kind = Kind::kApi;
  event.detail = static_cast<std::uint16_t>(ApiDomain::kRuntime);
  event.correlation = correlation;
  event.name = push.string(name);
  event.lane = push.lane();
  event.scope = push.scope();
  event.api.status = status;
  event.start_ns = start_ns;
  event.end_ns = push.now();
  return event;
}

// Gives when the call ended.
std::int64_t put_call(std::string_view name, cl_int status, std::int64_t start_ns,
                      std::uint64_t correlation = 0) {
  SpoolPush push;
  if (!push) return SpoolPush::now();
  const Event event = call_event(push, name, status, start_ns, correlation);
  push.add(event);
  return event.end_ns;
}

void put_wait(std::string_view name, std::int64_t start_ns, SyncTarget target, const Queue* on) {
  SpoolPush push;
  if (!push) return;
  Event event{};
  event.kind = Kind::kSync;
  event.detail = static_cast<std::uint16_t>(target);
  event.name = push.string(name);
  event.lane = push.lane();
  event.scope = push.scope();
  if (on != nullptr) event.sync.on = put_lane(push, *on);
  event.start_ns = start_ns;
  event.end_ns = push.now();
  push.add(event);
}

void put_memory(Kind kind, std::string_view name, std::uint64_t address, std::uint64_t bytes,
                std::string_view pool, const Device* device, std::int64_t start_ns) {
  SpoolPush push;
  if (!push) return;
  Event event{};
  event.kind = kind;
  event.name = push.string(name);
  event.lane = push.lane();
  event.scope = push.scope();
  event.memory.bytes = bytes;
  event.memory.address = address;
  event.memory.pool = push.string(pool);
  if (device != nullptr) event.memory.device = put_device(push, *device);
  event.start_ns = start_ns;
  event.end_ns = push.now();
  push.add(event);
}

// --- A call like any other

template <class Call, class Function>
struct Watched {
  static constexpr bool kPossible = false;  // a place in the table that this platform does not use
};

template <class Call, class R, class... A>
struct Watched<Call, R(CL_API_CALL*)(A...)> {
  static constexpr bool kPossible = true;
  static R CL_API_CALL call(A... given) {
    const Inside inside;
    const std::int64_t start_ns = SpoolPush::now();
    if constexpr (std::is_void_v<R>) {
      (g_next.*Call::kMember)(given...);
      put_call(Call::kName, CL_SUCCESS, start_ns);
    } else if constexpr (std::is_same_v<R, cl_int>) {
      const cl_int status = (g_next.*Call::kMember)(given...);
      put_call(Call::kName, status, start_ns);
      return status;
    } else if constexpr (std::is_same_v<std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>,
                                        cl_int*>) {
      std::tuple<A...> arguments(given...);
      cl_int status = CL_SUCCESS;
      cl_int*& told = std::get<sizeof...(A) - 1>(arguments);
      if (told == nullptr) told = &status;
      const R result = std::apply(g_next.*Call::kMember, arguments);
      put_call(Call::kName, *told, start_ns);
      return result;
    } else {
      const R result = (g_next.*Call::kMember)(given...);
      put_call(Call::kName, result == R{} ? kNoReason : CL_SUCCESS, start_ns);
      return result;
    }
  }
};

#define PASTA_OPENCL_CALL(name)                             \
  struct Call_##name {                                      \
    static constexpr auto kMember = &cl_icd_dispatch::name; \
    static constexpr std::string_view kName = #name;        \
  };
PASTA_OPENCL_CALLS(PASTA_OPENCL_CALL)
#undef PASTA_OPENCL_CALL

template <auto Function>
struct Guarded;

template <class R, class... A, R(CL_API_CALL* Function)(A...)>
struct Guarded<Function> {
  static R CL_API_CALL call(A... given) {
    const Inside inside;
    return Function(given...);
  }
};

// `call` with the given place for its status, or our own.
template <class Call>
auto with_status(cl_int* given, cl_int& status, Call call) {
  auto result = call(&status);
  if (given != nullptr) *given = status;
  return result;
}

// --- Commands

// What a command is, but for what only its queue knows.
struct Work {
  Event what{};
  std::string_view name;
  LaunchAttributes attributes;
};

Work copy(std::string_view name, CopyDirection direction, std::uint64_t bytes, std::uint64_t src,
          std::uint64_t dst) {
  Work work;
  work.name = name;
  work.what.kind = Kind::kCopy;
  work.what.detail = static_cast<std::uint16_t>(direction);
  work.what.copy = {.bytes = bytes, .src = src, .dst = dst};
  return work;
}

Work fill(std::string_view name, std::uint64_t bytes, std::uint64_t address, const void* pattern,
          std::size_t pattern_bytes) {
  Work work;
  work.name = name;
  work.what.kind = Kind::kFill;
  work.what.fill.bytes = bytes;
  work.what.fill.address = address;
  if (pattern != nullptr) {
    std::memcpy(&work.what.fill.pattern, pattern, std::min<std::size_t>(pattern_bytes, 4));
  }
  return work;
}

Work point(std::string_view name) {
  Work work;
  work.name = name;
  work.what.kind = Kind::kSync;
  work.what.detail = static_cast<std::uint16_t>(SyncTarget::kStreamWaitsEvent);
  return work;
}

// `call(event)` enqueues and gives a status. `make(queue)` says what; it is asked before the call,
// while its arguments are sure to live. A command of a queue that we cannot follow is a call only.
template <class Make, class Call>
cl_int enqueue(std::string_view name, cl_command_queue handle, cl_event* event, bool blocking,
               Make make, Call call) {
  const CallPlace place;
  Queue* queue = trace::is_collecting() ? queue_of(handle) : nullptr;
  Command* command = nullptr;
  if (queue != nullptr) {
    const Work work = make(*queue);
    command = begin(*queue);
    if (command != nullptr) {
      command->what = work.what;
      command->name = work.name;
      command->attributes = work.attributes;
    }
  }
  const std::int64_t start_ns = command != nullptr ? command->before_ns : SpoolPush::now();
  cl_event own = nullptr;
  cl_event* to = event != nullptr || command == nullptr ? event : &own;
  const cl_int status = call(to);
  std::uint64_t correlation = 0;
  if (command != nullptr && status == CL_SUCCESS) {
    correlation = state().correlations.fetch_add(1, std::memory_order_relaxed) + 1;
    command->what.correlation = correlation;
    if (command->what.kind == Kind::kKernel) {
      command->what.kernel.ordinal = state().launches.fetch_add(1, std::memory_order_relaxed) + 1;
    }
  }
  const std::int64_t end_ns = put_call(name, status, start_ns, correlation);
  if (command == nullptr) return status;
  if (status != CL_SUCCESS) {
    cancel(*command);
    return status;
  }
  if (event != nullptr) g_next.clRetainEvent(*event);
  enqueued(*command, *to, end_ns);
  if (blocking) {
    put_wait(name, start_ns, SyncTarget::kStream, queue);
    look(*queue, true);
  } else {
    look_sometimes(*queue, end_ns);
  }
  return status;
}

std::uint64_t product(const std::size_t* region) {
  return region == nullptr ? 0 : std::uint64_t{region[0]} * region[1] * region[2];
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::uint64_t address_of(cl_mem memory, std::uint64_t offset = 0) {
  const Memory* known = state().memories.find(memory);
  return known == nullptr || known->address == 0 ? 0 : known->address + offset;
}

std::uint64_t image_bytes(cl_mem image, const std::size_t* region) {
  const Memory* known = state().memories.find(image);
  std::size_t element = known == nullptr ? 0 : known->element_bytes;
  if (element == 0) {
    g_next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr);
  }
  return element == 0 || region == nullptr ? kUnknownBytes : element * product(region);
}

std::uint64_t rect_offset(const std::size_t* origin, std::size_t row, std::size_t slice,
                          const std::size_t* region) {
  if (origin == nullptr || region == nullptr) return 0;
  if (row == 0) row = region[0];
  if (slice == 0) slice = region[1] * row;
  return origin[2] * slice + origin[1] * row + origin[0];
}

// --- Kernels

void learn_kernel(cl_kernel handle) {
  Kernel* kernel = state().kernels.make(handle);
  if (kernel == nullptr) return;
  *kernel = {};
  char text[8192];
  std::size_t size = 0;
  if (g_next.clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof text, text, &size) ==
          CL_SUCCESS &&
      size > 0) {
    kernel->name = state().texts.keep({text, size - 1});
  }
}

std::uint32_t to_32(std::uint64_t value) {
  return value > std::numeric_limits<std::uint32_t>::max() ? 0 : static_cast<std::uint32_t>(value);
}

void learn_shape(Kernel& kernel, cl_kernel handle, cl_device_id device) {
  cl_ulong local = 0, private_bytes = 0;
  std::size_t block[3] = {};
  const auto info = [&](cl_kernel_work_group_info what, auto& to) {
    g_next.clGetKernelWorkGroupInfo(handle, device, what, sizeof to, &to, nullptr);
  };
  info(CL_KERNEL_LOCAL_MEM_SIZE, local);
  info(CL_KERNEL_PRIVATE_MEM_SIZE, private_bytes);
  info(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, block);
  kernel.static_bytes = to_32(local >= kernel.local_bytes ? local - kernel.local_bytes : local);
  kernel.private_bytes = to_32(private_bytes);
  for (int i = 0; i < 3; ++i) kernel.block[i] = to_32(block[i]);
  kernel.known = true;
}

Work launch(const Queue& queue, cl_kernel handle, cl_uint dimensions, const std::size_t* global,
            const std::size_t* local) {
  Work work;
  work.what.kind = Kind::kKernel;
  Kernel* kernel = state().kernels.find(handle);
  if (kernel == nullptr || kernel->name.empty()) {
    learn_kernel(handle);
    kernel = state().kernels.find(handle);
  }
  if (kernel == nullptr) return work;
  if (!kernel->known) {
    learn_shape(*kernel, handle,
                static_cast<cl_device_id>(const_cast<void*>(queue.device->handle)));
  }
  work.name = kernel->name;
  work.attributes.static_shared_bytes = kernel->static_bytes;
  work.attributes.dynamic_shared_bytes = kernel->local_bytes;
  work.attributes.local_bytes_per_thread = kernel->private_bytes;
  const bool compiled = kernel->block[0] != 0;
  if (local == nullptr && !compiled) return work;  // the runtime chooses, and tells nobody
  for (cl_uint i = 0; i < 3; ++i) {
    const std::size_t block = i >= dimensions ? 1 : local != nullptr ? local[i] : kernel->block[i];
    const std::size_t items = i >= dimensions ? 1 : global == nullptr ? 0 : global[i];
    work.attributes.block[i] = to_32(block);
    work.what.kernel.grid[i] = block == 0 ? 0 : to_32((items + block - 1) / block);
  }
  return work;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_kernel kernel = with_status(
      told, status, [&](cl_int* place) { return g_next.clCreateKernel(program, name, place); });
  put_call("clCreateKernel", status, start_ns);
  if (kernel != nullptr) learn_kernel(kernel);
  return kernel;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint room, cl_kernel* kernels,
                                  cl_uint* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_uint count = 0;
  const cl_int status = g_next.clCreateKernelsInProgram(program, room, kernels, &count);
  if (told != nullptr) *told = count;
  put_call("clCreateKernelsInProgram", status, start_ns);
  if (status == CL_SUCCESS && kernels != nullptr) {
    for (cl_uint i = 0; i < count && i < room; ++i) learn_kernel(kernels[i]);
  }
  return status;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel source, cl_int* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_kernel kernel =
      with_status(told, status, [&](cl_int* place) { return g_next.clCloneKernel(source, place); });
  put_call("clCloneKernel", status, start_ns);
  if (kernel == nullptr) return kernel;
  learn_kernel(kernel);
  const Kernel* from = state().kernels.find(source);
  Kernel* to = state().kernels.find(kernel);
  if (from != nullptr && to != nullptr) *to = *from;
  return kernel;
}

cl_int CL_API_CALL set_kernel_arg(cl_kernel handle, cl_uint index, std::size_t size,
                                  const void* value) {
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clSetKernelArg(handle, index, size, value);
  put_call("clSetKernelArg", status, start_ns);
  if (status != CL_SUCCESS || value != nullptr || index >= Kernel::kArguments) return status;
  // Local memory, unless it is a buffer that is none: that has the size of a handle, which decides
  // where the runtime does not say.
  cl_kernel_arg_address_qualifier where = CL_KERNEL_ARG_ADDRESS_LOCAL;
  const bool told = g_next.clGetKernelArgInfo != nullptr &&
                    g_next.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                              sizeof where, &where, nullptr) == CL_SUCCESS;
  if (!told && size == sizeof(cl_mem)) return status;
  Kernel* kernel = state().kernels.find(handle);
  if (kernel == nullptr || where != CL_KERNEL_ARG_ADDRESS_LOCAL) return status;
  kernel->local_bytes += to_32(size) - kernel->argument_bytes[index];
  kernel->argument_bytes[index] = to_32(size);
  return status;
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const std::size_t* offset, const std::size_t* global,
                                  const std::size_t* local, cl_uint waits, const cl_event* wait,
                                  cl_event* event) {
  return enqueue(
      "clEnqueueNDRangeKernel", queue, event, false,
      [&](const Queue& on) { return launch(on, kernel, dimensions, global, local); },
      [&](cl_event* place) {
        return g_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                             waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                                const cl_event* wait, cl_event* event) {
  constexpr std::size_t kOne[3] = {1, 1, 1};
  return enqueue(
      "clEnqueueTask", queue, event, false,
      [&](const Queue& on) { return launch(on, kernel, 1, kOne, kOne); },
      [&](cl_event* place) { return g_next.clEnqueueTask(queue, kernel, waits, wait, place); });
}

cl_int CL_API_CALL enqueue_native(cl_command_queue queue, void(CL_CALLBACK* function)(void*),
                                  void* arguments, std::size_t size, cl_uint count,
                                  const cl_mem* memories, const void** places, cl_uint waits,
                                  const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueNativeKernel", queue, event, false,
      [](const Queue&) {
        Work work;
        work.name = "NativeKernel";
        work.what.kind = Kind::kKernel;
        return work;
      },
      [&](cl_event* place) {
        return g_next.clEnqueueNativeKernel(queue, function, arguments, size, count, memories,
                                            places, waits, wait, place);
      });
}

// --- Programs

// The build as a range, by the names of the kernels that came of it.
void put_build(std::string_view call, cl_program program, cl_int status, std::int64_t start_ns) {
  char names[8192];
  std::size_t size = 0;
  Words text;
  text << "build ";
  if (status != CL_SUCCESS) {
    text << "that failed";
  } else if (g_next.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof names, names,
                                     &size) == CL_SUCCESS &&
             size > 1) {
    text << std::string_view(names, size - 1);
  } else {
    text << "program";
  }
  SpoolPush push;
  if (!push) return;
  Event event = call_event(push, call, status, start_ns, 0);
  Event range{};
  range.kind = Kind::kScope;
  range.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
  range.name = push.string(text.text());
  range.lane = event.lane;
  range.scope = event.scope;
  range.start_ns = start_ns;
  range.end_ns = event.end_ns;
  event.scope = push.frame(range.scope, range.name, ScopeDomain::kRuntime);
  push.add(event);
  push.add(range);
}

cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clBuildProgram(program, count, devices, options, notify, data);
  put_build("clBuildProgram", program, status, start_ns);
  return status;
}

cl_program CL_API_CALL link_program(cl_context context, cl_uint count, const cl_device_id* devices,
                                    const char* options, cl_uint programs, const cl_program* from,
                                    void(CL_CALLBACK* notify)(cl_program, void*), void* data,
                                    cl_int* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_program program = with_status(told, status, [&](cl_int* place) {
    return g_next.clLinkProgram(context, count, devices, options, programs, from, notify, data,
                                place);
  });
  put_build("clLinkProgram", program, status, start_ns);
  return program;
}

// --- Memory

// Memory of another object: that lives as long as either.
void join(Memory& part, Memory& whole, std::uint64_t offset = 0) {
  part.parent = &whole;
  part.address = whole.address + offset;
  part.device = whole.device;
  __atomic_fetch_add(&whole.references, 1, __ATOMIC_RELAXED);
}

void put_made(std::string_view call, cl_mem handle, cl_context context, std::uint64_t bytes,
              std::string_view pool, std::int64_t start_ns) {
  Memory* memory = state().memories.make(handle);
  if (memory == nullptr) return;
  *memory = {};
  memory->references = 1;
  // An image of a buffer's memory has none of its own.
  cl_mem whole = nullptr;
  if (pool == "image") {
    g_next.clGetMemObjectInfo(handle, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &whole, nullptr);
    std::size_t element = 0;
    if (g_next.clGetImageInfo(handle, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr) ==
        CL_SUCCESS) {
      memory->element_bytes = to_32(element);
    }
  }
  if (Memory* parent = state().memories.find(whole); parent != nullptr) {
    join(*memory, *parent);
    return;
  }
  std::size_t size = 0;
  if (bytes == 0 &&
      g_next.clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS) {
    bytes = size;
  }
  constexpr std::uint64_t kPage = 4096;
  memory->address = state().addresses.fetch_add((bytes + 2 * kPage - 1) & ~(kPage - 1),
                                                std::memory_order_relaxed);
  memory->bytes = bytes;
  memory->pool = pool;
  if (context == nullptr) {
    g_next.clGetMemObjectInfo(handle, CL_MEM_CONTEXT, sizeof(cl_context), &context, nullptr);
  }
  if (const Context* in = context_of(context)) memory->device = in->device;
  put_memory(Kind::kAlloc, call, memory->address, bytes, pool, memory->device, start_ns);
}

template <class Call>
cl_mem make_memory(std::string_view name, cl_context context, std::uint64_t bytes,
                   std::string_view pool, cl_int* told, Call call) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_mem memory = with_status(told, status, call);
  put_call(name, status, start_ns);
  if (memory != nullptr) put_made(name, memory, context, bytes, pool, start_ns);
  return memory;
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, std::size_t size,
                                 void* host, cl_int* told) {
  return make_memory("clCreateBuffer", context, size, "buffer", told, [&](cl_int* place) {
    return g_next.clCreateBuffer(context, flags, size, host, place);
  });
}

cl_mem CL_API_CALL create_buffer_with(cl_context context, const cl_mem_properties* properties,
                                      cl_mem_flags flags, std::size_t size, void* host,
                                      cl_int* told) {
  return make_memory(
      "clCreateBufferWithProperties", context, size, "buffer", told, [&](cl_int* place) {
        return g_next.clCreateBufferWithProperties(context, properties, flags, size, host, place);
      });
}

cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                const cl_image_format* format, const cl_image_desc* shape,
                                void* host, cl_int* told) {
  return make_memory("clCreateImage", context, 0, "image", told, [&](cl_int* place) {
    return g_next.clCreateImage(context, flags, format, shape, host, place);
  });
}

cl_mem CL_API_CALL create_image_with(cl_context context, const cl_mem_properties* properties,
                                     cl_mem_flags flags, const cl_image_format* format,
                                     const cl_image_desc* shape, void* host, cl_int* told) {
  return make_memory("clCreateImageWithProperties", context, 0, "image", told, [&](cl_int* place) {
    return g_next.clCreateImageWithProperties(context, properties, flags, format, shape, host,
                                              place);
  });
}

cl_mem CL_API_CALL create_image_2d(cl_context context, cl_mem_flags flags,
                                   const cl_image_format* format, std::size_t width,
                                   std::size_t height, std::size_t row, void* host, cl_int* told) {
  return make_memory("clCreateImage2D", context, 0, "image", told, [&](cl_int* place) {
    return g_next.clCreateImage2D(context, flags, format, width, height, row, host, place);
  });
}

cl_mem CL_API_CALL create_image_3d(cl_context context, cl_mem_flags flags,
                                   const cl_image_format* format, std::size_t width,
                                   std::size_t height, std::size_t depth, std::size_t row,
                                   std::size_t slice, void* host, cl_int* told) {
  return make_memory("clCreateImage3D", context, 0, "image", told, [&](cl_int* place) {
    return g_next.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host,
                                  place);
  });
}

cl_mem CL_API_CALL create_pipe(cl_context context, cl_mem_flags flags, cl_uint packet,
                               cl_uint packets, const cl_pipe_properties* properties,
                               cl_int* told) {
  return make_memory("clCreatePipe", context, 0, "pipe", told, [&](cl_int* place) {
    return g_next.clCreatePipe(context, flags, packet, packets, properties, place);
  });
}

// No memory of its own: its addresses are its parent's.
cl_mem CL_API_CALL create_sub_buffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                     const void* facts, cl_int* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_mem handle = with_status(told, status, [&](cl_int* place) {
    return g_next.clCreateSubBuffer(parent, flags, type, facts, place);
  });
  put_call("clCreateSubBuffer", status, start_ns);
  Memory* memory = handle == nullptr ? nullptr : state().memories.make(handle);
  if (memory == nullptr) return handle;
  *memory = {};
  memory->references = 1;
  Memory* whole = state().memories.find(parent);
  if (whole == nullptr || type != CL_BUFFER_CREATE_TYPE_REGION) return handle;
  const auto& region = *static_cast<const cl_buffer_region*>(facts);
  join(*memory, *whole, region.origin);
  memory->bytes = region.size;
  return handle;
}

cl_int CL_API_CALL retain_memory(cl_mem handle) {
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clRetainMemObject(handle);
  put_call("clRetainMemObject", status, start_ns);
  Memory* memory = state().memories.find(handle);
  if (status == CL_SUCCESS && memory != nullptr) {
    __atomic_fetch_add(&memory->references, 1, __ATOMIC_RELAXED);
  }
  return status;
}

// Counted before the call, after which another object may have the same handle.
cl_int CL_API_CALL release_memory(cl_mem handle) {
  const std::int64_t start_ns = SpoolPush::now();
  Memory* memory = state().memories.find(handle);
  Memory gone{};
  if (memory != nullptr && memory->references > 0) {
    if (__atomic_sub_fetch(&memory->references, 1, __ATOMIC_ACQ_REL) == 0) {
      gone = *memory;
      Memory* parent = memory->parent;
      if (parent != nullptr) {
        gone = {};
        if (__atomic_sub_fetch(&parent->references, 1, __ATOMIC_ACQ_REL) == 0) gone = *parent;
      }
    }
  }
  const cl_int status = g_next.clReleaseMemObject(handle);
  put_call("clReleaseMemObject", status, start_ns);
  if (status == CL_SUCCESS && gone.address != 0) {
    put_memory(Kind::kFree, "clReleaseMemObject", gone.address, gone.bytes, gone.pool, gone.device,
               start_ns);
  }
  return status;
}

void* CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, std::size_t size,
                            cl_uint alignment) {
  const std::int64_t start_ns = SpoolPush::now();
  void* pointer = g_next.clSVMAlloc(context, flags, size, alignment);
  put_call("clSVMAlloc", pointer == nullptr ? kNoReason : CL_SUCCESS, start_ns);
  Shared* shared = pointer == nullptr ? nullptr : state().shared.make(pointer);
  if (shared == nullptr) return pointer;
  const Context* in = context_of(context);
  *shared = {size, true, in == nullptr ? nullptr : in->device};
  put_memory(Kind::kAlloc, "clSVMAlloc", address_of(pointer), size, "svm", shared->device,
             start_ns);
  return pointer;
}

void put_svm_freed(std::string_view call, const void* pointer, std::int64_t start_ns) {
  Shared* shared = state().shared.find(pointer);
  if (shared == nullptr || !shared->alive) return;
  shared->alive = false;
  put_memory(Kind::kFree, call, address_of(pointer), shared->bytes, "svm", shared->device,
             start_ns);
}

void CL_API_CALL svm_free(cl_context context, void* pointer) {
  const std::int64_t start_ns = SpoolPush::now();
  put_svm_freed("clSVMFree", pointer, start_ns);
  g_next.clSVMFree(context, pointer);
  put_call("clSVMFree", CL_SUCCESS, start_ns);
}

cl_int CL_API_CALL enqueue_svm_free(cl_command_queue queue, cl_uint count, void* pointers[],
                                    void(CL_CALLBACK* function)(cl_command_queue, cl_uint, void*[],
                                                                void*),
                                    void* data, cl_uint waits, const cl_event* wait,
                                    cl_event* event) {
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status =
      g_next.clEnqueueSVMFree(queue, count, pointers, function, data, waits, wait, event);
  put_call("clEnqueueSVMFree", status, start_ns);
  // A function of the program's frees by itself.
  if (status != CL_SUCCESS || function != nullptr || pointers == nullptr) return status;
  for (cl_uint i = 0; i < count; ++i) put_svm_freed("clEnqueueSVMFree", pointers[i], start_ns);
  return status;
}

bool is_shared(const void* pointer) {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  return state().shared.any([&](const void* begin, const Shared& shared) {
    const auto from = reinterpret_cast<std::uintptr_t>(begin);
    return shared.alive && at >= from && at < from + shared.bytes;
  }) != nullptr;
}

// --- Copies and fills

cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                std::size_t offset, std::size_t size, void* to, cl_uint waits,
                                const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueReadBuffer", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("ReadBuffer", CopyDirection::kDeviceToHost, size, address_of(memory, offset),
                    address_of(to));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueReadBuffer(queue, memory, blocking, offset, size, to, waits, wait,
                                          place);
      });
}

cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                 std::size_t offset, std::size_t size, const void* from,
                                 cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueWriteBuffer", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("WriteBuffer", CopyDirection::kHostToDevice, size, address_of(from),
                    address_of(memory, offset));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueWriteBuffer(queue, memory, blocking, offset, size, from, waits, wait,
                                           place);
      });
}

cl_int CL_API_CALL enqueue_read_rect(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                     const std::size_t* origin, const std::size_t* host_origin,
                                     const std::size_t* region, std::size_t row, std::size_t slice,
                                     std::size_t host_row, std::size_t host_slice, void* to,
                                     cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueReadBufferRect", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("ReadBufferRect", CopyDirection::kDeviceToHost, product(region),
                    address_of(memory, rect_offset(origin, row, slice, region)),
                    address_of(to) + rect_offset(host_origin, host_row, host_slice, region));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueReadBufferRect(queue, memory, blocking, origin, host_origin, region,
                                              row, slice, host_row, host_slice, to, waits, wait,
                                              place);
      });
}

cl_int CL_API_CALL enqueue_write_rect(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                      const std::size_t* origin, const std::size_t* host_origin,
                                      const std::size_t* region, std::size_t row, std::size_t slice,
                                      std::size_t host_row, std::size_t host_slice,
                                      const void* from, cl_uint waits, const cl_event* wait,
                                      cl_event* event) {
  return enqueue(
      "clEnqueueWriteBufferRect", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("WriteBufferRect", CopyDirection::kHostToDevice, product(region),
                    address_of(from) + rect_offset(host_origin, host_row, host_slice, region),
                    address_of(memory, rect_offset(origin, row, slice, region)));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueWriteBufferRect(queue, memory, blocking, origin, host_origin, region,
                                               row, slice, host_row, host_slice, from, waits, wait,
                                               place);
      });
}

cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to,
                                std::size_t from_offset, std::size_t to_offset, std::size_t size,
                                cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueCopyBuffer", queue, event, false,
      [&](const Queue&) {
        return copy("CopyBuffer", CopyDirection::kDeviceToDevice, size,
                    address_of(from, from_offset), address_of(to, to_offset));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, waits,
                                          wait, place);
      });
}

cl_int CL_API_CALL enqueue_copy_rect(cl_command_queue queue, cl_mem from, cl_mem to,
                                     const std::size_t* from_origin, const std::size_t* to_origin,
                                     const std::size_t* region, std::size_t from_row,
                                     std::size_t from_slice, std::size_t to_row,
                                     std::size_t to_slice, cl_uint waits, const cl_event* wait,
                                     cl_event* event) {
  return enqueue(
      "clEnqueueCopyBufferRect", queue, event, false,
      [&](const Queue&) {
        return copy("CopyBufferRect", CopyDirection::kDeviceToDevice, product(region),
                    address_of(from, rect_offset(from_origin, from_row, from_slice, region)),
                    address_of(to, rect_offset(to_origin, to_row, to_slice, region)));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region,
                                              from_row, from_slice, to_row, to_slice, waits, wait,
                                              place);
      });
}

cl_int CL_API_CALL enqueue_read_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                      const std::size_t* origin, const std::size_t* region,
                                      std::size_t row, std::size_t slice, void* to, cl_uint waits,
                                      const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueReadImage", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("ReadImage", CopyDirection::kDeviceToHost, image_bytes(image, region),
                    address_of(image), address_of(to));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, to,
                                         waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_write_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                       const std::size_t* origin, const std::size_t* region,
                                       std::size_t row, std::size_t slice, const void* from,
                                       cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueWriteImage", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("WriteImage", CopyDirection::kHostToDevice, image_bytes(image, region),
                    address_of(from), address_of(image));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, from,
                                          waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_copy_image(cl_command_queue queue, cl_mem from, cl_mem to,
                                      const std::size_t* from_origin, const std::size_t* to_origin,
                                      const std::size_t* region, cl_uint waits,
                                      const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueCopyImage", queue, event, false,
      [&](const Queue&) {
        return copy("CopyImage", CopyDirection::kDeviceToDevice, image_bytes(from, region),
                    address_of(from), address_of(to));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region, waits,
                                         wait, place);
      });
}

cl_int CL_API_CALL enqueue_image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                           const std::size_t* origin, const std::size_t* region,
                                           std::size_t offset, cl_uint waits, const cl_event* wait,
                                           cl_event* event) {
  return enqueue(
      "clEnqueueCopyImageToBuffer", queue, event, false,
      [&](const Queue&) {
        return copy("CopyImageToBuffer", CopyDirection::kDeviceToDevice, image_bytes(from, region),
                    address_of(from), address_of(to, offset));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset, waits,
                                                 wait, place);
      });
}

cl_int CL_API_CALL enqueue_buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to,
                                           std::size_t offset, const std::size_t* origin,
                                           const std::size_t* region, cl_uint waits,
                                           const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueCopyBufferToImage", queue, event, false,
      [&](const Queue&) {
        return copy("CopyBufferToImage", CopyDirection::kDeviceToDevice, image_bytes(to, region),
                    address_of(from, offset), address_of(to));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region, waits,
                                                 wait, place);
      });
}

cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void* pattern,
                                std::size_t pattern_bytes, std::size_t offset, std::size_t size,
                                cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueFillBuffer", queue, event, false,
      [&](const Queue&) {
        return fill("FillBuffer", size, address_of(memory, offset), pattern, pattern_bytes);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, size,
                                          waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_fill_image(cl_command_queue queue, cl_mem image, const void* color,
                                      const std::size_t* origin, const std::size_t* region,
                                      cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueFillImage", queue, event, false,
      [&](const Queue&) {
        return fill("FillImage", image_bytes(image, region), address_of(image), nullptr, 0);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueFillImage(queue, image, color, origin, region, waits, wait, place);
      });
}

// What a map moves, the runtime knows: nothing where the host can see the memory of the device.
void* CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                              cl_map_flags flags, std::size_t offset, std::size_t size,
                              cl_uint waits, const cl_event* wait, cl_event* event, cl_int* told) {
  void* mapped = nullptr;
  const cl_int status = enqueue(
      "clEnqueueMapBuffer", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("MapBuffer", CopyDirection::kDeviceToHost, kUnknownBytes,
                    address_of(memory, offset), 0);
      },
      [&](cl_event* place) {
        cl_int result = CL_SUCCESS;
        mapped = g_next.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, waits,
                                           wait, place, &result);
        return result;
      });
  if (told != nullptr) *told = status;
  return mapped;
}

void* CL_API_CALL enqueue_map_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                    cl_map_flags flags, const std::size_t* origin,
                                    const std::size_t* region, std::size_t* row, std::size_t* slice,
                                    cl_uint waits, const cl_event* wait, cl_event* event,
                                    cl_int* told) {
  void* mapped = nullptr;
  const cl_int status = enqueue(
      "clEnqueueMapImage", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("MapImage", CopyDirection::kDeviceToHost, kUnknownBytes, address_of(image), 0);
      },
      [&](cl_event* place) {
        cl_int result = CL_SUCCESS;
        mapped = g_next.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice,
                                          waits, wait, place, &result);
        return result;
      });
  if (told != nullptr) *told = status;
  return mapped;
}

cl_int CL_API_CALL enqueue_unmap(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint waits,
                                 const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueUnmapMemObject", queue, event, false,
      [&](const Queue&) {
        return copy("UnmapMemObject", CopyDirection::kHostToDevice, kUnknownBytes,
                    address_of(mapped), address_of(memory));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueUnmapMemObject(queue, memory, mapped, waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_migrate(cl_command_queue queue, cl_uint count, const cl_mem* memories,
                                   cl_mem_migration_flags flags, cl_uint waits,
                                   const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueMigrateMemObjects", queue, event, false,
      [&](const Queue&) {
        return copy("MigrateMemObjects", CopyDirection::kMigration, kUnknownBytes, 0, 0);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueMigrateMemObjects(queue, count, memories, flags, waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_svm_copy(cl_command_queue queue, cl_bool blocking, void* to,
                                    const void* from, std::size_t size, cl_uint waits,
                                    const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueSVMMemcpy", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        using enum CopyDirection;
        const bool reads = is_shared(from), writes = is_shared(to);
        return copy("SVMMemcpy",
                    reads    ? writes ? kDeviceToDevice : kDeviceToHost
                    : writes ? kHostToDevice
                             : kHostToHost,
                    size, address_of(from), address_of(to));
      },
      [&](cl_event* place) {
        return g_next.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_svm_fill(cl_command_queue queue, void* at, const void* pattern,
                                    std::size_t pattern_bytes, std::size_t size, cl_uint waits,
                                    const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueSVMMemFill", queue, event, false,
      [&](const Queue&) {
        return fill("SVMMemFill", size, address_of(at), pattern, pattern_bytes);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueSVMMemFill(queue, at, pattern, pattern_bytes, size, waits, wait,
                                          place);
      });
}

cl_int CL_API_CALL enqueue_svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                   void* at, std::size_t size, cl_uint waits, const cl_event* wait,
                                   cl_event* event) {
  return enqueue(
      "clEnqueueSVMMap", queue, event, blocking != CL_FALSE,
      [&](const Queue&) {
        return copy("SVMMap", CopyDirection::kDeviceToHost, kUnknownBytes, address_of(at), 0);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueSVMMap(queue, blocking, flags, at, size, waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_svm_unmap(cl_command_queue queue, void* at, cl_uint waits,
                                     const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueSVMUnmap", queue, event, false,
      [&](const Queue&) {
        return copy("SVMUnmap", CopyDirection::kHostToDevice, kUnknownBytes, 0, address_of(at));
      },
      [&](cl_event* place) { return g_next.clEnqueueSVMUnmap(queue, at, waits, wait, place); });
}

cl_int CL_API_CALL enqueue_svm_migrate(cl_command_queue queue, cl_uint count, const void** pointers,
                                       const std::size_t* sizes, cl_mem_migration_flags flags,
                                       cl_uint waits, const cl_event* wait, cl_event* event) {
  return enqueue(
      "clEnqueueSVMMigrateMem", queue, event, false,
      [&](const Queue&) {
        return copy("SVMMigrateMem", CopyDirection::kMigration, kUnknownBytes, 0, 0);
      },
      [&](cl_event* place) {
        return g_next.clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, waits, wait,
                                             place);
      });
}

// --- Queues, events, waiting

cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_event* event) {
  return enqueue(
      "clEnqueueMarker", queue, event, false, [](const Queue&) { return point("Marker"); },
      [&](cl_event* place) { return g_next.clEnqueueMarker(queue, place); });
}

cl_int CL_API_CALL enqueue_marker_with(cl_command_queue queue, cl_uint waits, const cl_event* wait,
                                       cl_event* event) {
  return enqueue(
      "clEnqueueMarkerWithWaitList", queue, event, false,
      [](const Queue&) { return point("Marker"); },
      [&](cl_event* place) {
        return g_next.clEnqueueMarkerWithWaitList(queue, waits, wait, place);
      });
}

cl_int CL_API_CALL enqueue_barrier_with(cl_command_queue queue, cl_uint waits, const cl_event* wait,
                                        cl_event* event) {
  return enqueue(
      "clEnqueueBarrierWithWaitList", queue, event, false,
      [](const Queue&) { return point("Barrier"); },
      [&](cl_event* place) {
        return g_next.clEnqueueBarrierWithWaitList(queue, waits, wait, place);
      });
}

// At exit after the runtime was loaded: before its own handlers take it down.
void at_end(int, void*) {
  if (!Inside::any()) finish();
}

void learn_queue(cl_command_queue handle, bool asked) {
  Queue* queue = new_queue(handle);
  if (queue != nullptr) queue->asked_profiling = asked;
  static std::atomic<bool> told = false;
  if (!told.exchange(true)) on_exit(at_end, nullptr);
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_command_queue queue =
      g_next.clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, &status);
  // What is wrong with it without us is what the program is to be told.
  if (queue == nullptr) {
    queue = g_next.clCreateCommandQueue(context, device, properties, &status);
  }
  if (told != nullptr) *told = status;
  put_call("clCreateCommandQueue", status, start_ns);
  if (queue != nullptr) learn_queue(queue, (properties & CL_QUEUE_PROFILING_ENABLE) != 0);
  return queue;
}

cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                               const cl_queue_properties* properties,
                                               cl_int* told) {
  constexpr std::uint32_t kMost = 16;
  cl_queue_properties ours[kMost + 3];
  std::uint32_t count = 0;
  bool fits = true, found = false;
  cl_queue_properties asked = 0;
  for (const cl_queue_properties* at = properties; at != nullptr && *at != 0; at += 2) {
    if (count + 2 > kMost) {
      fits = false;
      break;
    }
    ours[count] = at[0];
    ours[count + 1] = at[1];
    if (at[0] == CL_QUEUE_PROPERTIES) {
      asked = at[1];
      found = true;
      ours[count + 1] |= CL_QUEUE_PROFILING_ENABLE;
    }
    count += 2;
  }
  const std::uint32_t given = count;
  if (!found) {
    ours[count++] = CL_QUEUE_PROPERTIES;
    ours[count++] = CL_QUEUE_PROFILING_ENABLE;
  }
  ours[count] = 0;
  const std::int64_t start_ns = SpoolPush::now();
  cl_int status = CL_SUCCESS;
  cl_command_queue handle = nullptr;
  // A queue of the device's own is not the host's to follow.
  if (fits && (asked & CL_QUEUE_ON_DEVICE) == 0) {
    handle = g_next.clCreateCommandQueueWithProperties(context, device, ours, &status);
  }
  if (handle == nullptr) {
    handle = g_next.clCreateCommandQueueWithProperties(context, device, properties, &status);
  }
  if (told != nullptr) *told = status;
  put_call("clCreateCommandQueueWithProperties", status, start_ns);
  if (handle == nullptr) return handle;
  learn_queue(handle, (asked & CL_QUEUE_PROFILING_ENABLE) != 0);
  Queue** known = state().queues.find(handle);
  if (!fits || known == nullptr || *known == nullptr) return handle;
  Queue& queue = **known;
  queue.has_properties = true;
  if (properties != nullptr) {
    for (std::uint32_t i = 0; i < given; ++i) queue.properties[i] = properties[i];
    queue.property_count = given + 1;
  }
  return handle;
}

cl_int CL_API_CALL queue_info(cl_command_queue handle, cl_command_queue_info what, std::size_t size,
                              void* value, std::size_t* told) {
  const std::int64_t start_ns = SpoolPush::now();
  Queue** known = state().queues.find(handle);
  const Queue* queue = known == nullptr ? nullptr : *known;
  cl_int status = CL_SUCCESS;
  if (queue != nullptr && what == CL_QUEUE_PROPERTIES_ARRAY && queue->has_properties) {
    // The runtime says whether it knows such a thing at all.
    status = g_next.clGetCommandQueueInfo(handle, what, 0, nullptr, nullptr);
    const std::size_t bytes = queue->property_count * sizeof(cl_queue_properties);
    if (status == CL_SUCCESS && value != nullptr && size < bytes) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS) {
      if (value != nullptr && bytes > 0) std::memcpy(value, queue->properties, bytes);
      if (told != nullptr) *told = bytes;
    }
  } else {
    status = g_next.clGetCommandQueueInfo(handle, what, size, value, told);
    if (status == CL_SUCCESS && queue != nullptr && what == CL_QUEUE_PROPERTIES &&
        value != nullptr && !queue->asked_profiling) {
      *static_cast<cl_command_queue_properties*>(value) &=
          ~cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE};
    }
  }
  put_call("clGetCommandQueueInfo", status, start_ns);
  return status;
}

cl_int CL_API_CALL profiling_info(cl_event event, cl_profiling_info what, std::size_t size,
                                  void* value, std::size_t* told) {
  const std::int64_t start_ns = SpoolPush::now();
  cl_command_queue handle = nullptr;
  cl_int status = g_next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(cl_command_queue),
                                        &handle, nullptr);
  Queue** known = status == CL_SUCCESS ? state().queues.find(handle) : nullptr;
  if (known != nullptr && *known != nullptr && !(*known)->asked_profiling) {
    status = CL_PROFILING_INFO_NOT_AVAILABLE;
  } else {
    status = g_next.clGetEventProfilingInfo(event, what, size, value, told);
  }
  put_call("clGetEventProfilingInfo", status, start_ns);
  return status;
}

cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, std::size_t size, void* value,
                              std::size_t* told) {
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clGetEventInfo(event, what, size, value, told);
  put_call("clGetEventInfo", status, start_ns);
  if (status != CL_SUCCESS || value == nullptr) return status;
  if (what == CL_EVENT_REFERENCE_COUNT) {
    if (holds(event)) --*static_cast<cl_uint*>(value);
  } else if (what == CL_EVENT_COMMAND_EXECUTION_STATUS &&
             *static_cast<cl_int*>(value) <= CL_COMPLETE) {
    // Who asks until it is done, waits.
    cl_command_queue handle = nullptr;
    g_next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(cl_command_queue), &handle,
                          nullptr);
    Queue** known = state().queues.find(handle);
    if (known != nullptr && *known != nullptr) look(**known, true);
  }
  return status;
}

cl_int CL_API_CALL finish_queue(cl_command_queue handle) {
  const CallPlace place;
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clFinish(handle);
  put_call("clFinish", status, start_ns);
  Queue** known = state().queues.find(handle);
  if (known == nullptr || *known == nullptr) return status;
  put_wait("clFinish", start_ns, SyncTarget::kStream, *known);
  look(**known, true);
  return status;
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  const CallPlace place;
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clWaitForEvents(count, events);
  put_call("clWaitForEvents", status, start_ns);
  put_wait("clWaitForEvents", start_ns, SyncTarget::kEvent, nullptr);
  look_at_all();
  return status;
}

cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  Queue** known = state().queues.find(handle);
  if (known != nullptr && *known != nullptr) look(**known, true);
  const std::int64_t start_ns = SpoolPush::now();
  const cl_int status = g_next.clReleaseCommandQueue(handle);
  put_call("clReleaseCommandQueue", status, start_ns);
  return status;
}

template <class Call>
void watch() {
  using Function = std::remove_cvref_t<decltype(g_next.*Call::kMember)>;
  if constexpr (Watched<Call, Function>::kPossible) {
    if (g_next.*Call::kMember != nullptr) g_layer.*Call::kMember = Watched<Call, Function>::call;
  }
}

void set_up() {
#define PASTA_OPENCL_CALL(name) watch<Call_##name>();
  PASTA_OPENCL_CALLS(PASTA_OPENCL_CALL)
#undef PASTA_OPENCL_CALL
#define PASTA_OPENCL_OWN(name, function) \
  if (g_next.name != nullptr) g_layer.name = Guarded<function>::call;
  PASTA_OPENCL_OWN(clCreateKernel, create_kernel)
  PASTA_OPENCL_OWN(clCreateKernelsInProgram, create_kernels)
  PASTA_OPENCL_OWN(clCloneKernel, clone_kernel)
  PASTA_OPENCL_OWN(clSetKernelArg, set_kernel_arg)
  PASTA_OPENCL_OWN(clEnqueueNDRangeKernel, enqueue_kernel)
  PASTA_OPENCL_OWN(clEnqueueTask, enqueue_task)
  PASTA_OPENCL_OWN(clEnqueueNativeKernel, enqueue_native)
  PASTA_OPENCL_OWN(clBuildProgram, build_program)
  PASTA_OPENCL_OWN(clLinkProgram, link_program)
  PASTA_OPENCL_OWN(clCreateBuffer, create_buffer)
  PASTA_OPENCL_OWN(clCreateBufferWithProperties, create_buffer_with)
  PASTA_OPENCL_OWN(clCreateImage, create_image)
  PASTA_OPENCL_OWN(clCreateImageWithProperties, create_image_with)
  PASTA_OPENCL_OWN(clCreateImage2D, create_image_2d)
  PASTA_OPENCL_OWN(clCreateImage3D, create_image_3d)
  PASTA_OPENCL_OWN(clCreatePipe, create_pipe)
  PASTA_OPENCL_OWN(clCreateSubBuffer, create_sub_buffer)
  PASTA_OPENCL_OWN(clRetainMemObject, retain_memory)
  PASTA_OPENCL_OWN(clReleaseMemObject, release_memory)
  PASTA_OPENCL_OWN(clSVMAlloc, svm_alloc)
  PASTA_OPENCL_OWN(clSVMFree, svm_free)
  PASTA_OPENCL_OWN(clEnqueueSVMFree, enqueue_svm_free)
  PASTA_OPENCL_OWN(clEnqueueReadBuffer, enqueue_read)
  PASTA_OPENCL_OWN(clEnqueueWriteBuffer, enqueue_write)
  PASTA_OPENCL_OWN(clEnqueueReadBufferRect, enqueue_read_rect)
  PASTA_OPENCL_OWN(clEnqueueWriteBufferRect, enqueue_write_rect)
  PASTA_OPENCL_OWN(clEnqueueCopyBuffer, enqueue_copy)
  PASTA_OPENCL_OWN(clEnqueueCopyBufferRect, enqueue_copy_rect)
  PASTA_OPENCL_OWN(clEnqueueReadImage, enqueue_read_image)
  PASTA_OPENCL_OWN(clEnqueueWriteImage, enqueue_write_image)
  PASTA_OPENCL_OWN(clEnqueueCopyImage, enqueue_copy_image)
  PASTA_OPENCL_OWN(clEnqueueCopyImageToBuffer, enqueue_image_to_buffer)
  PASTA_OPENCL_OWN(clEnqueueCopyBufferToImage, enqueue_buffer_to_image)
  PASTA_OPENCL_OWN(clEnqueueFillBuffer, enqueue_fill)
  PASTA_OPENCL_OWN(clEnqueueFillImage, enqueue_fill_image)
  PASTA_OPENCL_OWN(clEnqueueMapBuffer, enqueue_map)
  PASTA_OPENCL_OWN(clEnqueueMapImage, enqueue_map_image)
  PASTA_OPENCL_OWN(clEnqueueUnmapMemObject, enqueue_unmap)
  PASTA_OPENCL_OWN(clEnqueueMigrateMemObjects, enqueue_migrate)
  PASTA_OPENCL_OWN(clEnqueueSVMMemcpy, enqueue_svm_copy)
  PASTA_OPENCL_OWN(clEnqueueSVMMemFill, enqueue_svm_fill)
  PASTA_OPENCL_OWN(clEnqueueSVMMap, enqueue_svm_map)
  PASTA_OPENCL_OWN(clEnqueueSVMUnmap, enqueue_svm_unmap)
  PASTA_OPENCL_OWN(clEnqueueSVMMigrateMem, enqueue_svm_migrate)
  PASTA_OPENCL_OWN(clEnqueueMarker, enqueue_marker)
  PASTA_OPENCL_OWN(clEnqueueMarkerWithWaitList, enqueue_marker_with)
  PASTA_OPENCL_OWN(clEnqueueBarrierWithWaitList, enqueue_barrier_with)
  PASTA_OPENCL_OWN(clCreateCommandQueue, create_queue)
  PASTA_OPENCL_OWN(clCreateCommandQueueWithProperties, create_queue_with)
  PASTA_OPENCL_OWN(clGetCommandQueueInfo, queue_info)
  PASTA_OPENCL_OWN(clGetEventProfilingInfo, profiling_info)
  PASTA_OPENCL_OWN(clGetEventInfo, event_info)
  PASTA_OPENCL_OWN(clFinish, finish_queue)
  PASTA_OPENCL_OWN(clWaitForEvents, wait_for_events)
  PASTA_OPENCL_OWN(clReleaseCommandQueue, release_queue)
#undef PASTA_OPENCL_OWN
}

}  // namespace

const void* runtime() noexcept { return &g_next; }

bool runtime_is_there() noexcept {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(g_next.clGetEventInfo), &info) != 0;
}

void child_after_fork() noexcept {
  if (g_ready) after_fork();
}

}  // namespace pasta::adapters::opencl

extern "C" {

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what,
                                                                         std::size_t size,
                                                                         void* value,
                                                                         std::size_t* told) {
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  constexpr char kName[] = "pastaprof";
  const bool version = what == CL_LAYER_API_VERSION;
  if (!version && what != CL_LAYER_NAME) return CL_INVALID_VALUE;
  const void* answer = version ? static_cast<const void*>(&kVersion) : kName;
  const std::size_t bytes = version ? sizeof kVersion : sizeof kName;
  if (value != nullptr) {
    if (size < bytes) return CL_INVALID_VALUE;
    std::memcpy(value, answer, bytes);
  }
  if (told != nullptr) *told = bytes;
  return CL_SUCCESS;
}

// Without a run to write into, the layer is not there.
__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(
    cl_uint count, const cl_icd_dispatch* target, cl_uint* told, const cl_icd_dispatch** layer) {
  namespace opencl = pasta::adapters::opencl;
  if (target == nullptr || told == nullptr || layer == nullptr) return CL_INVALID_VALUE;
  constexpr cl_uint kAll = sizeof(cl_icd_dispatch) / sizeof(void*);
  const cl_uint known = std::min(count, kAll);
  *told = known;
  if (!opencl::g_depth_known) {
    opencl::g_depth_known = pthread_key_create(&opencl::g_depth, nullptr) == 0;
  }
  const auto code = [](const cl_icd_dispatch& table) { return table.clGetEventInfo; };
  // A second loader beside the first is not watched; one that was closed and comes again is.
  const bool beside =
      opencl::g_ready && opencl::runtime_is_there() && code(*target) != code(opencl::g_next);
  if (beside || !opencl::g_depth_known || !pasta::trace::in_run()) {
    *layer = target;
    return CL_SUCCESS;
  }
  if (opencl::g_ready) opencl::abandon();
  std::memcpy(static_cast<void*>(&opencl::g_next), target, known * sizeof(void*));
  std::memcpy(static_cast<void*>(&opencl::g_layer), target, known * sizeof(void*));
  opencl::set_up();
  opencl::g_ready = true;
  *layer = &opencl::g_layer;
  return CL_SUCCESS;
}

}  // extern "C"
