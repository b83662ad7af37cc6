#!/usr/bin/env python3
"""What it costs that one iteration in many is analysed: steps of a model, in processes that take turns.

    policy_steps.py PASTAPROF FOLDER MODEL [--steps N] [--apart N] [--window N] [--tools reuse access] [--others]

One process is bare, one for each tool is watched with `--launches iterations:1/APART`, by Compute Sanitizer alone, or
of a +TOOL by all that is beside it by default (PyTorch's operators among it); with --others two more:
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


def timed(step, steps, cores):
    """Of each step and of what ends its iteration ms, and of all together ms of processors."""
    import pastaprof
    from workload import gpu_ms
    times, ends = [], []
    fast = {"gpu_ms": gpu_ms(), "core_ms": cores.place()}
    processors, thread = time.process_time(), time.thread_time()
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        end = time.perf_counter()
        pastaprof.step()
        times.append((end - begin) * 1e3)
        ends.append((time.perf_counter() - end) * 1e3)
    return {**fast, "core_ms_after": cores.again(), "ms": times, "end_ms": ends, "processors_ms": (time.process_time() - processors) * 1e3,
            "thread_ms": (time.thread_time() - thread) * 1e3, "resident_kib": of_status("VmRSS"),
            "most_resident_kib": of_status("VmHWM")}


def turns_of_patches(step, adapter):
    import torch
    told = collections.defaultdict(list)
    for _ in range(2):
        for patch in OTHERS:
            begin = time.perf_counter()
            assert adapter.pasta_sanitizer_patch(patch.encode()) == 1
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
    from workload import Cores, make
    cores = Cores()
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
            print(json.dumps(timed(step, int(line), cores)), flush=True)


class Server:
    started = 0

    def __init__(self, arguments, name, folder):
        command = [sys.executable, "-u", __file__, "--serve", *(["--never"] if name == "never" else []), arguments.model]
        if name != "bare":
            options = {"preload": ["--adapter", "annotations"],
                       "never": ["--adapter", "sanitizer", "--tool", "access", "--launches", "all"]}.get(
                name, [*(["--passes", "1"] if name[0] == "+" else ["--adapter", "sanitizer"]), "--tool", name.lstrip("+"), "--launches", f"iterations:1/{arguments.apart}"])
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
    everything = [window for name, of in told.items() if name != "patches" for window in of["windows"]]
    fastest = {what: min(min(window[what]) if what != "gpu_ms" else window[what] for window in everything)
               for what in ("core_ms", "gpu_ms")}

    def quiet(window):
        """Neither the GPU nor one of the two cores ran at less than its speed."""
        cores = max(window["core_ms"] + window["core_ms_after"])
        return cores < 1.2 * fastest["core_ms"] and window["gpu_ms"] < 1.1 * fastest["gpu_ms"]

    def steps_of(name):
        """(ms, whether nothing disturbed it, ms of the step, ms of what ended it), in their order."""
        return [(a + b, quiet(window), a, b) for window in told[name]["windows"] for a, b in zip(window["ms"], window["end_ms"])]

    bare = steps_of("bare")
    mean = statistics.mean(ms for ms, *_ in bare)
    quiet_mean = statistics.mean([ms for ms, is_quiet, *_ in bare if is_quiet] or [mean])
    print(f"{arguments.model}: bare mean {mean:.3f} ms, of the quiet {quiet_mean:.3f} "
          f"({sum(is_quiet for _, is_quiet, *_ in bare)} of {len(bare)}), least {min(bare)[0]:.3f}", flush=True)
    for name, of in told.items():
        if name in ("bare", "patches"):
            continue
        steps = steps_of(name)
        # Iterations are counted from the first step of the warm-up.
        sampled = [i for i in range(1, len(steps) - 1) if (i + WARM_UP) % arguments.apart == 0 and name in arguments.tools]
        near = {j for i in sampled for j in (i - 1, i, i + 1)}
        between = [step for i, step in enumerate(steps) if i not in near]
        undisturbed = [ms for ms, is_quiet, *_ in between if is_quiet] or [0]
        # As if all steps had been as undisturbed as those.
        extra = sum(steps[i - 1][3] + steps[i][0] + steps[i + 1][2] for i in sampled)
        of_all = (extra + (len(steps) - 2 * len(sampled)) * statistics.mean(undisturbed)) / len(steps)
        windows = of["windows"]
        print(f"{arguments.model} {name}: mean {statistics.mean(ms for ms, *_ in steps):.3f} "
              f"({statistics.mean(ms for ms, *_ in steps) / mean:.3f}), of the quiet {of_all:.3f} ({of_all / quiet_mean:.3f}); "
              f"between: quiet {statistics.mean(undisturbed):.3f} ({statistics.mean(undisturbed) / quiet_mean:.3f}, {len(undisturbed)} steps), "
              f"least {min(between)[0]:.3f} ({min(between)[0] / min(bare)[0]:.3f}); on, step, off, next: "
              f"{[tuple(round(value, 1) for value in (steps[i - 1][3], steps[i][2], steps[i][3], steps[i + 1][2])) for i in sampled]}; "
              f"device memory {of['memory_mib']} MiB (bare {told['bare']['memory_mib']}), resident "
              f"{windows[-1]['resident_kib'] >> 10} MiB, at most {windows[-1]['most_resident_kib'] >> 10} (bare "
              f"{told['bare']['windows'][-1]['resident_kib'] >> 10}, {told['bare']['windows'][-1]['most_resident_kib'] >> 10}); "
              f"ended {of['end']}", flush=True)
    for patch, turns in told.get("patches", {}).items():
        ms = [value for turn in turns for value in turn["ms"]]
        print(f"{arguments.model} patch {patch}: median {statistics.median(ms):.1f} ms ({statistics.median(ms) / quiet_mean:.1f}), "
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
    parser.add_argument("--window", type=int, default=25)
    parser.add_argument("--tools", nargs="*", default=["reuse", "access"])
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--memory", action="store_true", help="tell also what a process of each takes of the GPU's")
    measure(parser.parse_args())


main()
