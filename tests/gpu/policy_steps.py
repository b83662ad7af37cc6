#!/usr/bin/env python3
"""What it costs that one iteration in many is analysed: steps of a model, in processes that take turns.

    policy_steps.py PASTAPROF FOLDER MODEL [--steps N] [--apart N] [--window N] [--tools reuse access] [--others]

One process is bare, one for each tool is watched with `--launches iterations:1/APART`; with --others two more:
`preload`, which is watched but by nothing that knows of CUDA, and `never`, which Compute Sanitizer watches
without a patch, and in which patches take turns at the end. In turns each does WINDOW steps, until all have
done STEPS. Into FOLDER goes what each told, as JSON."""
import argparse
import collections
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

WARM_UP = 5  # steps; the first of them, with all before it, is iteration 0, which is analysed
OTHERS = ("empty_global", "reuse", "access")


def of_status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


def timed(step, steps):
    """Of each step and of what ends its iteration ms, and of all together ms of processors."""
    import pastaprof
    times, ends = [], []
    processors, thread = time.process_time(), time.thread_time()
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        end = time.perf_counter()
        pastaprof.step()
        times.append((end - begin) * 1e3)
        ends.append((time.perf_counter() - end) * 1e3)
    return {"ms": times, "end_ms": ends, "processors_ms": (time.process_time() - processors) * 1e3,
            "thread_ms": (time.thread_time() - thread) * 1e3, "resident_kib": of_status("VmRSS"),
            "most_resident_kib": of_status("VmHWM")}


def turns_of_patches(step, adapter):
    import torch
    told = collections.defaultdict(list)
    for _ in range(2):
        for patch in OTHERS:
            begin = time.perf_counter()
            adapter.pasta_sanitizer_patch(patch.encode())
            on = time.perf_counter()
            times = []
            for _ in range(3):
                start = time.perf_counter()
                step()
                times.append((time.perf_counter() - start) * 1e3)
            torch.cuda.synchronize()
            before = time.perf_counter()
            adapter.pasta_sanitizer_patch(b"")
            told[patch].append({"on_ms": (on - begin) * 1e3, "ms": times,
                                "off_ms": (time.perf_counter() - before) * 1e3})
    return told


def serve(model, never):
    import pastaprof
    import torch
    from workload import make
    torch.backends.cuda.matmul.allow_tf32 = True
    adapter = None
    torch.zeros(1, device="cuda")  # the adapter begins when CUDA does
    if never:
        adapter = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
        adapter.pasta_sanitizer_patch.argtypes = [ctypes.c_char_p]
        adapter.pasta_sanitizer_patch(b"")
    step = make(model)
    warm_up = []
    for _ in range(WARM_UP):
        begin = time.perf_counter()
        step()
        middle = time.perf_counter()
        pastaprof.step()
        warm_up.append(((middle - begin) * 1e3, (time.perf_counter() - middle) * 1e3))
    print(json.dumps({"ready": True, "warm_up": warm_up, "resident_kib": of_status("VmRSS"),
                      "reserved": torch.cuda.memory_reserved()}), flush=True)
    for line in sys.stdin:
        if line.strip() == "patches":
            print(json.dumps(turns_of_patches(step, adapter)), flush=True)
        elif line.strip() == "free":
            print(json.dumps(torch.cuda.mem_get_info()[0]), flush=True)
        else:
            print(json.dumps(timed(step, int(line))), flush=True)


class Server:
    started = 0

    def __init__(self, arguments, name, folder):
        command = [sys.executable, "-u", __file__, "--serve", *(["--never"] if name == "never" else []), arguments.model]
        if name != "bare":
            options = {"preload": ["--adapter", "annotations"],
                       "never": ["--adapter", "sanitizer", "--tool", "access", "--launches", "all"]}.get(
                name, ["--adapter", "sanitizer", "--tool", name, "--launches", f"iterations:1/{arguments.apart}"])
            command = [arguments.pastaprof, "run", *options, "-o", f"/tmp/policy-{name}-{Server.started}.pasta", "--force",
                       "--report", str(folder / f"{name}.report"), "--", *command]
        Server.started += 1
        self.name, self.windows = name, []
        self.errors = open(folder / f"{name}.err", "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True)
        self.ready, self.memory_mib = None, None

    def told(self):
        for line in self.process.stdout:
            if line[:1] == "{" or line[:1].isdigit():
                return json.loads(line)
        raise RuntimeError(f"{self.name} ended: {self.process.wait()}")

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.told()

    def end(self):
        begin = time.perf_counter()
        self.process.stdin.close()
        return self.process.wait(60), time.perf_counter() - begin


def memory_of(servers, arguments, folder):
    """What one more process of each kind takes of the GPU's memory, as the first sees it."""
    for name in [server.name for server in servers]:
        before = servers[0].ask("free")
        another = Server(arguments, name, folder)
        another.told()
        next(server for server in servers if server.name == name).memory_mib = before - servers[0].ask("free") >> 20
        another.end()


def measure(arguments):
    folder = pathlib.Path(arguments.folder) / arguments.model
    folder.mkdir(parents=True, exist_ok=True)
    names = ["bare", *arguments.tools, *(["preload", "never"] if arguments.others else [])]
    if arguments.cores:
        # All take turns on the same cores: some are slower than others.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-arguments.cores:])
    servers = [Server(arguments, name, folder) for name in names]
    for server in servers:
        server.ready = server.told()
    if arguments.memory:
        memory_of(servers, arguments, folder)
    for turn in range(arguments.steps // arguments.window):
        for i in range(len(servers)):
            server = servers[(turn + i) % len(servers)]
            server.windows.append(server.ask(arguments.window))
    patches = servers[-1].ask("patches") if arguments.others else {}
    told = {server.name: {"ready": server.ready, "memory_mib": server.memory_mib, "windows": server.windows}
            for server in servers}
    if patches:
        told["patches"] = patches
    for server in servers:
        told[server.name]["end"] = server.end()
    (folder / "told.json").write_text(json.dumps(told))
    summarise(arguments, told)


def summarise(arguments, told):
    def all_of(name, what):
        return [value for window in told[name]["windows"] for value in window[what]]
    bare = [a + b for a, b in zip(all_of("bare", "ms"), all_of("bare", "end_ms"))]
    mean, median = statistics.mean(bare), statistics.median(bare)
    print(f"{arguments.model}: bare mean {mean:.3f} median {median:.3f} min {min(bare):.3f} ms", flush=True)
    for name, of in told.items():
        if name in ("bare", "patches"):
            continue
        steps, ends = all_of(name, "ms"), all_of(name, "end_ms")
        both = [a + b for a, b in zip(steps, ends)]
        # Iterations are counted from the first step of the warm-up.
        sampled = [i for i in range(len(both)) if (i + WARM_UP) % arguments.apart == 0] if name in arguments.tools else []
        near = {j for i in sampled for j in (i - 1, i, i + 1)}
        between = [value for i, value in enumerate(both) if i not in near]
        turns = [statistics.median(w["ms"]) / statistics.median(w0["ms"])
                 for w, w0 in zip(of["windows"], told["bare"]["windows"])]
        cpu = [w["processors_ms"] / w0["processors_ms"] for w, w0 in zip(of["windows"], told["bare"]["windows"])]
        print(f"{arguments.model} {name}: mean {statistics.mean(both):.3f} ({statistics.mean(both) / mean:.3f}); "
              f"between mean {statistics.mean(between):.3f} ({statistics.mean(between) / mean:.3f}) median "
              f"{statistics.median(between):.3f} ({statistics.median(between) / median:.3f}) min {min(between):.3f}, "
              f"median of turns {statistics.median(turns):.3f}; "
              f"sampled {[(round(ends[i - 1], 1), round(steps[i], 1), round(ends[i], 1), round(steps[i + 1], 1)) for i in sampled if i + 1 < len(steps)]} "
              f"(on, step, off, next); processor time {statistics.median(cpu):.3f}; device memory "
              f"{of['memory_mib']} MiB (bare {told['bare']['memory_mib']}), resident {of['windows'][-1]['resident_kib'] >> 10} MiB "
              f"most {of['windows'][-1]['most_resident_kib'] >> 10} (bare {told['bare']['windows'][-1]['resident_kib'] >> 10}, "
              f"{told['bare']['windows'][-1]['most_resident_kib'] >> 10}); ended {of['end']}", flush=True)
    for patch, turns in told.get("patches", {}).items():
        ms = [value for turn in turns for value in turn["ms"]]
        print(f"{arguments.model} patch {patch}: median {statistics.median(ms):.1f} ms ({statistics.median(ms) / median:.1f}), "
              f"on {[round(turn['on_ms'], 1) for turn in turns]}, off {[round(turn['off_ms'], 1) for turn in turns]}", flush=True)


def main():
    if "--serve" in sys.argv:
        return serve(sys.argv[-1], "--never" in sys.argv)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pastaprof")
    parser.add_argument("folder")
    parser.add_argument("model")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--apart", type=int, default=250)
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("--tools", nargs="*", default=["reuse", "access"])
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--memory", action="store_true", help="tell also what a process of each takes of the GPU's")
    parser.add_argument("--cores", type=int, default=6)
    measure(parser.parse_args())


main()
