#!/usr/bin/env python3
"""Whether iterations that `--launches iterations:1/N` takes tell the same as when every launch is analysed.

    sampled_check.py PASTAPROF MODEL TOOL [--apart N] [--iterations N]

Runs steps of a model that way and, twice, with all launches, side by side, and compares the results of the patches,
launch by launch: of which objects, by their sizes, how much was touched and how, and by which places of the kernel.
Kernels of which these two tell a launch differently wait for each other (sums that are split, attention), and are not
the same from run to run; of those nothing is asked but that they are launched where they were. Objects of one size
are taken together: in which of its blocks PyTorch's allocator puts a small tensor depends on where the blocks lie."""
import argparse
import collections
import concurrent.futures
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "diff")]
import device_blobs as blobs  # noqa: E402


def results(arguments, launches, folder):
    """By iteration, what was told of each launch, in their order."""
    trace = f"{folder}/{arguments.model}.pasta"
    steps = pathlib.Path(__file__).resolve().parent / "iteration_steps.py"
    subprocess.run([arguments.pastaprof, "run", "--adapter", "sanitizer", "--tool", arguments.tool, "--launches", launches,
                    "-o", trace, "--report", "/dev/null", "--",
                    sys.executable, str(steps), arguments.model, str(arguments.iterations), "1"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dumped = subprocess.Popen([arguments.pastaprof, "dump", trace], stdout=subprocess.PIPE, text=True)
    told, kernels = {}, collections.defaultdict(list)
    for line in dumped.stdout:
        if blob := re.match(r'blob (\w+) "(\w+)"', line):
            told[blob[1]] = bytes.fromhex(blob[2])
        elif event := re.match(r'device \S+ \S+ \w+ "(.*?)" .*blob=(\w+) .*launch=(\d+)', line):
            kernels[int(event[3])].append((event[1], told.get(event[2])))
    iterations = collections.defaultdict(list)
    for launch, parts in sorted(kernels.items()):
        if launch == 0:
            continue
        sizes, rows, iteration = {}, collections.defaultdict(list), None
        for kernel, blob in parts:
            for row in blobs.rows_of(blob, blobs.ITERATION):
                iteration = row[0]
            for number, _, size in blobs.rows_of(blob, blobs.OBJECTS):
                sizes[number] = size
        for kernel, blob in parts:
            # Which columns name the row: objects of one size together, see above.
            for table, at, names in ((blobs.ACCESSES, 0, 2), (blobs.SITES, 4, 5), (blobs.SETS, 0, 3)):
                for row in blobs.rows_of(blob, table):
                    counts = rows[table, *row[:at], sizes.get(row[at], row[at]), *row[at + 1:names]]
                    counts[:] = [a + b for a, b in zip(counts or [0] * len(row), row[names:])]
        iterations[iteration].append((kernel, collections.Counter((*name, *counts) for name, counts in rows.items())))
    return iterations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("pastaprof", "model", "tool"):
        parser.add_argument(name)
    parser.add_argument("--apart", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=3)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        runs = ("all", "all", f"iterations:1/{arguments.apart}")
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in runs]
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor())
        whole, again, sampled = pool.map(results, [arguments] * len(runs), runs, folders)
    taken = [at for at in sorted(sampled) if at not in (0, arguments.iterations)]  # without what is around the steps
    different = 0
    for at in taken:
        triples = list(zip(whole[at], again[at], sampled[at]))
        unsteady = {a[0] for a, b, _ in triples if a != b}
        other = [(a, c) for a, _, c in triples if a[0] != c[0] or (a[0] not in unsteady and a != c)]
        by_itself = [(a, b, c) for a, b, c in triples if a[0] in unsteady]
        different += len(other) + abs(len(whole[at]) - len(sampled[at])) + abs(len(whole[at]) - len(again[at]))
        print(f"{arguments.model} {arguments.tool}: iteration {at}: {len(sampled[at])} launches sampled, {len(whole[at])} and "
              f"{len(again[at])} of all; {len(other)} tell otherwise; {len(by_itself)} are of {len(unsteady)} kernels that are "
              f"not the same twice: {sum(a != b for a, b, _ in by_itself)} differ between the two, "
              f"{sum(a != c for a, _, c in by_itself)} from the sampled", flush=True)
        for kernel in sorted(unsteady):
            print("  not the same twice:", kernel[:100])
        for a, c in other[:3]:
            print("  all:    ", a[0][:60], sorted(a[1] - c[1])[:4], "\n  sampled:", c[0][:60], sorted(c[1] - a[1])[:4])
    print(f"{arguments.model} {arguments.tool}: sampled iterations {sorted(sampled)}: "
          f"{'the same' if taken and different == 0 else f'{different} DIFFER'}", flush=True)
    return not taken or different != 0


if __name__ == "__main__":
    sys.exit(main())
