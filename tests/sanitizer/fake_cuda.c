/* A libcuda.so.1 without a GPU: what the analysis asks it for. */
#include <stddef.h>

int cuCtxSetCurrent(void* context);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuCtxSynchronize(void);
int cuFuncGetParamInfo(void* function, size_t number, size_t* offset, size_t* bytes);
/* All variables of all modules lie at the same place. */
int cuModuleGetGlobal_v2(unsigned long long* address, size_t* bytes, void* module,
                         const char* name) {
  *address = 0x7f5000000000;
  *bytes = 64;
  return module == NULL || *name == 0;
}
int cuStreamCreate(void** stream, unsigned flags);
int cuThreadExchangeStreamCaptureMode(int* mode);
int cuModuleGetGlobal_v2(unsigned long long* address, size_t* bytes, void* module,
                         const char* name);
int cuEventCreate(void** event, unsigned flags);
int cuEventRecord(void* event, void* stream);
int cuEventElapsedTime(float* ms, void* begin, void* end);

int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuCtxPushCurrent_v2(void* context) { return context == NULL; }
int cuCtxPopCurrent_v2(void** context) {
  *context = NULL;
  return 0;
}
int cuCtxSynchronize(void) { return 0; }
/* Kernels that are asked for have one argument, a tensor map. */
int cuFuncGetParamInfo(void* function, size_t number, size_t* offset, size_t* bytes) {
  *offset = 0;
  *bytes = 128;
  return function == NULL || number > 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  static int own;
  *stream = &own;
  return flags != 1;
}
/* Of this device each event is recorded a millisecond after the one before. */
static int ms_of_events[64], events, now_ms;
int cuEventCreate(void** event, unsigned flags) {
  if (events == 64) return 2;
  *event = &ms_of_events[events++];
  return flags != 0;
}
int cuEventRecord(void* event, void* stream) {
  (void)stream;
  *(int*)event = ++now_ms;
  return 0;
}
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  *ms = (float)(*(int*)end - *(int*)begin);
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int wanted = *mode;
  *mode = 0;
  return wanted != 2 && wanted != 0;
}
