#!/usr/bin/env python3
"""Runs kernels whose accesses are known under `pastaprof run --adapter sanitizer`, compares every
count with what was worked out by hand, and measures what the analysis costs steps of PyTorch:

    tests/gpu/accesses_check.py --pastaprof PROGRAM --programs FOLDER --output FOLDER [PART...]

Parts: simple, edges, streams, hopper, steps, contexts, devices (of accesses.cu); forms (forms.cu), each way to access
memory; memory (memory.cu), each way to get it; plain, modules, child_graphs, mixed_graphs, first_of_graph, conditions, of_kernels, of_graphs
(launches.cu), each way in which a kernel comes to run; others, the same kernels under other tools; warps, made-up accesses, of which a GPU and the host say the same; badly, programs that
fault or spin; full, one that takes all memory of a GPU, which nobody else may use meanwhile; jit, kernels of
Triton and NVRTC; torch_graph, graphs of PyTorch beside the same steps without; uncovered, a matrix product that no patch sees; counters and several, what counters_check.py
(where there is ncu) and several_runs_check.py do; gpt2-infer, gpt2-train, resnet50-infer, steps of which under
each patch by turns; iterations, those of models of which one in many is analysed. `exact` is all of them but
those of models, in a minute or two, and after each part a page of how much held, exact.md. Exit code: 0 when
all held."""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

from known_accesses import (LOCAL, LOCAL_LANES, OBJECTS, OF_PEER, SHARED, SITES, TOUCHED, UNSEEN, WARPS, in_context, objects_of,
                            places_of, shared_of)

HERE = pathlib.Path(__file__).resolve().parent
# Of the folder of tests beside, or brought along.
sys.path.append(str(HERE.parent / "diff"))

TOOLS = ("access", "hotpages", "reuse", "divergence")
KERNELS = ("simple", "edges", "streams", "hopper", "steps", "contexts")
LAUNCHES = ("plain", "modules", "child_graphs", "mixed_graphs", "first_of_graph", "conditions", "of_kernels", "of_graphs")
FORMS = ("forms", "memory", *LAUNCHES)
# What the device's runtime does, to launch, is not known: it is of no object, and in local memory.
BY_KERNELS = ("of_kernels", "of_graphs")
MODELS = ("gpt2-infer", "gpt2-train", "resnet50-infer")
EXACT = ("warps", *KERNELS, *FORMS, "devices", "others", "full", "counters", "badly", "jit", "torch_graph", "uncovered", "several")
PARTS = (*EXACT, *MODELS, "iterations")
# Of the iterations of `steps` and of models, one in so many is analysed.
STEPS_APART, MODEL_APART = 3, 250


TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
x = torch.ones(100_000, device="cuda")
out = torch.empty_like(x)
double[(98,)](x, out, 100_000, B=1024)
assert bool((out == 2).all())
"""
GRAPH = """
import sys, torch
a = torch.ones(512, 512, device="cuda")
w = torch.full((512, 512), 0.01, device="cuda")
def step():
    x = torch.softmax((a @ w).relu() + 1, dim=1)
    return (x * a).sum(dim=0).sort()[0]
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    step()
    stream.synchronize()
    if sys.argv[1] == "eager":
        for _ in range(3):
            step()
    else:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
        for _ in range(3):
            graph.replay()
    torch.cuda.synchronize()
"""
NVRTC = """
import torch
twice = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")
assert bool((twice(torch.ones(100_000, device="cuda")) == 2).all())
"""


def rows(document, table):
    for part in document["reports"][0]["parts"]:
        if part.get("id") == table:
            names = [column["name"] for column in part["columns"]]
            return [dict(zip(names, row)) for row in part["rows"]]
    return []


def program_of(folder, part):
    """What runs the kernels of a part."""
    if part in ("forms", "memory"):
        return [str(folder / part)]
    return [str(folder / ("launches" if part in LAUNCHES else "accesses")), part]


class Check:
    def __init__(self, arguments):
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.programs = pathlib.Path(arguments.programs).resolve()
        self.output = pathlib.Path(arguments.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)
        self.rounds, self.steps, self.seconds_of_model = arguments.rounds, arguments.steps, arguments.seconds
        self.patches = arguments.patches
        self.failures = 0
        self.figures = {}
        self.said = []  # of the last report
        self.held = {}  # part -> tool -> how much of how much

    def tell(self, part, tool, good, wanted, rest=""):
        self.held.setdefault(part, {})[tool] = (good, wanted)
        print(f"{part}: {tool}: {good} of {wanted} held; {self.seconds:.1f} s{rest}", flush=True)

    def page(self):
        """What held, by part and tool, as a table."""
        lines = ["| part | " + " | ".join(TOOLS) + " |", "|---" * (1 + len(TOOLS)) + "|"]
        for part, tools in self.held.items():
            lines.append(f"| {part} | " + " | ".join(f"{tools[tool][0]} of {tools[tool][1]}" if tool in tools else "" for tool in TOOLS) + " |")
        (self.output / "exact.md").write_text("\n".join(lines) + "\n")
        (self.output / "exact.json").write_text(json.dumps(self.held, indent=0))

    def check(self, what, got, wanted):
        if got != wanted:
            self.failures += 1
            print(f"FAILED {what}: got {got}, wanted {wanted}", flush=True)
        return got == wanted

    def watched(self, name, command, seconds, tool="access", launches="all", stdout=subprocess.PIPE, **variables):
        report = self.output / f"{name}.json"
        log = self.output / f"{name}.log"
        report.unlink(missing_ok=True)  # that of another tool has the same name
        # Lines for each launch would be among what is measured.
        environment = {**os.environ, "PASTA_SANITIZER_LOG": str(log) if name in KERNELS + FORMS else "", **variables}
        begin = time.monotonic()
        # A group of its own, so that nothing of it is left behind.
        process = subprocess.Popen(
            [self.pastaprof, "run", "--adapter", "sanitizer", "--tool", tool, "--launches", launches, "-o", f"/tmp/{name}.pasta", "--force",
             "--format", "json", "--report", str(report), "--", *command],
            stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        try:
            told, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self.failures += 1
            print(f"FAILED {name}: still runs after {seconds} s", flush=True)
            for line in log.read_text().splitlines()[-5:] if log.exists() else ():
                print("  ", line[:200])
            return None, None
        result = subprocess.CompletedProcess(command, process.returncode, told, errors)
        self.seconds = time.monotonic() - begin
        if not self.check(f"{name}: exit code", result.returncode, 0):
            print(result.stderr[-500:])
            for line in log.read_text().splitlines()[-5:] if log.exists() else ():
                print("  ", line[:200])
        document = json.loads(report.read_text()) if report.exists() else None
        if document:
            self.said = [problem["first"] for problem in document["trace"]["quality"]["problems"]]
            for problem in document["trace"]["quality"]["problems"]:
                print("   said:", problem["count"], problem["first"][:160], flush=True)
        return result, document

    def of_kernels(self, part, tool):
        launches = {"steps": f"iterations:1/{STEPS_APART}", "first_of_graph": "first:1"}.get(part, "all")
        return self.watched(part, program_of(self.programs, part), 20 if part in LAUNCHES else 40, tool=tool, launches=launches)

    def kernels(self, part):
        result, document = self.of_kernels(part, "access")
        if document is not None:
            objects = dict(OBJECTS[part])
            if part == "memory" and int(result.stdout.split()[0]) > 1:
                objects |= OF_PEER
            self.objects_and_shared(part, document, objects, SHARED[part])
            self.places_and_unseen(part, document)
        if part == "of_graphs":
            self.check("of_graphs: what is left alone is said", any("for kernels to launch" in text for text in self.said), True)
        if part == "mixed_graphs" and document is not None:
            # Each launch of a graph has its own, though all wait behind each other.
            self.check("mixed_graphs: launches", {row["launches"] for row in rows(document, "objects") if row["kernel"] != "known_last"}, {3})
            self.check("mixed_graphs: nodes", {row["kernel"]: row["launches"] for row in rows(document, "kernels")},
                       {"in_chain_a": 6, "in_chain_b": 6, "in_chain_c": 6, "in_fork_a": 3, "in_fork_b": 3, "busy": 2, "known_last": 1})
        if part == "simple":
            self.strides(f"/tmp/{part}.pasta")

    def places_and_unseen(self, part, document):
        """What is told of places, of local memory, and of what cannot be seen."""
        got = places_of(rows(document, "sites"))
        wanted = SITES.get(part, {})
        good = sum(self.check(f"{part}: places of {kernel}", got.get(kernel, {}), places) for kernel, places in wanted.items())
        local = {row["kernel"]: (row["reads"], row["writes"]) for row in rows(document, "local")}
        good += self.check(f"{part}: local memory", {} if part in BY_KERNELS else local, LOCAL.get(part, {}))
        unseen = {row["kernel"]: row["uncovered"] for row in rows(document, "kernels") if row["uncovered"] != "no"}
        good += self.check(f"{part}: what is not seen", unseen, UNSEEN.get(part, {}))
        self.tell(f"{part}, places", "access", good, len(wanted) + 2)

    def strides(self, trace):
        """Words 1 to 33 apart, launch by launch: sectors and bytes from lane to lane."""
        import device_blobs as blobs
        dumped = subprocess.run([self.pastaprof, "dump", trace], capture_output=True, text=True).stdout
        told = {found[1]: bytes.fromhex(found[2]) for found in re.finditer(r'^blob (\w+) "(\w+)"', dumped, re.MULTILINE)}
        got = []
        for found in re.finditer(r'^device \S+ \S+ \w+ "stride" .*blob=(\w+) .*launch=(\d+)', dumped, re.MULTILINE):
            site, = (row for row in blobs.rows_of(told[found[1]], blobs.SITES) if row[2] == blobs.READ)
            got.append((int(found[2]), site[9], site[10], site[21], site[22]))
        # 32 words lie in as many sectors as the last begins behind the first, and one; needed are 4. The first are a row.
        wanted = [(4 * step if step < 8 else 32, 4, *((4 * step,) * 2 if step > 1 else (0, 0))) for step in range(1, 34)]
        good = self.check("simple: each of the strides", [values[1:] for values in sorted(got)], wanted)
        self.tell("strides 1 to 33", "access", 33 if good else 0, 33)

    def devices(self):
        result, document = self.watched("devices", [str(self.programs / "accesses"), "devices"], 40)
        if document is not None:
            numbers = range(int(result.stdout.split()[0]))
            self.objects_and_shared("devices", document, {key: value for n in numbers for key, value in in_context(n)}, {})

    def objects_and_shared(self, part, document, objects, shared):
        got = objects_of(rows(document, "objects"), objects)
        if part in BY_KERNELS:
            got = {key: values for key, values in got.items() if key[2] is not None}
        good = 0
        for key, values in objects.items():
            good += self.check(f"{part}: {key}", got.pop(key, None), values)
        for key, values in got.items():
            self.check(f"{part}: {key}", values, None)
        got = shared_of(rows(document, "shared"))
        for key, values in shared.items():
            good += self.check(f"{part}: shared memory of {key}", got.pop(key, None), values)
        for key, values in got.items():
            self.check(f"{part}: shared memory of {key}", values, None)
        self.tell(part, "access", good, len(objects) + len(shared))

    def counters(self):
        import counters_check
        failed = counters_check.Check(self).all(counters_check.PARTS)
        self.check("counters: what differs for no known reason", failed, 0)

    def several(self):
        import several_runs_check
        check = several_runs_check.Check(self)
        check.all()
        self.check("several: what did not hold", check.failures, 0)

    def warps(self):
        result = subprocess.run([str(self.programs / "warps"), "20000"], capture_output=True, text=True, timeout=60)
        self.check("warps: exit code", result.returncode, 0)
        print("warps:", result.stdout.strip(), result.stderr.strip(), flush=True)

    def badly(self):
        """Programs that do not end well end as they do without us, and what was lost of them is said."""
        self.lose("fault", "the device has failed")
        self.lose("spins", None, interrupt=True)  # nobody is left who could say so

    def full(self):
        self.lose("full64", "and its launches waited for each other")
        self.lose("full2", "nothing was analysed")

    def lose(self, part, lost, interrupt=False):
        known = {("copy4", "reads", 4096): (1024, 4096, 4096, 4096), ("copy4", "writes", 4096): (1024, 4096, 4096, 4096)}
        ends = [self.ends(part, interrupt, watched) for watched in (False, True)]
        self.check(f"{part}: ends as it does by itself", ends[1][:2], ends[0][:2])
        document = ends[1][2]
        said = [problem["first"] for problem in document["trace"]["quality"]["problems"]] if document else []
        self.check(f"{part}: what was lost is said", lost is None or any(lost in text for text in said), True)
        got = {(row["kernel"], what, row["size"]): (row["reads"] + row["writes"], row["asked"], row["moved"], row["touched"])
               for row in (rows(document, "objects") if document else []) for what in ("reads", "writes") if row[what]}
        if not part.startswith("full"):
            self.check(f"{part}: what was complete", {key: got.get(key) for key in known}, known)
        print(f"{part}: {ends[0][:2]} bare in {ends[0][3]:.1f} s, watched in {ends[1][3]:.1f} s, {len(got)} objects; said: {said}", flush=True)

    def ends(self, part, interrupt, watched):
        report = self.output / f"{part}.json"
        report.unlink(missing_ok=True)
        command = [str(self.programs / "accesses"), part]
        if watched:
            command = [self.pastaprof, "run", "--adapter", "sanitizer", "--tool", "access", "-o", f"/tmp/{part}.pasta", "--force",
                       "--format", "json", "--report", str(report), "--", *command]
        begin = time.monotonic()
        # A group of its own is what a terminal would interrupt.
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        told = ""
        if interrupt:
            told = program.stdout.readline()
            time.sleep(0.5)  # nothing tells that a kernel spins
            os.killpg(program.pid, signal.SIGINT)
        try:
            told += program.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            told = "still runs after 60 s"
        code = program.returncode
        # A shell says of a signal what pastaprof says of it.
        return 128 - code if code < 0 else code, told, json.loads(report.read_text()) if watched and report.exists() else None, time.monotonic() - begin

    def jit(self):
        """Kernels that are compiled while the program runs, each of 100000 floats."""
        for name, kernel, program in (("triton", "double", TRITON), ("nvrtc", "twice", NVRTC)):
            (self.output / f"{name}_program.py").write_text(program)
            _, document = self.watched(name, [sys.executable, str(self.output / f"{name}_program.py")], 60)
            if document is None:
                continue
            found = [row for row in rows(document, "objects") if kernel in row["kernel"]]
            got = {what: sum(row[what] for row in found) for what in ("asked", "touched", "atomics")}
            good = self.check(f"{name}: bytes", got, {"asked": 800_000, "touched": 800_000, "atomics": 0})
            good = self.check(f"{name}: read and written", [sum(row[what] > 0 for row in found) > 0 for what in ("reads", "writes")], [True, True]) and good
            self.tell(name, "access", int(good), 1)

    def torch_graph(self):
        """Steps of PyTorch by themselves, and the same as graphs: kernels ask for the same."""
        (self.output / "graph_program.py").write_text(GRAPH)
        asked = []
        for how in ("eager", "graph"):
            _, document = self.watched("torch_graph", [sys.executable, str(self.output / "graph_program.py"), how], 60)
            if document is None:
                return
            asked.append({row["kernel"]: (row["launches"], row["asked"], row["moved"]) for row in rows(document, "kernels")})
        good = sum(self.check(f"torch_graph: {kernel}", asked[1].get(kernel), values) for kernel, values in asked[0].items())
        # PyTorch fills a few words more where it captures.
        self.tell("torch_graph", "access", good, len(asked[0]))

    def others(self):
        """The same kernels under the other patches."""
        for part in WARPS:
            self.of_other(part, "hotpages", self.hotpages)
            self.of_other(part, "reuse", self.reuse)
            self.of_other(part, "divergence", self.divergence)

    def of_other(self, part, tool, check):
        _, document = self.of_kernels(part, tool)
        if document is not None:
            self.tell(part, tool, *check(part, document))

    def hotpages(self, part, document):
        wanted, got = collections.defaultdict(lambda: [0] * 4), collections.defaultdict(lambda: [0] * 4)
        for (_, what, size), (lanes, _, moved, _) in OBJECTS[part].items():
            wanted[size][("reads", "writes", "atomics").index(what)] += lanes
            wanted[size][3] += moved
        for row in rows(document, "objects"):
            size = None if row["object"] == "unknown" else row["size"]
            for i, name in enumerate(("reads", "writes", "atomics", "moved")):
                got[size][i] += row[name]
        sizes = wanted.keys() | got.keys()
        return sum(self.check(f"{part}: hotpages of {size} bytes", got.get(size), wanted.get(size)) for size in sizes), len(sizes)

    def reuse(self, part, document):
        wanted = {kernel: [touched, 0, 0] for kernel, touched in TOUCHED[part].items() if touched}
        for (kernel, _, _), (_, asked, moved, _) in OBJECTS[part].items():
            wanted[kernel][1] += asked
            wanted[kernel][2] += moved
        got = {row["kernel"]: [row["working_set"], row["asked"], row["moved"]] for row in rows(document, "kernels") if row["asked"]}
        kernels = wanted.keys() | got.keys()
        return sum(self.check(f"{part}: reuse of {kernel}", got.get(kernel), wanted.get(kernel)) for kernel in kernels), len(kernels)

    def divergence(self, part, document):
        lanes = collections.Counter(LOCAL_LANES)
        for (kernel, _, _), values in OBJECTS[part].items():
            lanes[kernel] += values[0]
        for kernel, values in SHARED[part].items():
            lanes[kernel] += sum(values[:3])
        got = {row["kernel"]: (row["warps"], round(row["lanes"], 6)) for row in rows(document, "kernels") if row["warps"]}
        wanted = {}
        for kernel, warps in WARPS[part].items():
            if isinstance(warps, tuple):  # one of these
                warps = next((one for one in warps if one == got.get(kernel, [0])[0]), warps[0])
            if warps:
                wanted[kernel] = (warps, round(lanes[kernel] / warps, 6))
        kernels = wanted.keys() | got.keys()
        return sum(self.check(f"{part}: divergence of {kernel}", got.get(kernel), wanted.get(kernel)) for kernel in kernels), len(kernels)

    def model(self, model):
        command = [sys.executable, str(HERE / "analysis_steps.py"), model, str(self.rounds), str(self.steps), "20",
                   *self.patches]
        told_so_far = self.output / f"{model}.jsonl"
        with open(told_so_far, "w") as stdout:
            self.watched(model, command, self.seconds_of_model, stdout=stdout)
        turns = collections.defaultdict(list)
        for line in told_so_far.read_text().splitlines():
            if line.startswith("{"):
                told = json.loads(line)
                turns[told["patch"]].append(told)
                self.check(f"{model}: there is a patch {told['patch'] or 'none'}", told["known"], 1)
        self.figures.setdefault("steps", {})[model] = turns
        medians = {patch: statistics.median([ms for turn in all_of_it for ms in turn["ms"]] or [0])
                   for patch, all_of_it in turns.items()}
        for patch, median in medians.items():
            floor = medians.get("empty_global" if patch in ("reuse", "hotpages", "empty_global") else "empty", 0)
            print(f"{model}: patch {patch or 'none'}: median {median:.1f} ms, {median / (medians.get('') or 1e-9):.2f} times bare, "
                  f"{median / floor if floor else 0:.2f} times its floor, first {turns[patch][0]['first_ms']:.0f} ms, "
                  f"switched in {turns[patch][0]['switch_ms']:.0f} ms", flush=True)

    def iterations(self):
        command = [sys.executable, str(HERE / "iteration_steps.py")]
        for model, steps in (("gpt2-infer", 500), ("resnet50-infer", 500), ("gpt2-train", 250)):
            bare, watched = [], []
            for _ in range(2):
                result = subprocess.run([*command, model, str(steps)], capture_output=True, text=True, timeout=90)
                bare += json.loads(result.stdout.splitlines()[-1])["ms"]
                result, document = self.watched(f"iterations-{model}", [*command, model, str(steps)], 90, tool="reuse",
                                                launches=f"iterations:1/{MODEL_APART}")
                watched += json.loads(result.stdout.splitlines()[-1])["ms"]
            self.figures.setdefault("iterations", {})[model] = {"bare": bare, "watched": watched}
            print(f"iterations of {model}: mean of {len(bare)} {statistics.mean(bare):.2f} ms bare, "
                  f"{statistics.mean(watched):.2f} ms with one in {MODEL_APART} analysed: "
                  f"{statistics.mean(watched) / statistics.mean(bare):.3f}; medians {statistics.median(bare):.2f}, "
                  f"{statistics.median(watched):.2f}; longest {sorted(watched)[-4:]}", flush=True)

    def uncovered(self):
        program = ("import torch\na = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16)\n"
                   "torch.matmul(a, a)\ntorch.cuda.synchronize()")
        _, document = self.watched("uncovered", [sys.executable, "-c", program], 60)
        if document is None:
            return
        found = [row for row in rows(document, "objects") if "nvjet" in row["kernel"] or "gemm" in row["kernel"]]
        said = [part["text"] for part in document["reports"][0]["parts"] if part.get("id") == "uncovered"]
        self.check("uncovered: said of the kernel", bool(found) and all(any(row["kernel"] in text for text in said) for row in found), True)
        print("uncovered:", [(row["kernel"], row["object"], row["reads"], row["writes"]) for row in found], said, flush=True)
        self.figures["uncovered"] = said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="of each turn of a patch")
    parser.add_argument("--seconds", type=float, default=120, help="that a model may take")
    parser.add_argument("--patches", nargs="+", default=["", "empty_global", "reuse", "hotpages", "empty", "access", "divergence"])
    parser.add_argument("parts", nargs="*", default=PARTS)
    arguments = parser.parse_args()
    check = Check(arguments)
    parts = [part for name in arguments.parts or PARTS for part in (EXACT if name == "exact" else (name,))]
    for part in parts:
        try:
            if part in KERNELS + FORMS:
                check.kernels(part)
            elif part in MODELS:
                check.model(part)
            else:
                getattr(check, part)()
        except Exception as error:  # the other parts still tell something
            check.failures += 1
            print(f"FAILED {part}: {type(error).__name__}: {error}", flush=True)
        check.page()
        (check.output / "accesses_figures.json").write_text(json.dumps(check.figures))
    print("all held" if check.failures == 0 else f"{check.failures} did not hold")
    return check.failures != 0


if __name__ == "__main__":
    sys.exit(main())
