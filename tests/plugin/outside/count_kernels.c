/* A plug-in in C: how often each kernel ran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pasta/c.h"

typedef struct {
  uint32_t name; /* a string of the trace */
  long calls;
} row;

typedef struct {
  row* rows;
  size_t used, room;
  long least;
  char* json;
  size_t json_used, json_room;
  const char* error;
} counter;

static const char* const kNoMemory = "out of memory";

static pasta_status make(const pasta_setting* settings, size_t count, void** tool) {
  counter* c = calloc(1, sizeof *c);
  *tool = c;
  if (c == NULL) return PASTA_IO;
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(settings[i].name, "least") != 0) continue;
    char* end;
    c->least = strtol(settings[i].value, &end, 10);
    if (*end != '\0') {
      c->error = "option least needs a whole number";
      return PASTA_USAGE;
    }
  }
  return PASTA_OK;
}

static pasta_status consume(void* tool, const pasta_event* events, size_t count,
                            const pasta_context* context) {
  counter* c = tool;
  (void)context;
  for (size_t i = 0; i < count; ++i) {
    size_t at = 0;
    while (at < c->used && c->rows[at].name != events[i].name) ++at;
    if (at == c->used) {
      if (c->used == c->room) {
        const size_t room = c->room == 0 ? 64 : 2 * c->room;
        row* rows = realloc(c->rows, room * sizeof *rows);
        if (rows == NULL) {
          c->error = kNoMemory;
          return PASTA_IO;
        }
        c->rows = rows;
        c->room = room;
      }
      c->rows[c->used++] = (row){events[i].name, 0};
    }
    ++c->rows[at].calls;
  }
  return PASTA_OK;
}

static int append(counter* c, const char* text, size_t size) {
  if (c->json_used + size > c->json_room) {
    const size_t room = 2 * (c->json_used + size);
    char* json = realloc(c->json, room);
    if (json == NULL) {
      c->error = kNoMemory;
      return 0;
    }
    c->json = json;
    c->json_room = room;
  }
  memcpy(c->json + c->json_used, text, size);
  c->json_used += size;
  return 1;
}

static int append_string(counter* c, pasta_text text) {
  if (!append(c, "\"", 1)) return 0;
  for (size_t i = 0; i < text.size; ++i) {
    const char byte = text.data[i];
    char escape[8];
    int ok;
    if (byte == '"' || byte == '\\') {
      escape[0] = '\\';
      escape[1] = byte;
      ok = append(c, escape, 2);
    } else if ((unsigned char)byte < 0x20) {
      ok = append(c, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)byte));
    } else {
      ok = append(c, &byte, 1);
    }
    if (!ok) return 0;
  }
  return append(c, "\"", 1);
}

static const pasta_context* sorting; /* qsort has no argument for it */

static int by_calls(const void* a, const void* b) {
  const row *x = a, *y = b;
  if (x->calls != y->calls) return x->calls < y->calls ? 1 : -1;
  const pasta_text p = sorting->lookup->string(sorting->lookup, x->name);
  const pasta_text q = sorting->lookup->string(sorting->lookup, y->name);
  const int order = memcmp(p.data, q.data, p.size < q.size ? p.size : q.size);
  return order != 0 ? order : p.size < q.size ? -1 : 1;
}

static pasta_status finish(void* tool, const pasta_context* context, pasta_text* json) {
  static const char kHead[] =
      "{\"tool\": \"count_kernels\", \"title\": \"Kernels counted\", \"parts\": [{\"type\": "
      "\"table\", \"id\": \"counts\", \"title\": \"Counts\", \"columns\": [{\"name\": \"name\"}, "
      "{\"name\": \"calls\", \"unit\": \"count\"}], \"rows\": [";
  counter* c = tool;
  sorting = context;
  if (c->used > 0) qsort(c->rows, c->used, sizeof *c->rows, by_calls);
  if (!append(c, kHead, sizeof kHead - 1)) return PASTA_IO;
  for (size_t i = 0; i < c->used && c->rows[i].calls >= c->least; ++i) {
    char number[32];
    const int size = snprintf(number, sizeof number, ", %ld]", c->rows[i].calls);
    if (!append(c, i == 0 ? "[" : ", [", i == 0 ? 1 : 3) ||
        !append_string(c, context->lookup->string(context->lookup, c->rows[i].name)) ||
        !append(c, number, (size_t)size)) {
      return PASTA_IO;
    }
  }
  if (!append(c, "]}]}", 4)) return PASTA_IO;
  json->data = c->json;
  json->size = c->json_used;
  return PASTA_OK;
}

static const char* error(const void* tool) { return ((const counter*)tool)->error; }

static void destroy(void* tool) {
  counter* c = tool;
  free(c->rows);
  free(c->json);
  free(c);
}

PASTA_EXPORT const pasta_plugin* pasta_plugin_tools(void) {
  static const pasta_option kLeast = {sizeof(pasta_option), "least",
                                      "leave out kernels that ran less often", "0"};
  static const pasta_option* const kOptions[] = {&kLeast};
  static const pasta_plugin_tool kTool = {sizeof(pasta_plugin_tool),
                                          "count_kernels",
                                          "how often each kernel ran",
                                          PASTA_KIND_BIT(PASTA_KIND_KERNEL),
                                          1,
                                          kOptions,
                                          make,
                                          consume,
                                          finish,
                                          error,
                                          destroy};
  static const pasta_plugin_tool* const kTools[] = {&kTool};
  static const pasta_plugin kPlugin = {sizeof(pasta_plugin), PASTA_ABI_VERSION, 1, kTools};
  return &kPlugin;
}
