#!/usr/bin/env python3
"""A program that calls CUDA's driver and runtime from Python, without PyTorch: which calls are made where is said
by comments, "here: KIND NAME COUNT", which python_calls_check.py reads.

    python_calls.py [LOOP]   with LOOP, a library that launches many times: ns a launch, one line each turn"""
import ctypes
import glob
import os
import site
import sys
import threading

PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry twice(.param .u64 data) {
  .reg .b64 %a<4>; .reg .b32 %r<4>;
  ld.param.u64 %a1, [data];
  cvta.to.global.u64 %a1, %a1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %a2, %r1, 4;
  add.s64 %a1, %a1, %a2;
  ld.global.u32 %r2, [%a1];
  add.u32 %r2, %r2, %r2;
  st.global.u32 [%a1], %r2;
  ret;
}
"""


def fine(status):
    if status != 0:
        raise SystemExit(f"CUDA says {status}")


def runtime():
    """CUDA's, of a toolkit or of the packages of this Python."""
    names = ["libcudart.so.13", "libcudart.so.12", "libcudart.so"]
    for folder in site.getsitepackages():
        names += sorted(glob.glob(f"{folder}/nvidia/*/lib/libcudart.so.*"))
    for name in [*names, *glob.glob("/usr/local/cuda*/lib64/libcudart.so*")]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel, stream = (ctypes.c_void_p() for _ in range(4))
memory = ctypes.c_uint64()
host = (ctypes.c_uint32 * 256)(*range(256))
fine(cuda.cuInit(0))
fine(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
fine(cuda.cuCtxSetCurrent(context))
fine(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
fine(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"twice"))
fine(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.sizeof(host)))
fine(cuda.cuStreamCreate(ctypes.byref(stream), 1))
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))


def launch():
    fine(cuda.cuLaunchKernel(kernel, 1, 1, 1, 256, 1, 1, 0, stream, arguments, None))  # here: kernel twice 7


def copy():
    fine(cuda.cuMemcpyHtoDAsync_v2(memory, host, ctypes.sizeof(host), stream))  # here: copy HtoD 1
    launch()
    fine(cuda.cuMemcpyDtoHAsync_v2(host, memory, ctypes.sizeof(host), stream))  # here: copy DtoH 1


class Waits:
    def __enter__(self):
        return self

    def __exit__(self, *about):
        fine(cuda.cuStreamSynchronize(stream))  # here: sync Stream 2


def in_thread():
    fine(cuda.cuCtxSetCurrent(context))
    for _ in range(2):
        launch()


if len(sys.argv) > 1:
    loop = ctypes.CDLL(sys.argv[1]).loop
    loop.restype, loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    for _ in range(200):
        print(loop(kernel, stream, arguments, 200))
        fine(cuda.cuStreamSynchronize(stream))
    raise SystemExit

with Waits():
    copy()
for turn in range(4):
    launch()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
fine(cuda.cuMemsetD32Async(memory, 0, 256, stream))  # here: fill Memset 1
with Waits():
    pass
cudart = runtime()
if cudart:
    size = ctypes.c_size_t(ctypes.sizeof(host))
    fine(cudart.cudaMemcpy(memory, host, size, 1))  # here: copy HtoD 1
    fine(cudart.cudaMemset(memory, 1, size))  # here: fill Memset 1
    fine(cudart.cudaDeviceSynchronize())  # here: sync Context 1
    # A thread that knows no Python.
    native, system = ctypes.c_ulong(), ctypes.CDLL(None)
    fine(system.pthread_create(ctypes.byref(native), None, cudart.cudaDeviceSynchronize, None))
    fine(system.pthread_join(native, None))
print("ok" if cudart else "ok, without the runtime")
