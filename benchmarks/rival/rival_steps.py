#!/usr/bin/env python3
"""Analysis of accesses on the GPU beside its rival on the host, on the same steps of a model.

    rival_steps.py PASTAPROF RIVAL CODE FOLDER MODEL [--threads N ...] [--rounds N] [--steps N]

RIVAL is libpastarival.so, CODE its ring_patch.fatbin; MODEL one of tests/gpu/workload.py, which has to be found
by Python, or `copy`, a kernel that reads 512 MiB and writes 512 MiB. What is compared runs in processes of their
own, which take turns: steps as they are, then steps that are analysed until all of them has been. Both say how
many lanes asked for how many bytes, and how many sectors these were; that has to be the same, also of objects of each
size, where PyTorch's allocator puts tensors into the same blocks in each process. What each told is in
FOLDER/MODEL/told.jsonl as soon as it has told it."""
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

WARM_UP = 5
COPY_BYTES = 512 << 20
SECTOR = 32


def make_step(model):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = True
    if model != "copy":
        from workload import make
        return make(model)
    source, target = (torch.zeros(COPY_BYTES // 4, device="cuda") for _ in range(2))

    def step():
        torch.add(source, 1, out=target)
        torch.cuda.synchronize()
    return step


def timed(step, steps, wait=lambda: None):
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        wait()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def serve(model, tool):
    import torch
    torch.cuda.synchronize()  # the library begins when CUDA does
    library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    if tool != "rival":
        library.pasta_sanitizer_patch.argtypes = [ctypes.c_char_p]
        library.pasta_sanitizer_patch(b"")
    else:
        library.rival_begin.argtypes = [ctypes.c_uint, ctypes.c_uint64]
        library.rival_wait.restype = ctypes.c_uint64
        library.rival_end.argtypes = [ctypes.c_char_p]
    step = make_step(model)
    timed(step, WARM_UP)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        told = {"bare": timed(step, order["steps"])}
        begin, processors = time.perf_counter(), time.process_time()
        if tool == "rival":
            lost = []
            assert library.rival_begin(order["threads"], SECTOR) == 0
            told["begin_ms"] = (time.perf_counter() - begin) * 1e3
            told["ms"] = timed(step, order["steps"], lambda: lost.append(library.rival_wait() == 0))
            library.rival_end(order["answer"].encode())
            told["lost"] = any(lost)
        else:
            assert library.pasta_sanitizer_patch(tool.encode()) == 1
            told["begin_ms"] = (time.perf_counter() - begin) * 1e3
            told["ms"] = timed(step, order["steps"])
            begin = time.perf_counter()
            library.pasta_sanitizer_patch(b"")  # waits until all is taken
            told["end_ms"] = (time.perf_counter() - begin) * 1e3
        told["processors_ms"] = (time.process_time() - processors) * 1e3
        print(json.dumps(told), flush=True)


class Server:
    def __init__(self, arguments, tool, folder):
        command = [sys.executable, "-u", __file__, "--serve", arguments.model, tool]
        environment = dict(os.environ)
        self.tool, self.turns, self.steps = tool, [], 0
        self.report = folder / f"{tool}.json"
        if tool == "rival":
            environment |= {"CUDA_INJECTION64_PATH": str(pathlib.Path(arguments.rival).resolve()),
                            "RIVAL_CODE": str(pathlib.Path(arguments.code).resolve())}
        else:
            command = [arguments.pastaprof, "run", "--adapter", "sanitizer", "--tool", tool, "--launches", "all",
                       "-o", f"/tmp/rival-{tool}.pasta", "--force", "--format", "json", "--report", str(self.report),
                       "--", *command]
        self.file = open(folder / "told.jsonl", "a")
        self.errors = open(folder / f"{tool}.err", "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env=environment)

    def told(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.tool} ended: {self.process.wait()}")

    def ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        self.turns.append({**order, **self.told()})
        self.steps += order["steps"]
        print(json.dumps({"server": self.tool, **self.turns[-1]}), file=self.file, flush=True)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)


def of_sizes(rows, steps):
    """What one step asks for, by the sizes of objects."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for size, *values in rows:
        sums[size] = [sum + value for sum, value in zip(sums[size], values)]
    return collections.defaultdict(lambda: [0, 0, 0], {size: [value / steps for value in values]
                                                       for size, values in sums.items()})


def rival_rows(path):
    told = json.loads(path.read_text())
    return told, [(row["size"], row["reads"] + row["writes"] + row["atomics"], row["asked"],
                   row["sectors"] * SECTOR) for row in told["objects"]]


def access_rows(path):
    for part in json.loads(path.read_text())["reports"][0]["parts"]:
        if part.get("id") == "objects":
            names = [column["name"] for column in part["columns"]]
            rows = [dict(zip(names, row)) for row in part["rows"]]
            return [(None if row["object"] == "unknown" else row["size"], row["reads"] + row["writes"] + row["atomics"],
                     row["asked"], row["moved"]) for row in rows if row["asked"]]
    return []


def measure(arguments):
    folder = pathlib.Path(arguments.folder) / arguments.model
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "told.jsonl").unlink(missing_ok=True)
    servers = [Server(arguments, tool, folder) for tool in ("rival", *arguments.tools)]
    for server in servers:
        server.told()
    answers = {}
    for turn in range(arguments.rounds):
        for server in servers:
            if server.tool != "rival":
                server.ask(steps=arguments.steps)
                continue
            for threads in arguments.threads:
                path = folder / f"answer-{threads}.json"
                server.ask(steps=arguments.steps, threads=threads, answer=str(path))
                answers[threads] = rival_rows(path)
    ends = {server.tool: server.end() for server in servers}
    told, rows = answers[arguments.threads[-1]]
    wanted = of_sizes(rows, arguments.steps)
    accesses = sum(row["warps"] for row in told["objects"]) / arguments.steps
    records = told["records"] / arguments.steps
    print(f"{arguments.model}: {accesses / 1e6:.2f} million accesses a step, {records / 1e6:.2f} million records, "
          f"{records * 16 / 1e6:.0f} MB; ended {ends}", flush=True)
    for server in servers:
        for threads in arguments.threads if server.tool == "rival" else (None,):
            turns = [turn for turn in server.turns if turn.get("threads") == threads]
            bare = statistics.median(ms for turn in turns for ms in turn["bare"])
            # What is still to be analysed when the steps have ended counts as well.
            all_ms = [(sum(turn["ms"]) + turn.get("end_ms", 0)) / len(turn["ms"]) for turn in turns]
            median = statistics.median(all_ms)
            processors = statistics.median(turn["processors_ms"] / len(turn["ms"]) for turn in turns)
            busy = f", threads busy {answers[threads][0]['busy_ns'] / 1e6 / arguments.steps:.0f} ms" if threads else ""
            print(f"{arguments.model} {server.tool}{f' of {threads} threads' if threads else ''}: a step {median:.1f} ms "
                  f"(all {[round(ms, 1) for ms in all_ms]}), {median / bare:.1f} times bare ({bare:.2f}), "
                  f"{(median - bare) * 1e6 / accesses:.2f} ns an access; processors {processors:.0f} ms a step{busy}"
                  f"{', RECORDS LOST' if any(turn.get('lost') for turn in turns) else ''}", flush=True)
    for server in servers:
        if server.tool == "access" and server.report.exists():
            got = of_sizes(access_rows(server.report), server.steps)
            together, ours = ([sum(values) for values in zip(*of.values())] for of in (wanted, got))
            different = {size: (wanted[size], got[size]) for size in wanted.keys() | got.keys()
                         if wanted[size] != got[size]}
            print(f"{arguments.model}: {together} lanes, bytes and bytes of sectors of all objects "
                  f"{'are the same' if together == ours else f'DIFFER from {ours}'}; of {len(wanted)} sizes of objects "
                  f"{f'{len(different)} differ: {different}' if different else 'all are the same'}", flush=True)
            if arguments.model == "copy":
                print(f"copy: known {COPY_BYTES // 4} lanes and {COPY_BYTES} bytes each way: {wanted}", flush=True)


def main():
    if "--serve" in sys.argv:
        return serve(*sys.argv[-2:])
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("pastaprof", "rival", "code", "folder", "model"):
        parser.add_argument(name)
    parser.add_argument("--threads", type=int, nargs="+", default=[14])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tools", nargs="+", default=["reuse", "access"])
    measure(parser.parse_args())


main()
