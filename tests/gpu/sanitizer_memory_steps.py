#!/usr/bin/env python3
"""What of a GPU's memory is in use beside PyTorch's own, after each stage of a program that does steps of a model:

    sanitizer_memory_steps.py MODEL [STACK]

STACK: how many bytes a thread's stack may have at most, instead of the driver's choice. To be run bare, under
pastaprof, and with sanitizer_memory.cpp; nobody else may use the GPU meanwhile. Prints one JSON object."""
import ctypes
import json
import sys
import time

import torch

from workload import make

STACK_SIZE, PRINTF_SIZE, HEAP_SIZE = 0, 1, 2  # CUlimit


def main():
    driver = ctypes.CDLL("libcuda.so.1")

    def used():
        torch.cuda.synchronize()
        free, all_of_it = torch.cuda.mem_get_info()
        return (all_of_it - free - torch.cuda.memory_reserved()) / 2**20

    def limit(which):
        value = ctypes.c_size_t()
        driver.cuCtxGetLimit(ctypes.byref(value), which)
        return value.value

    torch.cuda.init()
    torch.cuda.current_stream().synchronize()
    told = {"context": used()}
    if len(sys.argv) > 2:
        told["limit"] = driver.cuCtxSetLimit(STACK_SIZE, ctypes.c_size_t(int(sys.argv[2])))
        told["limited"] = used()
    step = make(sys.argv[1])
    told["model"] = used()
    for i in range(4):
        begin = time.perf_counter()
        step()
        told[f"step {i}"] = used()
        told[f"step {i} ms"] = round((time.perf_counter() - begin) * 1e3)
    told["limits"] = [limit(which) for which in (STACK_SIZE, PRINTF_SIZE, HEAP_SIZE)]
    print(json.dumps(told), flush=True)


main()
