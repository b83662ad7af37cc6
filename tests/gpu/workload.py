#!/usr/bin/env python3
"""Eager PyTorch steps of real models, timed one by one: workload.py STEPS MODEL... [--profiler NAME]

Prints one JSON object a model: the times of its steps in ms, and under a profiler of PyTorch how many
kernels it saw in these steps and how long they took. With --serve it makes all models, says that it is
ready, and for each line of its input that names one does STEPS steps of it with what watches it off, and
as many with it on, and that TURNS times, each first as often as the other: what is compared has the same
memory, cores and minutes. With
--states it does so many steps of each model with the collector that does nothing asked for each of these
kinds ("-": for none), again and again for SECONDS a model, in one process. With --memory SECONDS it does
steps of a model for so long, and tells its resident memory, every half second."""
import argparse
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import sys
import tempfile
import time

import torch

MODELS = ("resnet50-train", "gpt2-train", "bert-train", "gpt2-infer")
WARM_UP = 5
KINETO = ("cuda", "full", "stacks")
PROTON = {"proton": "shadow", "proton-python": "python"}  # what its contexts are
AGAIN = 2  # steps before those that are timed, when another process had the GPU in between


def wait_ms():
    """How long it waits for the GPU, at the end of a step."""
    begin = time.perf_counter()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


def make(name, compiled=False):
    """The function that does one step of it, and tells how long it waited; `compiled`: by PyTorch's compiler."""
    model, phase = name.split("-")
    torch.manual_seed(0)
    if model == "resnet50":
        import torchvision
        network = torchvision.models.resnet50().cuda()
        network = torch.compile(network) if compiled else network
        images = torch.randn(32, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (32,), device="cuda")
        forward = lambda: network(images)
        loss = lambda: torch.nn.functional.cross_entropy(forward(), labels)
    else:
        from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
        network = GPT2LMHeadModel(GPT2Config()) if model == "gpt2" else BertForMaskedLM(BertConfig())
        network.cuda()
        network = torch.compile(network) if compiled else network
        words = torch.randint(0, 30000, (8, 512), device="cuda")
        forward = lambda: network(input_ids=words)
        loss = lambda: network(input_ids=words, labels=words).loss
    if phase == "infer":
        def step():
            with torch.no_grad():
                forward()
            return wait_ms()
        return step
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
        return wait_ms()
    return step


def kernels_of(profile):
    kernels = {}
    for event in profile.events():
        annotation = event.name.startswith(("ProfilerStep", "Optimizer."))
        if event.device_type == torch.autograd.DeviceType.CUDA and not annotation and not event.name.startswith("Mem"):
            count, total = kernels.get(event.name, (0, 0))
            kernels[event.name] = (count + 1, total + event.time_range.elapsed_us())
    return kernels


def profiler_of(name):
    """A context in which the rival of this name watches; of Kineto its profile."""
    if name == "nvtx":
        return torch.autograd.profiler.emit_nvtx()
    if name not in KINETO:
        return contextlib.nullcontext()
    from torch.profiler import ProfilerActivity as Activity
    return torch.profiler.profile(activities=[Activity.CUDA] + ([Activity.CPU] if name != "cuda" else []),
                                  **({"with_stack": True, "record_shapes": True} if name == "stacks" else {}))


@contextlib.contextmanager
def proton_of(name, counts):
    """Proton around it, if it is asked for; into `counts` goes how many kernels it saw."""
    if name not in PROTON:
        yield
        return
    import triton.profiler as proton
    with tempfile.TemporaryDirectory() as folder:
        proton.start(f"{folder}/proton", context=PROTON[name])
        yield
        proton.finalize()
        with open(f"{folder}/proton.hatchet") as file:
            waiting = list(json.load(file))
        while waiting:
            node = waiting.pop()
            counts.append(node.get("metrics", {}).get("count", 0))
            waiting += node.get("children", [])


def gpu_ms():
    """How long the GPU takes for the same work, of itself: at half its speed no step says anything."""
    if not hasattr(gpu_ms, "matrix"):
        gpu_ms.matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    gpu_ms.matrix @ gpu_ms.matrix
    begin.record()
    for _ in range(4):
        gpu_ms.matrix @ gpu_ms.matrix
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 4


def processor_ms():
    """Processor time of each thread so far."""
    used = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError, ValueError):  # it has just ended
            name = "main" if int(task.name) == os.getpid() else (task / "comm").read_text().strip()
            used[task.name, name] = int((task / "schedstat").read_text().split()[0]) / 1e6
    return used


def timed(step, steps):
    times, waits = [], []
    before = processor_ms()
    begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for _ in range(steps):
        begin = time.perf_counter()
        waits.append(step())
        times.append((time.perf_counter() - begin) * 1e3)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    threads = {}
    for (task, name), used in processor_ms().items():
        spent = (used - before.get((task, name), 0)) / steps
        if spent > 0:
            threads[name] = threads.get(name, 0) + spent
    return {"begin_ns": begin_ns, "end_ns": end_ns, "ms": times, "wait_ms": waits, "processor_ms": threads}


@contextlib.contextmanager
def started_proton(context):
    import triton.profiler as proton
    with tempfile.TemporaryDirectory() as folder:
        session = proton.start(f"{folder}/proton", context=context)
        yield
        proton.finalize(session)


@contextlib.contextmanager
def started(start, stop):
    start()
    yield
    stop()


def switch_of(name):
    """What gives a context in which the watching of this name is on; outside of it, it is off."""
    if name in PROTON:
        return lambda: started_proton(PROTON[name])
    if name == "nvtx" or name in KINETO:
        return lambda: profiler_of(name)
    if name == "floor":
        floor = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).collect_nothing
        floor(0)
        return lambda: started(lambda: floor(1), lambda: floor(0))
    if name in ("pasta", "pasta_nvtx"):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
        import pastaprof
        assert pastaprof.watched()
        pastaprof.stop()
        if name == "pasta":
            return lambda: started(pastaprof.start, pastaprof.stop)

        @contextlib.contextmanager
        def both():
            with started(pastaprof.start, pastaprof.stop), profiler_of("nvtx"):
                yield
        return both
    return contextlib.nullcontext


class Cores:
    """Puts the two threads that launch, the main one and autograd's, each on a core that is fast just now, and all others
    elsewhere: a core of a virtual machine runs at half its speed while its neighbour on the same real one is busy."""

    def __init__(self):
        self.all = sorted(os.sched_getaffinity(0))

    @staticmethod
    def ms(core):
        """How long this thread takes there for the same work."""
        os.sched_setaffinity(0, {core})
        times = []
        for _ in range(2):
            begin, sum = time.perf_counter(), 0
            for i in range(2000):
                sum += i
            times.append((time.perf_counter() - begin) * 1e3)
        return min(times)

    def place(self):
        took = sorted((self.ms(core), core) for core in self.all)
        if len(took) == 1:
            took *= 2
        self.chosen = [core for _, core in took[:2]]
        others = set(self.all) - set(self.chosen) or set(self.all)
        for task in pathlib.Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # it has just ended
                autograd = (task / "comm").read_text().startswith("pt_autograd_0")
                os.sched_setaffinity(int(task.name), {self.chosen[1]} if autograd else others)
        os.sched_setaffinity(0, {self.chosen[0]})
        return [ms for ms, _ in took[:2]]

    def again(self):
        """The same of the chosen ones, and this thread stays where it is."""
        return [self.ms(core) for core in reversed(self.chosen)][::-1]


def serve(arguments):
    cores = Cores()
    made, turns = {}, collections.Counter()
    for name in arguments.models:
        made[name] = make(name)
        for _ in range(WARM_UP):
            made[name]()
        torch.cuda.empty_cache()  # for those that take turns with it
    switch = switch_of(arguments.switch)
    print(json.dumps({"ready": list(made)}), flush=True)
    for line in sys.stdin:
        step = made[line.strip()]
        parts = {"off": [], "on": []}
        for _ in range(arguments.turns):
            turns[line] += 1
            for part in ("off", "on") if turns[line] % 2 == 1 else ("on", "off"):
                with switch() if part == "on" else contextlib.nullcontext():
                    for _ in range(AGAIN):
                        step()
                    before = {"gpu_ms": gpu_ms(), "core_ms": cores.place()}
                    step()
                    parts[part].append({**before, **timed(step, arguments.steps), "core_ms_after": cores.again()})
        torch.cuda.empty_cache()
        print(json.dumps({"model": line.strip(), **parts}), flush=True)


def ask_for(floor, state):
    """KINDS[:BYTES,KEPT,MS], as collect_nothing.cpp has them."""
    kinds, _, buffers = state.partition(":")
    floor.collect_buffers(*map(int, (buffers or f"{4 << 20},0,0").split(",")))
    floor.collect(kinds.replace("-", "").encode())


def steps_by_state(arguments):
    floor = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    floor.collect_buffers.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    floor.collect(b"")
    cores = Cores()
    for name in arguments.models:
        step = make(name)
        for _ in range(WARM_UP):
            step()
        torch.cuda.empty_cache()
        begin, turn = time.monotonic(), 0
        parts = {state: [] for state in arguments.states}
        while time.monotonic() - begin < arguments.seconds:
            first = turn % len(arguments.states)
            for state in arguments.states[first:] + arguments.states[:first]:
                ask_for(floor, state)
                for _ in range(AGAIN):
                    step()
                before = {"gpu_ms": gpu_ms(), "core_ms": cores.place()}
                step()
                parts[state].append({**before, **timed(step, arguments.steps), "core_ms_after": cores.again()})
            turn += 1
        print(json.dumps({"model": name, "states": parts}), flush=True)
        floor.collect(b"")
        del step
        torch.cuda.empty_cache()


def resident_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def tell_memory(arguments):
    step = make(arguments.models[0])
    for _ in range(WARM_UP):
        step()
    begin, told, steps = time.monotonic(), [], 0
    while time.monotonic() - begin < arguments.memory:
        step()
        steps += 1
        if time.monotonic() - begin >= len(told) / 2:
            told.append(resident_kib())
    print(json.dumps({"model": arguments.models[0], "steps": steps, "resident_kib": told}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int)
    parser.add_argument("models", nargs="+", choices=MODELS)
    parser.add_argument("--profiler", choices=(*KINETO, "nvtx", *PROTON))
    parser.add_argument("--export", metavar="FILE", help="where Kineto's trace is written")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--switch", default="none",
                        choices=("none", "floor", "pasta", "nvtx", "pasta_nvtx", *KINETO, *PROTON))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--states", nargs="+", metavar="KINDS[:BYTES,KEPT,MS]")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--memory", type=float, metavar="SECONDS")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    if arguments.serve:
        return serve(arguments)
    if arguments.states:
        return steps_by_state(arguments)
    if arguments.memory:
        return tell_memory(arguments)
    for name in arguments.models:
        step = make(name)
        for _ in range(WARM_UP):
            step()
        counts = []
        with proton_of(arguments.profiler, counts), profiler_of(arguments.profiler) as profile:
            result = timed(step, arguments.steps)
        result["proton"] = sum(counts)
        if profile and arguments.profiler in KINETO:
            result["kernels"] = kernels_of(profile)
            if arguments.export:
                profile.export_chrome_trace(arguments.export)
        print(json.dumps({"model": name, **result}), flush=True)
        del step
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
