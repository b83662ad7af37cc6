/* A libcuda.so.1 without a GPU: what the thread that takes results asks it for. */
#include <stddef.h>

int cuCtxSetCurrent(void* context);
int cuStreamCreate(void** stream, unsigned flags);
int cuThreadExchangeStreamCaptureMode(int* mode);

int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuStreamCreate(void** stream, unsigned flags) {
  static int own;
  *stream = &own;
  return flags != 1;
}
int cuThreadExchangeStreamCaptureMode(int* mode) { return *mode != 2; }
