#!/usr/bin/env python3
"""Steps of GPT-2 inference while different patches are in its kernels, all in one process: what an
analysis costs over calling a patch that does nothing. To be run under
`pastaprof run --adapter sanitizer --tool access`; prints one JSON object a patch.

    analysis_steps.py STEPS SECONDS PATCH...

"" is no patch. For no patch are more than SECONDS taken."""
import ctypes
import json
import os
import sys
import time

import torch

from workload import make


def main():
    steps, seconds, patches = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    adapter = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    adapter.pasta_sanitizer_patch.argtypes = [ctypes.c_char_p]
    adapter.pasta_sanitizer_patch(b"")
    step = make("gpt2-infer")
    for _ in range(5):
        step()
    for patch in patches:
        begin = time.perf_counter()
        known = adapter.pasta_sanitizer_patch(patch.encode())
        switched = time.perf_counter() - begin
        times = []
        while len(times) <= steps and time.perf_counter() - begin < seconds:
            torch.cuda.synchronize()
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"patch": patch, "known": known, "switch_ms": switched * 1e3, "ms": times}), flush=True)


main()
