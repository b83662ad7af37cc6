#!/usr/bin/env python3
"""Where Python calls CUDA, on an NVIDIA GPU, without PyTorch: every kernel, copy, fill and wait of python_calls.py lies
in the line that made it; and what that costs a launch.

    tests/gpu/python_calls_check.py --pastaprof PROGRAM --output FOLDER [--loop LIBRARY] [--turns N]"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent / "python_calls.py"
FRAME = re.compile(r'frame (F\d+)(?: in=(F\d+))? "((?:[^"\\]|\\.)*)"(?: (\w+))?')
WORK = re.compile(r'(kernel|copy|fill|sync) \S+ \S+ \S+ "((?:[^"\\]|\\.)*)"(.*)')


def expected(lacks_runtime):
    found = collections.Counter()
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        if said := re.search(r"# here: (\w+) (\w+) (\d+)", line):
            if not (lacks_runtime and "cudart" in line):
                found[number, said[1], said[2]] += int(said[3])
    return found


def places(dump):
    """Of each piece of work: the lines of Python in its path."""
    frames, works = {None: ()}, []
    for line in dump.splitlines():
        if frame := FRAME.match(line):
            number, parent, name, domain = frame.groups()
            frames[number] = (*frames[parent], name) if domain == "python" else frames[parent]
        elif work := WORK.match(line):
            scope = re.search(r" scope=(F\d+)", work[3])
            works.append((work[1], work[2], frames[scope[1]] if scope else ()))
    return works


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--loop")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    output = pathlib.Path(given.output).resolve()
    output.mkdir(parents=True, exist_ok=True)
    pastaprof = str(pathlib.Path(given.pastaprof).resolve())
    failed, figures = 0, {}

    def check(what, good, got):
        nonlocal failed
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {what}: {got}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=60)

        for mode in ("lines", "stacks", "off"):
            result = run(pastaprof, "run", "-f", "-o", "t.pasta", "--report", "-", "--python", mode, "--", sys.executable, PROGRAM)
            check(f"{mode}: program", result.returncode == 0, (result.returncode, result.stdout, result.stderr[-300:]))
            dump = run(pastaprof, "dump", "t.pasta").stdout
            (output / f"{mode}.txt").write_text(dump)
            works = places(dump)
            found, without = collections.Counter(), collections.Counter()
            for kind, name, path in works:
                name = next((part for part in ("twice", "HtoD", "DtoH", "Memset", "Stream", "Context") if part in name), name)
                line = re.search(r"python_calls\.py\((\d+)\)", path[-1]) if path else None
                if line:
                    found[int(line[1]), kind, name] += 1
                else:
                    without[kind, name] += 1
            wanted = expected("without" in result.stdout) if mode != "off" else collections.Counter()
            check(f"{mode}: work by line", found == wanted, {str(key): (found[key], wanted[key]) for key in found | wanted if found[key] != wanted[key]} or f"{sum(found.values())} right")
            lone = 0 if "without" in result.stdout else 1
            if mode != "off":
                check(f"{mode}: work without a line", without == ({("sync", "Context"): lone} if lone else {}), dict(without))
            if mode == "stacks":
                inner = [path for kind, name, path in works if kind == "kernel" and len(path) > 2]
                check("stacks: threads begin in Python's own library", any("threading.py" in path[0] for path in inner), inner[-1:])
            figures[mode] = {"found": {str(key): count for key, count in found.items()}, "without": {str(key): count for key, count in without.items()}}
        if given.loop:
            times = {}
            for _ in range(given.turns):
                for mode in ("bare", "off", "lines", "stacks"):
                    watch = [pastaprof, "run", "-f", "-o", "c.pasta", "--report", "-", "--python", mode, "--"] if mode != "bare" else []
                    result = run(*watch, sys.executable, PROGRAM, pathlib.Path(given.loop).resolve())
                    times.setdefault(mode, []).extend(float(line) for line in result.stdout.split())
            figures["ns"] = times
            for mode, ns in times.items():
                if ns:
                    print(f"       {mode}: least {min(ns):.0f}, lower quartile {statistics.quantiles(ns)[0]:.0f}, median {statistics.median(ns):.0f} ns a launch")
    (output / "python_calls.json").write_text(json.dumps(figures, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
