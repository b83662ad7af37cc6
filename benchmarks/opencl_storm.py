#!/usr/bin/env python3
"""A launch storm on OpenCL, bare and watched in turns: what watching adds to one launch.

One launch is clSetKernelArg and clEnqueueNDRangeKernel of a kernel of one group of 64 items.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pastaprof")
    parser.add_argument("programs", help="build/*/tests/run/opencl_programs")
    parser.add_argument("launches", nargs="?", default="200000")
    parser.add_argument("turns", nargs="?", type=int, default=5)
    given = parser.parse_args()
    pastaprof, program = os.path.abspath(given.pastaprof), os.path.abspath(given.programs)
    figures = {"bare": [], "watched": []}
    with tempfile.TemporaryDirectory() as folder:
        watch = [pastaprof, "run", "-f", "-o", "t.pasta", "--report", "report", "--tool", "summary", "--"]
        for _ in range(given.turns):
            for how, before in (("bare", []), ("watched", watch)):
                output = subprocess.run([*before, program, "storm", given.launches], cwd=folder, check=True,
                                        capture_output=True, text=True).stdout
                figures[how].append([float(word) for word in output.split()[:2]])
    for at, what in enumerate(("wall", "CPU of the program")):
        bare, watched = (statistics.median(f[at] for f in figures[how]) for how in ("bare", "watched"))
        print(f"{what}: {bare:.0f} ns a launch bare, {watched:.0f} watched: {watched / bare:.2f} times, "
              f"{watched - bare:.0f} ns more (load {os.getloadavg()[0]:.0f})")


if __name__ == "__main__":
    main()
