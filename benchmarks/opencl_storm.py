#!/usr/bin/env python3
"""A launch storm on OpenCL, bare and watched in turns: what watching adds to one launch.

One launch is clSetKernelArg and clEnqueueNDRangeKernel of a kernel of one group of 64 items.
Rivals in the same turns: --cliloader PATH, of Intel's Intercept Layer for OpenCL Applications, which adds up the
kernels' times (-d), the calls' as well (-h -d), or writes both as a trace (-ccl -cdt).
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

CLILOADER = {"cliloader -d": ["-d"], "cliloader -h -d": ["-h", "-d"], "cliloader -ccl -cdt": ["-ccl", "-cdt"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pastaprof")
    parser.add_argument("programs", help="build/*/tests/run/opencl_programs")
    parser.add_argument("launches", nargs="?", default="200000")
    parser.add_argument("turns", nargs="?", type=int, default=5)
    parser.add_argument("--cliloader", help="where cliloader was built")
    given = parser.parse_args()
    program = os.path.abspath(given.programs)
    with tempfile.TemporaryDirectory() as folder:
        hows = {"bare": [], "pastaprof run": [os.path.abspath(given.pastaprof), "run", "-f", "-o", "t.pasta", "--report",
                                              "report", "--tool", "summary", "--"]}
        if given.cliloader:
            at = os.path.abspath(given.cliloader)
            hows |= {how: [at, "--quiet", "--dump-dir", folder, *options] for how, options in CLILOADER.items()}
        figures = {how: [] for how in hows}
        for _ in range(given.turns):
            for how, before in hows.items():
                output = subprocess.run([*before, program, "storm", given.launches], cwd=folder, check=True,
                                        capture_output=True, text=True).stdout
                figures[how].append([float(word) for word in output.split()[:2]])
    print(f"ns a launch, medians of {given.turns} (the least), load {os.getloadavg()[0]:.0f}")
    for at, what in enumerate(("wall", "CPU of the program")):
        bare = statistics.median(f[at] for f in figures["bare"])
        for how, times in figures.items():
            median, least = statistics.median(f[at] for f in times), min(f[at] for f in times)
            print(f"{what:20}{how:21}{median:6.0f} ({least:.0f}), {median - bare:+.0f}, {median / bare:.2f} times")


if __name__ == "__main__":
    main()
