#!/usr/bin/env python3
"""How long a call of OpenCL from Python takes, in ns of processor time: by hand, on whatever device there is.

    pastaprof run --python off -- python3 tests/python/call_cost.py   # or lines, stacks; or without pastaprof"""
import ctypes
import time

from calls_test import SCRIPT

names = {}
exec(compile(SCRIPT[:SCRIPT.index("def write")], "calls_test.py", "exec"), names)
fill, queue, buffer, finish = (names[name] for name in ("fill_buffer", "queue", "buffer", "finish"))
zero, CALLS = ctypes.byref(ctypes.c_int(0)), 100


def turn():
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        fill(queue, buffer, zero, 4, 0, 64, 0, None, None)
    ns = (time.thread_time_ns() - begin) / CALLS
    finish(queue)
    return ns


def deep(frames):
    return deep(frames - 1) if frames else turn()


if __name__ == "__main__":
    for frames in (0, 20):
        times = sorted(deep(frames) for _ in range(500))
        print(f"{frames} frames more: least {times[0]:.0f}, median {times[len(times) // 2]:.0f} ns a call")
