/* A program that uses libpastaprof: reads a trace twice, by events and by a tool.
 *   client TRACE                    events and launches by kernel name, one line each
 *   client TRACE TOOL [PLUGIN...]   the tool's report as JSON
 * Ends with the status of what failed, after a line that says why. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pasta/c.h"

static int failed(const pasta_trace* trace, pasta_status status) {
  fprintf(stderr, "%s\n", pasta_error(trace));
  return (int)status;
}

static int print_events(pasta_trace* trace) {
  const pasta_lookup* tables = pasta_tables(trace);
  for (;;) {
    const pasta_event* events;
    size_t count;
    const pasta_status status = pasta_next(trace, &events, &count);
    for (size_t i = 0; i < count; ++i) {
      const pasta_text name = tables->string(tables, events[i].name);
      pasta_lane lane = {.size = sizeof lane};
      pasta_frame frame = {.size = sizeof frame};
      tables->lane(tables, events[i].lane, &lane);
      tables->frame(tables, events[i].scope, &frame);
      printf("%u %" PRId64 " %" PRId64 " %.*s lane %" PRIu64 " in %.*s\n", events[i].kind,
             events[i].start_ns, events[i].end_ns, (int)name.size, name.data, lane.native_id,
             (int)frame.name.size, frame.name.data);
    }
    if (status != PASTA_OK) return failed(trace, status);
    if (count == 0) return 0;
  }
}

/* What a program built with an older, shorter struct sees, and what unknown ids give. */
static int check_borders(const pasta_trace* trace) {
  const pasta_lookup* tables = pasta_tables(trace);
  pasta_lane lane;
  memset(&lane, 0x5a, sizeof lane);
  lane.size = offsetof(pasta_lane, device);
  tables->lane(tables, 1, &lane);
  if (lane.process == 0x5a5a5a5a || lane.device != 0x5a5a5a5a ||
      lane.native_id != 0x5a5a5a5a5a5a5a5a)
    return 101;
  if (tables->string(tables, UINT32_MAX).size != 0) return 102;
  lane.size = sizeof lane;
  tables->lane(tables, UINT32_MAX, &lane);
  if (lane.device != 0 || lane.name.size != 0) return 103;
  if (tables->count(tables, PASTA_TABLE_STRINGS) < 2 || tables->count(tables, 99) != 0) return 104;
  return 0;
}

int main(int count, char** arguments) {
  if (pasta_abi_version() < PASTA_ABI_VERSION || count < 2) return 100;
  const char* path = arguments[1];
  pasta_trace* trace;
  pasta_status status = pasta_open(&path, 1, NULL, &trace);
  int result = 0;
  if (status != PASTA_OK) {
    result = failed(trace, status);
  } else if (count == 2) {
    result = print_events(trace);
    if (result == 0) result = check_borders(trace);
  } else {
    for (int i = 3; i < count && status == PASTA_OK; ++i) {
      status = pasta_load_plugin(trace, arguments[i]);
    }
    pasta_text json = {NULL, 0};
    const char* tool = arguments[2];
    if (status == PASTA_OK) status = pasta_report(trace, &tool, 1, &json);
    if (status != PASTA_OK) {
      result = failed(trace, status);
    } else {
      fwrite(json.data, 1, json.size, stdout);
    }
  }
  pasta_close(trace);
  return result;
}
