#!/usr/bin/env python3
"""Runs kernels whose accesses are known under `pastaprof run --adapter sanitizer`, compares every
count with what was worked out by hand, and measures what the analysis costs steps of PyTorch:

    tests/gpu/accesses_check.py --pastaprof PROGRAM --programs FOLDER --output FOLDER [PART...]

Parts: simple, edges, streams, hopper (of accesses.cu) and torch. Exit code: 0 when all held."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ("simple", "edges", "streams", "hopper", "torch")

# (kernel, what, size of the object) -> (lanes, bytes asked for, bytes moved, bytes touched)
# where what is one of reads, writes, atomics. A sector is 32 bytes.
OBJECTS = {
    "simple": {
        # 1024 items, 32 warps; a warp asks for 32 times the width in a row, at least one sector.
        **{(f"copy{width}", what, 1024 * width): (1024, 1024 * width, 1024 * width, 1024 * width)
           for width in (1, 2, 4, 8, 16) for what in ("reads", "writes")},
        # Words 1 to 33 apart: 4, 8, 12, 16, 20, 24, 28 sectors, from 8 on 32 of them: 112 + 26 * 32.
        ("stride", "reads", 4224): (33 * 32, 33 * 128, 944 * 32, 128),
        ("stride", "writes", 128): (33 * 32, 33 * 128, 33 * 128, 128),
        ("gather_sectors", "reads", 1024): (32, 128, 1024, 128),
        ("gather_sectors", "writes", 128): (32, 128, 128, 128),
        ("gather_backwards", "reads", 256): (32, 128, 128, 128),
        ("gather_backwards", "writes", 128): (32, 128, 128, 128),
        ("gather_halves", "reads", 4096): (32, 128, 128, 128),
        ("gather_halves", "writes", 128): (32, 128, 128, 128),
        # 128 warps; in a column each lane has a sector of its own.
        ("transpose_plain", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_plain", "writes", 16384): (4096, 16384, 131072, 16384),
        ("transpose_tile", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_tile", "writes", 16384): (4096, 16384, 16384, 16384),
        ("transpose_padded", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_padded", "writes", 16384): (4096, 16384, 16384, 16384),
        ("reduction", "reads", 1024): (256, 1024, 1024, 1024),
        ("reduction", "writes", 4): (1, 4, 32, 4),
    },
    "edges": {
        ("histogram", "reads", 1024): (256, 1024, 1024, 1024),
        # Every lane of 8 warps adds to the same word.
        ("histogram", "atomics", 1028): (256, 1024, 256, 4),
        ("histogram_shared", "reads", 1024): (256, 1024, 1024, 1024),
        ("histogram_shared", "writes", 1028): (256, 1024, 1024, 1024),
        ("odd_lanes", "reads", 128): (16, 64, 128, 64),
        ("odd_lanes", "writes", 132): (16, 64, 128, 64),
        # 31 whole warps, and one of 8 lanes.
        ("tail", "reads", 4000): (1000, 4000, 4000, 4000),
        ("tail", "writes", 4004): (1000, 4000, 4000, 4000),
        ("behind", "reads", None): (1, 4, 32, None),
        ("behind", "writes", 8): (1, 4, 32, 4),
        ("copies_ahead", "reads", 4096): (256, 4096, 4096, 4096),
        ("copies_ahead", "writes", 4112): (256, 4096, 4096, 4096),
        ("local_array", "reads", 128): (32, 128, 128, 128),
        ("local_array", "writes", 144): (32, 128, 128, 128),
    },
    "streams": {
        # 5 times a graph of 3; 8 streams, 50 times each; 4 threads, 50 times each.
        ("in_graph", "reads", 128): (15 * 32, 15 * 128, 15 * 128, 128),
        ("in_graph", "writes", 132): (15 * 32, 15 * 128, 15 * 128, 128),
        ("in_stream", "reads", 4096): (400 * 1024, 400 * 4096, 400 * 4096, 4096),
        ("in_stream", "writes", 4100): (400 * 1024, 400 * 4096, 400 * 4096, 4096),
        ("in_thread", "reads", 4096): (200 * 1024, 200 * 4096, 200 * 4096, 4096),
        ("in_thread", "writes", 4100): (200 * 1024, 200 * 4096, 200 * 4096, 4096),
    },
    "hopper": {
        ("bulk", "reads", 1024): (1, 1024, 1024, 1024),
        ("bulk", "writes", 1040): (1, 1024, 1024, 1024),
        ("neighbours", "reads", 256): (64, 256, 256, 256),
        ("neighbours", "writes", 272): (64, 256, 256, 256),
        # What it loads through its tensor map no patch sees.
        ("tiles", "writes", 128): (32, 128, 128, 128),
    },
}
# kernel -> (reads, writes, atomics, passes, passes without conflicts)
SHARED = {
    "simple": {
        # 128 warps write a row, and read a column: all of it in one bank, or each word in its own.
        "transpose_tile": (4096, 4096, 0, 128 + 128 * 32, 256),
        "transpose_padded": (4096, 4096, 0, 256, 256),
        # 8 warps store; 4, 2, 1 and five times 1 read two words and write one; one lane reads.
        "reduction": (511, 511, 0, 8 + 3 * 12 + 1, 8 + 3 * 12 + 1),
    },
    "edges": {
        "histogram_shared": (256, 256, 256, 24, 24),
        # 16 bytes a lane: 8 lanes at a time.
        "copies_ahead": (256, 256, 0, 64, 64),
    },
    "streams": {},
    "hopper": {
        "neighbours": (64, 64, 0, 4, 4),
        "tiles": (32, 0, 0, 1, 1),
    },
}


class Check:
    def __init__(self, arguments):
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.programs = pathlib.Path(arguments.programs).resolve()
        self.output = pathlib.Path(arguments.output).resolve()
        self.steps = arguments.steps
        self.patches = arguments.patches
        self.failures = 0
        self.figures = {}

    def check(self, what, got, wanted):
        if got != wanted:
            self.failures += 1
            print(f"FAILED {what}: got {got}, wanted {wanted}", flush=True)
        return got == wanted

    def watched(self, name, command, seconds, **variables):
        report = self.output / f"{name}.json"
        log = self.output / f"{name}.log"
        environment = {**os.environ, "PASTA_SANITIZER_LOG": str(log) if name != "torch" else "", **variables}
        begin = time.monotonic()
        try:
            result = subprocess.run(
                [self.pastaprof, "run", "--adapter", "sanitizer", "--tool", "access", "--launches", "all", "-o", f"/tmp/{name}.pasta", "--force",
                 "--format", "json", "--report", str(report), "--", *command],
                capture_output=True, text=True, timeout=seconds, env=environment)
        except subprocess.TimeoutExpired:
            self.failures += 1
            print(f"FAILED {name}: still runs after {seconds} s", flush=True)
            for line in log.read_text().splitlines()[-5:] if log.exists() else ():
                print("  ", line[:200])
            return None, None
        self.seconds = time.monotonic() - begin
        if not self.check(f"{name}: exit code", result.returncode, 0):
            print(result.stderr[-500:])
            for line in log.read_text().splitlines()[-5:] if log.exists() else ():
                print("  ", line[:200])
        document = json.loads(report.read_text()) if report.exists() else None
        if document:
            for problem in document["trace"]["quality"]["problems"]:
                print("   said:", problem["count"], problem["first"][:160], flush=True)
        return result, document

    @staticmethod
    def rows(document, table):
        for part in document["reports"][0]["parts"]:
            if part.get("id") == table:
                names = [column["name"] for column in part["columns"]]
                return [dict(zip(names, row)) for row in part["rows"]]
        return []

    def kernels(self, part):
        _, document = self.watched(part, [str(self.programs / "accesses"), part], 40)
        if document is None:
            return
        got = {}
        for row in self.rows(document, "objects"):
            for what in ("reads", "writes", "atomics"):
                if row[what]:
                    got[row["kernel"], what, row["size"]] = (row[what], row["asked"], row["moved"], row["touched"])
        wanted = OBJECTS[part]
        good = 0
        for key, values in wanted.items():
            good += self.check(f"{part}: {key}", got.pop(key, None), values)
        for key, values in got.items():
            self.check(f"{part}: {key}", values, None)
        got = {row["kernel"]: tuple(row[name] for name in ("reads", "writes", "atomics", "passes", "conflict_free"))
               for row in self.rows(document, "shared")}
        for key, values in SHARED[part].items():
            good += self.check(f"{part}: shared memory of {key}", got.pop(key, None), values)
        print(f"{part}: {good} of {len(wanted) + len(SHARED[part])} held; {self.seconds:.1f} s; other shared: {got}", flush=True)

    def torch(self):
        command = [sys.executable, str(HERE / "analysis_steps.py"), str(self.steps), "10", *self.patches]
        result, _ = self.watched("torch", command, 90)
        if result is None:
            return
        times = self.figures["steps_ms"] = {}
        for line in result.stdout.splitlines():
            if not line.startswith("{"):
                continue
            told = json.loads(line)
            # The first step puts the patch into functions that are loaded late.
            steps = told["ms"][1:] or told["ms"]
            times[told["patch"]] = told
            print(f"torch: gpt2-infer, patch {told['patch'] or 'none'}: median {statistics.median(steps):.1f} ms of {len(steps)}, "
                  f"first {told['ms'][0]:.0f} ms, switched in {told['switch_ms']:.0f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--patches", nargs="+", default=["", "empty_global", "reuse", "hotpages", "empty", "access", "divergence"])
    parser.add_argument("parts", nargs="*", default=PARTS)
    arguments = parser.parse_args()
    check = Check(arguments)
    for part in arguments.parts or PARTS:
        try:
            check.torch() if part == "torch" else check.kernels(part)
        except Exception as error:  # the other parts still tell something
            check.failures += 1
            print(f"FAILED {part}: {type(error).__name__}: {error}", flush=True)
    (check.output / "accesses_figures.json").write_text(json.dumps(check.figures))
    print("all held" if check.failures == 0 else f"{check.failures} did not hold")
    return check.failures != 0


if __name__ == "__main__":
    sys.exit(main())
