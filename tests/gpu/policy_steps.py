#!/usr/bin/env python3
"""What it costs that one iteration in many is analysed: steps of models, in processes that take turns.

    policy_steps.py PASTAPROF FOLDER MODEL... [--seconds S] [--steps N] [--apart N] [--window N] [--again N]
                    [--tools reuse access] [--bare-every N]

One process is bare, one for each tool is watched with `--launches iterations:1/APART`, by Compute Sanitizer alone, or
of a +TOOL by all that is beside it by default (PyTorch's operators among it). They start once and make one model after
the other. Of each, all first do iterations that are analysed AGAIN times, without most of those in between; then in
turns WINDOW steps each, the bare one each BARE-EVERY-th turn, until the others have done STEPS or the model's share of
S seconds is over. What each told is in FOLDER/told.jsonl as soon as it has told it, and what it comes to is printed
after each model and whenever it is stopped."""
import argparse
import collections
import contextlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WARM_UP = 5  # steps of a model
TIMED = 3  # iterations after the first analysed one that PASTA times, once in a process
BEFORE, AFTER = 2, 8  # steps before and behind an analysed one that are counted with it


class Iterations:
    """Steps, each of which ends an iteration; which are analysed their number says."""

    def __init__(self, apart):
        self.apart, self.ended = apart, 0

    def end(self):
        import pastaprof
        pastaprof.step()
        self.ended += 1

    def skip_to(self, before):
        """Without any work, until so many are to come before one that is analysed."""
        while self.ended % self.apart != (self.apart - before) % self.apart:
            self.end()

    def timed(self, step):
        """ms of the step, and of what ended its iteration."""
        begin = time.perf_counter()
        step()
        end = time.perf_counter()
        self.end()
        return (end - begin) * 1e3, (time.perf_counter() - end) * 1e3


def window(step, steps, cores, iterations):
    from workload import gpu_ms
    fast = {"gpu_ms": gpu_ms(), "core_ms": cores.place()}
    first, processors, thread = iterations.ended, time.process_time(), time.thread_time()
    times = [iterations.timed(step) for _ in range(steps)]
    return {**fast, "core_ms_after": cores.again(), "first": first, "ms": times,
            "processors_ms": (time.process_time() - processors) * 1e3, "thread_ms": (time.thread_time() - thread) * 1e3}


def serve(apart):
    import torch
    from workload import Cores, make
    cores, iterations = Cores(), Iterations(apart)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.zeros(1, device="cuda")  # iteration 0, which is analysed
    for _ in range(1 + TIMED):
        iterations.end()
    print(json.dumps({"ready": True}), flush=True)
    step = None
    for line in sys.stdin:
        order = json.loads(line)
        if "make" in order:
            step = None
            torch.cuda.empty_cache()
            step = make(order["make"])
            told = {"warm_up": [iterations.timed(step) for _ in range(WARM_UP)]}
        elif "skip_to" in order:
            iterations.skip_to(order["skip_to"])
            told = {}
        elif "analysed" in order:
            cores.place()
            iterations.skip_to(BEFORE)
            told = {"analysed": [iterations.timed(step) for _ in range(BEFORE + 1 + AFTER)]}
        else:
            told = window(step, order["steps"], cores, iterations)
        print(json.dumps(told), flush=True)


class Server:
    """One that has ended before its time is asked nothing more, and tells nothing."""

    def __init__(self, arguments, name, folder, traces):
        command = [sys.executable, "-u", __file__, "--serve", str(arguments.apart)]
        if name != "bare":
            beside = ["--passes", "1"] if name[0] == "+" else ["--adapter", "sanitizer"]
            command = [arguments.pastaprof, "run", *beside, "--tool", name.lstrip("+"),
                       "--launches", f"iterations:1/{arguments.apart}", "-o", f"{traces}/{name}.pasta",
                       "--report", str(folder / f"{name}.report"), "--", *command]
        self.name = name
        self.file = open(folder / "told.jsonl", "a")
        self.errors = open(folder / f"{name}.err", "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True)
        self.orders = collections.deque([{"start": True}])
        self.has_ended = False

    def order(self, **order):
        if self.has_ended:
            return
        self.orders.append(order)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()

    def told(self):
        if self.has_ended:
            return None
        for line in self.process.stdout:
            if line[:1] == "{":
                told = json.loads(line)
                self.file.write(json.dumps({"server": self.name, "order": self.orders.popleft(), **told}) + "\n")
                self.file.flush()
                return told
        self.has_ended = True
        print(f"{self.name} has ended at {self.orders[0]}: {self.process.wait()}", flush=True)
        return None

    def ask(self, **order):
        self.order(**order)
        return self.told()


class Model:
    """What was told of one model, by server."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.windows, self.analysed = collections.defaultdict(list), collections.defaultdict(list)

    def measure(self, servers, deadline):
        for server in servers:
            server.order(make=self.name)
        for server in servers:
            server.told()
        tools = [server for server in servers if server.name != "bare"]
        for again in range(self.arguments.again + 1):
            for server in tools:
                told = server.ask(analysed=True)
                if told and again > 0:  # the first fetches code, and makes room
                    self.analysed[server.name].append(told["analysed"])
        for server in tools:
            server.ask(skip_to=self.arguments.window // 2)
        for turn in range(self.arguments.steps // self.arguments.window):
            due = [server for server in servers if server.name != "bare" or turn % self.arguments.bare_every == 0]
            for i in range(len(due)):
                server = due[(turn + i) % len(due)]
                told = server.ask(steps=self.arguments.window)
                if told:
                    self.windows[server.name].append(told)
            if time.monotonic() > deadline:
                return

    def is_quiet(self, window):
        """Neither the GPU nor one of the two cores ran at less than its speed."""
        everything = [window for windows in self.windows.values() for window in windows]
        core = min(min(window["core_ms"]) for window in everything)
        gpu = min(window["gpu_ms"] for window in everything)
        return max(window["core_ms"] + window["core_ms_after"]) < 1.2 * core and window["gpu_ms"] < 1.1 * gpu

    def summarise(self):
        bare = [a + b for window in self.windows["bare"] for a, b in window["ms"]]
        if not bare:
            return print(f"{self.name}: nothing was told of bare steps", flush=True)
        quiet = [a + b for window in self.windows["bare"] if self.is_quiet(window) for a, b in window["ms"]]
        mean, median = statistics.mean(bare), statistics.median(bare)
        print(f"{self.name}: bare mean {mean:.3f} ms of {len(bare)} steps, median {median:.3f}, least {min(bare):.3f}; of the "
              f"{len(quiet)} quiet {statistics.mean(quiet or [0]):.3f}", flush=True)
        for name in (name for name in self.windows if name != "bare"):
            self.summarise_tool(name, mean, median, statistics.mean(quiet or [mean]), min(bare))

    def summarise_tool(self, name, bare_mean, bare_median, bare_quiet, bare_least):
        apart = self.arguments.apart
        steps = [(window["first"] + i, a, b, self.is_quiet(window))
                 for window in self.windows[name] for i, (a, b) in enumerate(window["ms"])]
        near = {at + i for at, *_ in steps if at % apart == 0 for i in range(-1, AFTER + 1)}
        episodes = [[(a, b) for at, a, b, _ in steps if first - BEFORE <= at <= first + AFTER]
                    for first, *_ in steps if first % apart == 0] + self.analysed[name]
        episodes = [episode for episode in episodes if len(episode) == BEFORE + 1 + AFTER]
        between = [a + b for at, a, b, _ in steps if at not in near]
        quiet = [a + b for at, a, b, is_quiet in steps if at not in near and is_quiet]
        all_mean = statistics.mean(a + b for _, a, b, _ in steps)
        print(f"{self.name} {name}: mean {all_mean:.3f} ms of {len(steps)} steps, {sum(at % apart == 0 for at, *_ in steps)} of "
              f"them analysed: {all_mean / bare_mean:.4f} times bare", flush=True)
        if not episodes or not between:
            return
        parts = {"on": [episode[BEFORE - 1][1] for episode in episodes],
                 "step": [episode[BEFORE][0] for episode in episodes],
                 "off": [episode[BEFORE][1] for episode in episodes]}
        after = [sum(a + b for a, b in episode[BEFORE + 1:]) for episode in episodes]

        def composed(of, usual):
            """The mean of APART steps of which one is analysed: when not all STEPS were done, more than that were."""
            return (sum(of(values) for values in parts.values()) + of(after) + (apart - 1 - AFTER) * usual) / apart

        median, least = statistics.median(between), min(between)
        of_quiet = statistics.mean(quiet) if quiet else None
        print(f"{self.name} {name}: composed of parts, one in {apart}: {composed(statistics.median, median) / bare_median:.4f} by "
              f"medians, {composed(statistics.mean, statistics.mean(between)) / bare_mean:.4f} by means, "
              f"{composed(min, least) / bare_least:.4f} by the least, "
              f"{f'{composed(statistics.mean, of_quiet) / bare_quiet:.4f}' if quiet else 'none'} by means of the quiet; "
              + ", ".join(f"{part} {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
                          for part, values in parts.items())
              + f" of {len(episodes)}; the {AFTER} steps behind {statistics.median(after) - AFTER * median:+.2f}; between: mean "
              f"{statistics.mean(between):.3f} of {len(between)}, median {median:.3f} ({median / bare_median:.4f}), least "
              f"{least:.3f} ({least / bare_least:.4f}), of the {len(quiet)} quiet "
              f"{f'{of_quiet:.3f} ({of_quiet / bare_quiet:.4f})' if quiet else 'none'}", flush=True)


def stopped(*_):
    raise KeyboardInterrupt


def measure(arguments, traces):
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "told.jsonl").unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, stopped)
    begin = time.monotonic()
    servers = [Server(arguments, name, folder, traces) for name in ("bare", *arguments.tools)]
    for server in servers:
        server.told()
    print(f"started in {time.monotonic() - begin:.1f} s", flush=True)
    for i, name in enumerate(arguments.models):
        model = Model(name, arguments)
        left = begin + arguments.seconds - time.monotonic()
        try:
            model.measure(servers, time.monotonic() + left / (len(arguments.models) - i))
        except KeyboardInterrupt:
            return print("stopped", flush=True)
        finally:
            model.summarise()
            print(f"{name}: ended at {time.monotonic() - begin:.1f} s", flush=True)
    for server in servers:
        with contextlib.suppress(BrokenPipeError):
            server.process.stdin.close()
    print(f"ended: { {server.name: server.process.wait(60) for server in servers} }", flush=True)


def main():
    if "--serve" in sys.argv:
        return serve(int(sys.argv[-1]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pastaprof")
    parser.add_argument("folder")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--apart", type=int, default=250)
    parser.add_argument("--window", type=int, default=25)
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("--tools", nargs="*", default=["reuse", "access"])
    parser.add_argument("--bare-every", type=int, default=1)
    with tempfile.TemporaryDirectory() as traces:
        measure(parser.parse_args(), traces)


main()
