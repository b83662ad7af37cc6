#!/usr/bin/env python3
"""Steps of a model, each of them an iteration, after others that are a part of the first; prints one JSON object with
their times in ms.

    iteration_steps.py MODEL STEPS [WARM_UP]"""
import json
import sys
import time

import pastaprof
import torch

from workload import make


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    step = make(sys.argv[1])
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        step()
    times = []
    for _ in range(int(sys.argv[2])):
        start = time.perf_counter()
        step()
        pastaprof.step()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"ms": times}), flush=True)


main()
