#!/usr/bin/env python3
"""A launch storm on OpenCL, bare and watched in turns: what watching adds to one launch.

    benchmarks/opencl_storm.py PASTAPROF OPENCL_PROGRAMS [LAUNCHES] [TURNS]

OPENCL_PROGRAMS is the test program build/*/tests/run/opencl/opencl_programs. One launch is
clSetKernelArg and clEnqueueNDRangeKernel of a kernel of one group of 64 items.
"""
import os
import statistics
import subprocess
import sys
import tempfile


def main():
    pastaprof, program = (os.path.abspath(path) for path in sys.argv[1:3])
    launches = sys.argv[3] if len(sys.argv) > 3 else "200000"
    turns = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    figures = {"bare": [], "watched": []}
    with tempfile.TemporaryDirectory() as folder:
        watch = [pastaprof, "run", "-f", "-o", "t.pasta", "--report", "report", "--tool", "summary", "--"]
        for _ in range(turns):
            for how, before in (("bare", []), ("watched", watch)):
                output = subprocess.run([*before, program, "storm", launches], cwd=folder, check=True,
                                        capture_output=True, text=True).stdout
                figures[how].append([float(word) for word in output.split()[:2]])
    for at, what in enumerate(("wall", "CPU of the program")):
        bare, watched = (statistics.median(f[at] for f in figures[how]) for how in ("bare", "watched"))
        print(f"{what}: {bare:.0f} ns a launch bare, {watched:.0f} watched: {watched / bare:.2f} times, "
              f"{watched - bare:.0f} ns more (load {os.getloadavg()[0]:.0f})")


if __name__ == "__main__":
    main()
