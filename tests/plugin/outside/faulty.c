/* Tools that do what no tool may: the host has to say so, and to live. */
#include <stddef.h>

#include "pasta/c.h"

static int object;

static pasta_status make(const pasta_setting* settings, size_t count, void** tool) {
  (void)settings, (void)count;
  *tool = &object;
  return PASTA_OK;
}
static pasta_status make_nothing(const pasta_setting* settings, size_t count, void** tool) {
  (void)settings, (void)count, (void)tool;
  return PASTA_OK;
}
static pasta_status consume(void* tool, const pasta_event* events, size_t count,
                            const pasta_context* context) {
  (void)tool, (void)events, (void)count, (void)context;
  return PASTA_OK;
}
static pasta_status consume_refusing(void* tool, const pasta_event* events, size_t count,
                                     const pasta_context* context) {
  (void)tool, (void)events, (void)count, (void)context;
  return PASTA_BAD_INPUT;
}
static pasta_status finish_bad(void* tool, const pasta_context* context, pasta_text* json) {
  static const char kBad[] = "{\"tool\": \"bad_json\", \"parts\": [";
  (void)tool, (void)context;
  json->data = kBad;
  json->size = sizeof kBad - 1;
  return PASTA_OK;
}
static pasta_status finish_other(void* tool, const pasta_context* context, pasta_text* json) {
  static const char kOther[] = "{\"tool\": \"kernels\", \"title\": \"\", \"parts\": []}";
  (void)tool, (void)context;
  json->data = kOther;
  json->size = sizeof kOther - 1;
  return PASTA_OK;
}
static pasta_status finish_nothing(void* tool, const pasta_context* context, pasta_text* json) {
  (void)tool, (void)context, (void)json;
  return PASTA_OK;
}
static const char* error(const void* tool) {
  (void)tool;
  return "these events are not to my taste";
}
static void destroy(void* tool) { (void)tool; }

PASTA_EXPORT const pasta_plugin* pasta_plugin_tools(void) {
#define TOOL(name, make, consume, finish)                                          \
  static const pasta_plugin_tool name##_tool = {sizeof(pasta_plugin_tool),         \
                                                #name,                             \
                                                "fails",                           \
                                                PASTA_KIND_BIT(PASTA_KIND_KERNEL), \
                                                0,                                 \
                                                NULL,                              \
                                                make,                              \
                                                consume,                           \
                                                finish,                            \
                                                error,                             \
                                                destroy}
  TOOL(bad_json, make, consume, finish_bad);
  TOOL(other_name, make, consume, finish_other);
  TOOL(no_report, make, consume, finish_nothing);
  TOOL(no_tool, make_nothing, consume, finish_bad);
  TOOL(refusing, make, consume_refusing, finish_bad);
  static const pasta_plugin_tool* const kTools[] = {&bad_json_tool, &other_name_tool,
                                                    &no_report_tool, &no_tool_tool, &refusing_tool};
  static const pasta_plugin kPlugin = {sizeof(pasta_plugin), PASTA_ABI_VERSION, 5, kTools};
  return &kPlugin;
}
