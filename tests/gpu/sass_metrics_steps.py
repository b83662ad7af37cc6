#!/usr/bin/env python3
"""What CUPTI's SASS metrics cost steps of a model, in one process and by turns with nothing:

    sass_metrics_steps.py LIBRARY MODEL ROUNDS STEPS SECONDS METRICS...

METRICS are names separated by commas, "" nothing; a process can have one choice of them. Prints one JSON object for each turn: how long it took to begin,
the first step, in which functions are patched, the others, and to write what was counted (SASS_METRICS_OUTPUT)."""
import ctypes
import json
import os
import sys
import time

import torch

from workload import make


def main():
    library, model, rounds, steps, seconds = ctypes.CDLL(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    step = make(model)
    for _ in range(5):
        step()
    for _ in range(rounds):
        for metrics in sys.argv[6:]:
            os.environ["SASS_METRICS"] = metrics
            moments = [time.perf_counter()]
            failed = library.around(1) if metrics else 0
            moments.append(time.perf_counter())
            times = []
            while len(times) <= steps and time.perf_counter() - moments[0] < seconds:
                torch.cuda.synchronize()
                start = time.perf_counter()
                step()
                times.append((time.perf_counter() - start) * 1e3)
            moments.append(time.perf_counter())
            failed += library.around(0) if metrics else 0
            moments.append(time.perf_counter())
            print(json.dumps({"metrics": metrics, "failed": failed, "begin_ms": (moments[1] - moments[0]) * 1e3,
                              "first_ms": times[0], "ms": times[1:], "write_ms": (moments[3] - moments[2]) * 1e3}), flush=True)


main()
