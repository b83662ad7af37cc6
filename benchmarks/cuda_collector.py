#!/usr/bin/env python3
"""What the collector's own thread takes for CUDA's records, without a GPU: benchmarks/cuda_collector.py PASTAPROF TESTS

TESTS is the folder tests/cupti of a build: its CUPTI needs no GPU, hands out records as fast as a program makes them,
and does nothing itself when it is asked for them. Of N launches, each a call and a kernel with a name as long as those
of PyTorch, the processor time of the thread for each record; the least and the median of several runs."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def threads_of(program, name):
    """Of the processes whose program it is, the threads of this name: their processor time so far, in ns."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or os.readlink(process / "exe") != program:
                continue
            for task in (process / "task").iterdir():
                if (task / "comm").read_text().strip() == name:
                    yield task, int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            continue


def run(pastaprof, tests, launches, folder):
    """ns of the thread, as it was seen last."""
    program = str(tests / "cuda_program")
    process = subprocess.Popen([pastaprof, "run", "-f", "-o", "t.pasta", "--report", os.devnull, "--adapter", "cupti", "--", program,
                                "storm", str(launches), "200000"], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, "LD_LIBRARY_PATH": str(tests)})
    last, where = 0, None
    while process.poll() is None:
        try:
            if where is None:
                where, last = next(threads_of(program, "pasta-cupti"), (None, 0))
            else:
                last = int((where / "schedstat").read_text().split()[0])
        except OSError:
            pass
        time.sleep(0.005)
    if process.returncode != 0:
        sys.exit(f"the program ended with {process.returncode}")
    return last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pastaprof", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("tests", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        each = [run(given.pastaprof, given.tests, given.launches, folder) / (2 * given.launches) for _ in range(given.runs)]
    print(f"a record: {min(each):.0f} ns at least, {statistics.median(each):.0f} in the median")


if __name__ == "__main__":
    main()
