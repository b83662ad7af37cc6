#!/usr/bin/env python3
"""Steps of a model while different patches are in its kernels, all in one process and by turns: what an
analysis costs over calling a patch that does nothing. To be run under
`pastaprof run --adapter sanitizer --tool access`; prints one JSON object for each turn of a patch, with the time of
each step and of the host's processors in it, of all threads.

    analysis_steps.py MODEL ROUNDS STEPS SECONDS PATCH...

"" is no patch. No turn takes more than SECONDS; its first step, which puts the patch into functions that
are loaded late, is not among its STEPS."""
import ctypes
import json
import os
import sys
import time

import torch

from workload import make


def main():
    model, rounds, steps, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    torch.zeros(1, device="cuda")  # the adapter begins when CUDA does
    adapter = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    adapter.pasta_sanitizer_patch.argtypes = [ctypes.c_char_p]
    adapter.pasta_sanitizer_patch(b"")
    step = make(model)
    for _ in range(5):
        step()
    for _ in range(rounds):
        for patch in sys.argv[5:]:
            begin = time.perf_counter()
            known = adapter.pasta_sanitizer_patch(patch.encode())
            switched = time.perf_counter() - begin
            times, processors = [], []
            while len(times) <= steps and time.perf_counter() - begin < seconds:
                torch.cuda.synchronize()
                start, start_of_all = time.perf_counter(), time.process_time()
                step()
                times.append((time.perf_counter() - start) * 1e3)
                processors.append((time.process_time() - start_of_all) * 1e3)
            print(json.dumps({"patch": patch, "known": known, "switch_ms": switched * 1e3, "first_ms": times[0],
                              "ms": times[1:], "cpu_ms": processors[1:]}), flush=True)


main()
