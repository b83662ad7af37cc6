#!/usr/bin/env python3
"""PyTorch live on an NVIDIA GPU: how much of the device work has an operator, a module and a line, whether
the time of operators is what PyTorch's own profiler says, and what it costs.

    tests/gpu/layers_check.py --pastaprof PROGRAM --output FOLDER [--models MODEL...] [--without-compiler]
                             [--compiled] [coverage] [cost]

Each part has a time limit of its own and writes FOLDER/layers.json when it is over. Exit code: 0 when every
check held."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("resnet50-train", "bert-train", "gpt2-train")
STEPS = 10
WINDOWS = 3  # of so many steps; times are those of the window in which an operator took least
PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import torch
import workload
steps, windows, profile, compiled = {steps}, {windows}, {profile}, {compiled}
for name in {models!r}:
    step = workload.make(name, compiled)
    for _ in range(3):
        step()
    for window in range(windows):
        if profile:
            import collections, json
            from torch.profiler import ProfilerActivity, profile as profiling
            with profiling(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as it:
                for _ in range(steps):
                    step()
            sums = collections.Counter()
            for average in it.key_averages():
                sums[average.key] += getattr(average, "self_device_time_total", 0)
            print(json.dumps({{"model": name, "operators": sums}}), flush=True)
        else:
            with torch.profiler.record_function(f"measured {{name}} {{window}}"):
                for _ in range(steps):
                    step()
    del step
    torch.cuda.empty_cache()
"""
LINE = re.compile(r'(kernel|copy|fill) (-?\d+) (-?\d+) L\d+ "((?:[^"\\]|\\.)*)"(.*)')
FRAME = re.compile(r'frame (F\d+)(?: in=(F\d+))? "((?:[^"\\]|\\.)*)"(?: (\w+))?')


def least(windows):
    """Of each operator the least time that a window has of it: in others, something else had the GPU meanwhile."""
    return {name: min(window[name] for window in windows if name in window) for name in set().union(*windows)}


class Check:
    def __init__(self, arguments):
        self.arguments = arguments
        self.output = pathlib.Path(arguments.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="pasta-layers-"))
        self.environment = {"PASTA_CACHE": str(self.work / "cache"), **os.environ}
        if arguments.without_compiler:
            self.environment.update(PATH=str(self.work), CXX="", PASTA_CACHE=str(self.work / "none"))
        self.figures = {}
        self.failed = 0

    def check(self, what, good, got):
        self.failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {what}: {got}", flush=True)

    def write(self):
        (self.output / "layers.json").write_text(json.dumps(self.figures, indent=1))

    def python(self, watched, timeout):
        text = PROGRAM.format(here=str(HERE), steps=STEPS, windows=WINDOWS, profile=not watched,
                              compiled=self.arguments.compiled, models=tuple(self.arguments.models))
        program = self.work / "train.py"
        program.write_text(text)
        before = [self.pastaprof, "run", "-f", "-o", "t.pasta", "--report", "report.txt", "--"] if watched else []
        begin = time.monotonic()
        result = subprocess.run([*before, sys.executable, str(program)], cwd=self.work, env=self.environment,
                                capture_output=True, text=True, timeout=timeout)
        print(f"{'watched' if watched else 'profiled'}: {time.monotonic() - begin:.1f} s", flush=True)
        if result.returncode:
            self.check("exit code", False, f"{result.returncode} {result.stderr[-600:]}")
        return result

    def part_coverage(self):
        self.python(True, 150)
        dump = subprocess.run([self.pastaprof, "dump", "t.pasta"], cwd=self.work, capture_output=True, text=True)
        facts = [line for line in dump.stdout.splitlines() if line.startswith("fact") and " torch" in line]
        problems = [line for line in dump.stdout.splitlines() if line.startswith(("problem", "gap"))]
        print(*facts[:3], *problems[:8], sep="\n", flush=True)
        self.figures["facts"], self.figures["problems"] = facts, problems
        how = "by a dispatch mode" if self.arguments.without_compiler else "by its callbacks"
        self.check("operators " + how, any(how in fact for fact in facts), "")
        frames = {None: ()}
        found = {name: {"work": 0, "operator": 0, "module": 0, "part": 0, "line": 0, "ns": 0, "lacking": {},
                        "operators": [{} for _ in range(WINDOWS)]}
                 for name in self.arguments.models}
        windows = {(name, int(window)): (int(start), int(end)) for start, end, name, window in re.findall(
            r'^scope (\d+) (\d+) \S+ "measured (\S+) (\d+)"', dump.stdout, re.M)}
        for line in dump.stdout.splitlines():
            if frame := FRAME.match(line):
                number, parent, name, domain = frame.groups()
                frames[number] = (*frames[parent], (domain or "unknown", name))
            elif work := LINE.match(line):
                kind, start, end, name, rest = work.groups()
                scope = re.search(r" scope=(F\d+)", rest)
                path = frames[scope[1]] if scope else ()
                model, window = next((of for of, (begin, over) in windows.items() if begin <= int(start) < over), (None, 0))
                if model not in found:
                    continue
                sums = found[model]
                domains = [domain for domain, _ in path]
                sums["work"] += 1
                sums["ns"] += int(end) - int(start)
                for what in ("operator", "module"):
                    sums[what] += what in domains
                sums["line"] += "python" in domains
                sums["part"] += domains.count("module") > 1
                operator = next((n for d, n in reversed(path) if d == "operator"), "(none)")
                times = sums["operators"][window]
                times[operator] = times.get(operator, 0) + int(end) - int(start)
                for what, domain in (("operator", "operator"), ("line", "python"), ("module", "module")):
                    if domain not in domains:
                        key = what + ": " + " > ".join(n for _, n in path[-3:])
                        sums["lacking"][key] = sums["lacking"].get(key, 0) + 1
        for name, sums in found.items():
            count = sums["work"] or 1
            self.check(f"{name}: work with an operator", sums["operator"] == count, f"{sums['operator']} of {sums['work']}")
            self.check(f"{name}: work with a line", sums["line"] == count, f"{sums['line']} of {sums['work']}")
            print(f"       {name}: work in a module {sums['module']} of {sums['work']}, in one that is part of another "
                  f"{sums['part']}, the rest outside", flush=True)
            sums["lacking"] = dict(sorted(sums["lacking"].items(), key=lambda item: -item[1])[:25])
        self.figures["coverage"] = found
        self.write()
        if self.arguments.compiled:
            return
        profiled = self.python(False, 120)
        profiler = {}
        for line in profiled.stdout.splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                profiler.setdefault(said["model"], []).append(
                    {name: us * 1000 for name, us in said["operators"].items() if us > 0})
        self.figures["profiler"] = profiler
        for model, windows in profiler.items():
            ours, theirs = least(found[model]["operators"]), least(windows)
            whole = sum(ours.values()) or 1
            compared = {name: round(ns / theirs[name] - 1, 4) for name, ns in
                        sorted(ours.items(), key=lambda item: -item[1]) if ns >= whole / 100 and name in theirs}
            self.figures.setdefault("compared", {})[model] = compared
            worst = max(compared, key=lambda name: abs(compared[name]), default=None)
            self.check(f"{model}: time of operators with 1 % and more of it, beside PyTorch's profiler",
                       worst and abs(compared[worst]) <= 0.02,
                       f"at most {compared.get(worst)} off ({worst}, of {len(compared)})")
        self.write()

    # Processes that stay and take turns. In each, what watches is switched off and on: what is compared has the same
    # memory, and nearly the same seconds.
    def part_cost(self):
        workload = [sys.executable, str(HERE / "workload.py"), "8", *self.arguments.models, "--serve"]
        # Of ours what `pastaprof run` is told; of the others how the workload switches them on.
        modes = {"cupti": ("--adapter", "cupti"), "operators, modules": ("--python", "off"),
                 "and lines": ("--python", "lines"), "and stacks": ("--python", "stacks"), "kineto": "full",
                 "kineto with stacks": "stacks", "proton with python": "proton-python"}
        workers = {}
        for mode, how in modes.items():
            if mode in self.arguments.without:
                continue
            ours = isinstance(how, tuple)
            watched = [self.pastaprof, "run", "-f", "-o", f"cost{len(workers)}.pasta", "--report", "-", *how, "--"]
            workers[mode] = subprocess.Popen(
                [*(watched if ours else []), *workload, "--switch", "pasta" if ours else how], cwd=self.work,
                env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        turns = {}  # by model and mode: off, on
        try:
            for worker in workers.values():
                self.answer(worker)
            end = time.monotonic() + self.arguments.seconds
            while time.monotonic() < end:
                for model in self.arguments.models:
                    for mode, worker in workers.items():
                        try:
                            worker.stdin.write(model + "\n")
                            worker.stdin.flush()
                        except BrokenPipeError:  # said of it below
                            continue
                        said = self.answer(worker)
                        for part in ("off", "on") if said else ():
                            turns.setdefault(model, {}).setdefault(mode, {}).setdefault(part, []).extend(said[part])
        finally:
            for worker in workers.values():
                worker.kill()
        self.figures["cost"] = {"turns": turns}
        for mode in workers:
            self.check(f"cost: {mode} ran", all(mode in turns.get(model, {}) for model in self.arguments.models), "")
        every = [turn for modes in turns.values() for parts in modes.values() for part in parts.values() for turn in part]
        gpu = min(turn["gpu_ms"] for turn in every)
        core = min(min(turn["core_ms"]) for turn in every)

        def is_good(turn):  # neither the GPU nor a core was slower than it can be
            return turn["gpu_ms"] < 1.15 * gpu and max(turn["core_ms"] + turn["core_ms_after"]) < 1.25 * core

        for model, modes in turns.items():
            for mode, parts in modes.items():
                good = {part: [ms for turn in parts[part] if is_good(turn) for ms in turn["ms"]] for part in parts}
                row = {"turns": len(parts["on"]), "steps": [len(good["off"]), len(good["on"])]}
                if all(good.values()):
                    row["off_ms"] = min(good["off"]), statistics.median(good["off"])
                    row["ratio"] = [round(of(good["on"]) / of(good["off"]), 3) for of in (min, statistics.median)]
                print(f"       {model}, {mode}: {row}", flush=True)
                self.figures["cost"].setdefault("over_off", {}).setdefault(model, {})[mode] = row
        self.write()

    @staticmethod
    def answer(worker):
        for line in worker.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--without-compiler", action="store_true", help="what there is without the extension")
    parser.add_argument("--compiled", action="store_true", help="models by torch.compile; coverage alone")
    parser.add_argument("--without", nargs="+", default=[], metavar="MODE", help="modes that cost leaves out")
    parser.add_argument("--seconds", type=float, default=30, help="of the turns of cost")
    parser.add_argument("parts", nargs="*", default=["coverage", "cost"])
    arguments = parser.parse_args()
    check = Check(arguments)
    for part in arguments.parts:
        try:
            getattr(check, f"part_{part}")()
        except Exception as error:  # the other parts are still worth having
            check.check(part, False, f"{type(error).__name__}: {error}")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
