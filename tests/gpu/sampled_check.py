#!/usr/bin/env python3
"""Whether iterations that `--launches iterations:1/N` takes tell the same as when every launch is analysed.

    sampled_check.py PASTAPROF MODEL TOOL [--apart N] [--iterations N]

Runs steps of a model both ways, and compares the results of the patches, launch by launch: of which objects, by
their sizes, how much was touched and how."""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "diff")]
import device_blobs as blobs  # noqa: E402


def results(arguments, launches):
    """By iteration, what was told of each launch, in their order."""
    trace = f"/tmp/sampled-{arguments.model}-{arguments.tool}.pasta"
    steps = pathlib.Path(__file__).resolve().parent / "iteration_steps.py"
    subprocess.run([arguments.pastaprof, "run", "--adapter", "sanitizer", "--tool", arguments.tool, "--launches", launches,
                    "-o", trace, "--force", "--report", "/dev/null", "--",
                    sys.executable, str(steps), arguments.model, str(arguments.iterations)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dumped = subprocess.Popen([arguments.pastaprof, "dump", trace], stdout=subprocess.PIPE, text=True)
    told, kernels = {}, collections.defaultdict(list)
    for line in dumped.stdout:
        if blob := re.match(r'blob (\w+) "(\w+)"', line):
            told[blob[1]] = bytes.fromhex(blob[2])
        elif event := re.match(r'device \S+ \S+ \w+ "(.*?)" .*blob=(\w+) .*launch=(\d+)', line):
            kernels[int(event[3])].append((event[1], told.get(event[2])))
    pathlib.Path(trace).unlink()
    iterations = collections.defaultdict(list)
    for launch, parts in sorted(kernels.items()):
        if launch == 0:
            continue
        sizes, rows, iteration = {}, collections.Counter(), None
        for kernel, blob in parts:
            for row in blobs.rows_of(blob, blobs.ITERATION):
                iteration = row[0]
            for number, _, size in blobs.rows_of(blob, blobs.OBJECTS):
                sizes[number] = size
        for kernel, blob in parts:
            for table in (blobs.ACCESSES, blobs.SETS):
                for number, *values in blobs.rows_of(blob, table):
                    rows[sizes.get(number, number), *values] += 1
        iterations[iteration].append((kernel, rows))
    return iterations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("pastaprof", "model", "tool"):
        parser.add_argument(name)
    parser.add_argument("--apart", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=4)
    arguments = parser.parse_args()
    whole, sampled = results(arguments, "all"), results(arguments, f"iterations:1/{arguments.apart}")
    different = 0
    for iteration in sorted(sampled):
        if iteration == 0 or iteration == arguments.iterations:
            continue  # with what comes before the steps, and after them
        pairs = list(zip(whole[iteration], sampled[iteration]))
        other = [(a, b) for a, b in pairs if a != b]
        different += len(other) + abs(len(whole[iteration]) - len(sampled[iteration]))
        print(f"{arguments.model} {arguments.tool}: iteration {iteration}: {len(sampled[iteration])} launches sampled, "
              f"{len(whole[iteration])} of all; {len(other)} tell otherwise", flush=True)
        for a, b in other[:3]:
            print("  all:    ", a[0][:60], sorted(a[1] - b[1])[:4], "\n  sampled:", b[0][:60], sorted(b[1] - a[1])[:4])
    print(f"{arguments.model} {arguments.tool}: sampled iterations {sorted(sampled)}: "
          f"{'the same' if different == 0 else f'{different} DIFFER'}", flush=True)
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
