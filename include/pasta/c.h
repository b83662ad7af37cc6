/* The stable C border of PASTA: read traces, run analyses, and write analyses of your own.
 *
 * Everything here is plain C11. Within one PASTA_ABI_VERSION nothing is removed or changes its
 * meaning; structs grow at their end only, which is what their first member `size` is for:
 *   - in a struct that you fill, or that you pass to be filled, set it to sizeof of that struct;
 *   - in a table that you are given, a member exists when it lies within `size`.
 * pasta_event and pasta_text do not grow.
 *
 * Text is UTF-8 unless the trace was not, is given by length, and need not end with a zero byte.
 * No function throws, prints or ends the program. */
#ifndef PASTA_C_H
#define PASTA_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PASTA_ABI_VERSION 1u

#if defined(__GNUC__)
#define PASTA_EXPORT __attribute__((visibility("default")))
#else
#define PASTA_EXPORT
#endif

/* What a function returns; pasta_error() or pasta_plugin_tool.error has the words. */
typedef enum pasta_status {
  PASTA_OK = 0,
  PASTA_USAGE = 1,       /* something that does not exist or does not fit together */
  PASTA_NOT_FOUND = 2,   /* a file or a named thing is not there */
  PASTA_UNSUPPORTED = 3, /* recognised, but cannot be done here */
  PASTA_BAD_INPUT = 4,   /* the input is not what it should be */
  PASTA_IO = 5,          /* the operating system refused */
  PASTA_VENDOR = 6       /* a vendor's library, or a plug-in, refused */
} pasta_status;

typedef struct pasta_text {
  const char* data;
  size_t size;
} pasta_text;

/* ---- Events ------------------------------------------------------------------------------- */

enum pasta_kind {
  PASTA_KIND_API = 0,     /* host call into a runtime or driver */
  PASTA_KIND_SCOPE = 1,   /* named range: operator, module, frame, annotation, iteration mark */
  PASTA_KIND_KERNEL = 2,  /* kernel execution on a device */
  PASTA_KIND_COPY = 3,    /* data movement */
  PASTA_KIND_FILL = 4,    /* memset */
  PASTA_KIND_SYNC = 5,    /* host or device wait */
  PASTA_KIND_ALLOC = 6,   /* memory became usable */
  PASTA_KIND_FREE = 7,    /* memory stopped being usable */
  PASTA_KIND_FAULT = 8,   /* page fault of unified memory */
  PASTA_KIND_COUNTER = 9, /* sampled value */
  PASTA_KIND_DEVICE = 10, /* found out about one launch on the device: by a patch, by samples */
  PASTA_KIND_GAP = 11     /* records were lost here */
};
/* A set of kinds, as in pasta_plugin_tool.needs. */
#define PASTA_KIND_BIT(kind) (UINT32_C(1) << (kind))

/* Bits of pasta_event.flags. */
enum pasta_flag {
  PASTA_FLAG_UNTIMED = 1,     /* no usable times: start_ns == end_ns == PASTA_NO_TIME */
  PASTA_FLAG_UNFINISHED = 2,  /* still open when the source ended */
  PASTA_FLAG_LINKED = 4,      /* device work whose launch call is in the trace */
  PASTA_FLAG_SKEWED = 8,      /* device work that starts before its launch call does */
  PASTA_FLAG_ANNOTATION = 16, /* a range drawn on a device queue that is not device work */
  PASTA_FLAG_INSTANT = 32     /* a moment, not a range */
};
#define PASTA_NO_TIME INT64_MIN
#define PASTA_UNKNOWN_BYTES UINT64_MAX

/* pasta_event.detail, by kind. */
enum pasta_api_domain {
  PASTA_API_UNKNOWN,
  PASTA_API_RUNTIME,
  PASTA_API_DRIVER,
  PASTA_API_COMMUNICATION,
  PASTA_API_OS
};
enum pasta_scope_domain {
  PASTA_SCOPE_UNKNOWN,
  PASTA_SCOPE_OPERATOR,
  PASTA_SCOPE_MODULE,
  PASTA_SCOPE_PYTHON,
  PASTA_SCOPE_ANNOTATION,
  PASTA_SCOPE_ITERATION,
  PASTA_SCOPE_RUNTIME
};
enum pasta_copy_direction {
  PASTA_COPY_UNKNOWN,
  PASTA_COPY_HOST_TO_DEVICE,
  PASTA_COPY_DEVICE_TO_HOST,
  PASTA_COPY_DEVICE_TO_DEVICE,
  PASTA_COPY_HOST_TO_HOST,
  PASTA_COPY_PEER_TO_PEER,
  PASTA_COPY_MIGRATION
};
enum pasta_sync_target {
  PASTA_SYNC_UNKNOWN,
  PASTA_SYNC_CONTEXT,
  PASTA_SYNC_STREAM,
  PASTA_SYNC_EVENT,
  PASTA_SYNC_STREAM_WAITS_EVENT
};
enum pasta_device_times {
  PASTA_DEVICE_TIMES_UNKNOWN,
  PASTA_DEVICE_TIMES_OTHER_RUN,
  PASTA_DEVICE_TIMES_NOT_JOINED
};

/* One thing that happened, 64 bytes. Times are nanoseconds on the trace's own axis. Ids are indices
 * into the tables of pasta_lookup; 0 is none. Events come in order of end_ns, untimed ones first: a
 * short kernel can come before the call that launched it. */
typedef struct pasta_event {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t correlation; /* same value on a launch call and on the work it caused; 0 = none */
  uint32_t name;        /* string */
  uint32_t lane;        /* host thread or device queue it happened on */
  uint32_t scope;       /* frame: innermost scope open around it, or around its launch */
  uint16_t detail;
  uint8_t kind;
  uint8_t flags;
  union {
    uint64_t raw[3];
    struct {
      int32_t status; /* the vendor's return value, 0 = success */
    } api;
    struct {
      uint64_t sequence;       /* autograd sequence number + 1, or 0 */
      uint32_t arguments;      /* string: a JSON object, or none */
      uint32_t forward_thread; /* of a backward range; else 0 */
    } range;
    struct {
      uint32_t grid[3];    /* in blocks; 0 = unknown */
      uint32_t attributes; /* of the launch */
      uint32_t graph_node; /* node of the launched graph, 0 = not from a graph */
      uint32_t ordinal;    /* the n-th launch of its process, from 1; 0 = unknown */
    } kernel;
    struct {
      uint64_t bytes; /* or PASTA_UNKNOWN_BYTES */
      uint64_t src, dst;
    } copy;
    struct {
      uint64_t bytes; /* or PASTA_UNKNOWN_BYTES */
      uint64_t address;
      uint32_t pattern;
    } fill;
    struct {
      uint32_t on; /* lane: the queue waited for, or none */
      uint32_t reserved;
      uint64_t object; /* the vendor's event id */
    } sync;
    struct {
      uint64_t bytes;
      uint64_t address;
      uint32_t device; /* none = host memory */
      uint32_t pool;   /* string */
    } memory;
    struct {
      double value;
      uint32_t unit; /* string */
      uint32_t device;
    } counter;
    struct {
      uint32_t blob;
      uint32_t format; /* string */
      uint64_t launch;
    } device;
    struct {
      uint64_t lost;
    } gap;
  } data;
} pasta_event;

/* ---- What events refer to ------------------------------------------------------------------- */

typedef struct pasta_process {
  size_t size;
  uint64_t native_id;
  pasta_text native_text; /* the source's id, when it was not a number */
  pasta_text name;
  pasta_text host;
  int32_t rank;       /* -1 = unknown */
  int32_t world_size; /* 0 = unknown */
} pasta_process;

enum pasta_device_type {
  PASTA_DEVICE_UNKNOWN,
  PASTA_DEVICE_GPU,
  PASTA_DEVICE_CPU,
  PASTA_DEVICE_ACCELERATOR
};
typedef struct pasta_device { /* 0 and empty = unknown */
  size_t size;
  uint32_t process;
  uint32_t ordinal;
  pasta_text uuid;
  pasta_text name;
  uint32_t type; /* pasta_device_type */
  uint32_t multiprocessors;
  uint32_t compute_major, compute_minor;
  uint32_t max_threads_per_multiprocessor;
  uint32_t warp_size;
  uint64_t memory_bytes;
} pasta_device;

enum pasta_lane_type { PASTA_LANE_THREAD, PASTA_LANE_QUEUE };
typedef struct pasta_lane {
  size_t size;
  uint32_t type; /* pasta_lane_type */
  uint32_t process;
  uint32_t device;        /* of a queue */
  uint64_t context;       /* of a queue, where the source gives it */
  uint64_t native_id;     /* thread id or stream number */
  pasta_text native_text; /* the source's id, when it was not a number */
  pasta_text name;
} pasta_lane;

/* A node of the tree of call paths: `name` inside `parent`. */
typedef struct pasta_frame {
  size_t size;
  uint32_t parent;
  uint32_t domain; /* pasta_scope_domain */
  pasta_text name;
} pasta_frame;

/* How a kernel was launched; 0 = unknown or none. */
typedef struct pasta_attributes {
  size_t size;
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t registers_per_thread;
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  int32_t priority;
  uint32_t collective;
} pasta_attributes;

/* What a communication kernel exchanges with whom; 0 or empty = unknown. */
typedef struct pasta_collective {
  size_t size;
  pasta_text name;
  pasta_text element_type;
  uint64_t in_elements;
  uint64_t out_elements;
  pasta_text group;
  pasta_text ranks;
  uint32_t group_size;
} pasta_collective;

enum pasta_table {
  PASTA_TABLE_STRINGS,
  PASTA_TABLE_PROCESSES,
  PASTA_TABLE_DEVICES,
  PASTA_TABLE_LANES,
  PASTA_TABLE_FRAMES,
  PASTA_TABLE_ATTRIBUTES,
  PASTA_TABLE_COLLECTIVES
};

/* The tables of one trace. They only grow while events are read, and an id stays valid. Text stays
 * valid as long as the trace, or as the tool, that the table was given to. Any thread. An unknown
 * id gives what id 0 gives: empty text, an entry of zeros. The functions fill *out as far as
 * out->size goes. */
typedef struct pasta_lookup pasta_lookup;
struct pasta_lookup {
  size_t size;
  /* Number of ids in use, id 0 included. */
  uint32_t (*count)(const pasta_lookup* lookup, uint32_t pasta_table);
  pasta_text (*string)(const pasta_lookup* lookup, uint32_t id);
  void (*process)(const pasta_lookup* lookup, uint32_t id, pasta_process* out);
  void (*device)(const pasta_lookup* lookup, uint32_t id, pasta_device* out);
  void (*lane)(const pasta_lookup* lookup, uint32_t id, pasta_lane* out);
  void (*frame)(const pasta_lookup* lookup, uint32_t id, pasta_frame* out);
  void (*attributes)(const pasta_lookup* lookup, uint32_t id, pasta_attributes* out);
  void (*collective)(const pasta_lookup* lookup, uint32_t id, pasta_collective* out);
};

/* ---- Reading traces (libpastaprof) ---------------------------------------------------------- */

/* "0.1.0 (commit)" of the library, a string for the life of the program. */
PASTA_EXPORT const char* pasta_version(void);
/* PASTA_ABI_VERSION of the library: refuse to go on when it is less than what you were built with.
 */
PASTA_EXPORT uint32_t pasta_abi_version(void);

/* An opened trace. One thread at a time; different traces are independent. */
typedef struct pasta_trace pasta_trace;

typedef struct pasta_open_options {
  size_t size;
  uint32_t strict;              /* not 0: malformed input is an error, not a counted problem */
  uint64_t memory_budget_bytes; /* for sorting; 0 = the default */
} pasta_open_options;

/* Opens `count` files as one trace (the ranks of a job, or just one file); "-" is standard input.
 * `options` may be NULL. *trace is set in any case, so that pasta_error() can say what went wrong;
 * only when memory is out it is NULL. Give it to pasta_close() in any case. */
PASTA_EXPORT pasta_status pasta_open(const char* const* paths, size_t count,
                                     const pasta_open_options* options, pasta_trace** trace);
PASTA_EXPORT void pasta_close(pasta_trace* trace);

/* Why the last call on this trace failed; "" when it did not. Valid until the next call on it. */
PASTA_EXPORT const char* pasta_error(const pasta_trace* trace);

/* The next events: *events points to *count of them, valid until the next call on this trace. At
 * the end, *count is 0. After an error the next call goes on with what can still be read. */
PASTA_EXPORT pasta_status pasta_next(pasta_trace* trace, const pasta_event** events, size_t* count);
/* The bytes of an event of kind PASTA_KIND_DEVICE; valid as long as that event. */
PASTA_EXPORT pasta_text pasta_blob(const pasta_trace* trace, uint32_t blob);
/* Valid until pasta_close(). */
PASTA_EXPORT const pasta_lookup* pasta_tables(const pasta_trace* trace);

/* Reads the files again, from their beginning, runs the named tools over them and gives their
 * report document as JSON (schema 1), valid until the next call on this trace. "NAME:option=value"
 * sets an option of a tool and may be repeated after it: {"kernels", "kernels:group=class"}.
 * Independent of where pasta_next() is. Not for standard input once it was read. */
PASTA_EXPORT pasta_status pasta_report(pasta_trace* trace, const char* const* tools, size_t count,
                                       pasta_text* json);
/* Makes the tools of a plug-in known to pasta_report() of this trace. */
PASTA_EXPORT pasta_status pasta_load_plugin(pasta_trace* trace, const char* path);

/* ---- Writing an analysis: a plug-in --------------------------------------------------------- */

/* A plug-in is a shared library that exports
 *     const pasta_plugin* pasta_plugin_tools(void);
 * It needs this header only, and links to nothing of PASTA. All it returns is constant and valid
 * while the library is loaded. pasta/plugin.hpp makes one from a C++ class. */

typedef struct pasta_option {
  size_t size;
  const char* name;
  const char* help;
  const char* fallback; /* the value when the user gives none */
} pasta_option;

typedef struct pasta_setting {
  const char* name;
  const char* value;
} pasta_setting;

/* What a tool may look things up in while it runs. Valid during the call that it is given to. */
typedef struct pasta_context pasta_context;
struct pasta_context {
  size_t size;
  const pasta_lookup* lookup; /* valid for the life of the tool */
  /* How a device is called in tables, the same in every tool. Valid for the life of the tool. */
  pasta_text (*device_label)(const pasta_context* context, uint32_t device);
  /* Bytes of an event of kind PASTA_KIND_DEVICE; valid during the call. */
  pasta_text (*blob)(const pasta_context* context, uint32_t blob);
  /* Earliest start of the trace; PASTA_NO_TIME when no event has times. */
  int64_t (*origin_ns)(const pasta_context* context);
};

/* One analysis. The functions of one tool are called from one thread at a time. */
typedef struct pasta_plugin_tool {
  size_t size;
  const char* name; /* lower case, as users write it */
  const char* help; /* one line */
  uint32_t needs;   /* PASTA_KIND_BIT(...) | ...: the only kinds it is given */
  uint32_t option_count;
  const pasta_option* const* options;
  /* Makes *tool. `settings` has every option's value and is valid during the call. When this fails
   * and *tool is not NULL, error() and destroy() are called. */
  pasta_status (*make)(const pasta_setting* settings, size_t count, void** tool);
  /* Events in order of end_ns, valid during the call. */
  pasta_status (*consume)(void* tool, const pasta_event* events, size_t count,
                          const pasta_context* context);
  /* Called once, after the last event. *json is one report,
   *   {"tool": NAME, "title": "...", "parts": [{"type": "table", ...}, ...]}
   * as in the "reports" of a report document; valid until destroy(). */
  pasta_status (*finish)(void* tool, const pasta_context* context, pasta_text* json);
  /* Why the last call failed, in words for the user; may be NULL, and may return NULL. */
  const char* (*error)(const void* tool);
  void (*destroy)(void* tool);
} pasta_plugin_tool;

typedef struct pasta_plugin {
  size_t size;
  uint32_t abi_version; /* PASTA_ABI_VERSION */
  uint32_t tool_count;
  const pasta_plugin_tool* const* tools;
} pasta_plugin;

/* The name of the exported function, and its type. */
#define PASTA_PLUGIN_SYMBOL "pasta_plugin_tools"
typedef const pasta_plugin* (*pasta_plugin_function)(void);

#ifdef __cplusplus
}
#endif

#endif
