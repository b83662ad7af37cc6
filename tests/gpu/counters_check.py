#!/usr/bin/env python3
"""The known kernels of accesses.cu by patches (tool `access`), by Nsight Compute's counters and by CUPTI's SASS
metrics. Where they differ and no reason is known, it fails.

    tests/gpu/counters_check.py --pastaprof PROGRAM --programs FOLDER --output FOLDER [PART...]

Writes counters.json, counters.md, sass.json and sass.md there. Needs ncu, on PATH or where CUDA's toolkit puts it."""
import argparse
import collections
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

from accesses_check import program_of, rows

PARTS = ("simple", "edges", "hopper")
NCU = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
# What is compared -> the counter.
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
QUANTITIES = {
    "load requests": GLOBAL.format("requests", "ld"),
    "load sectors": GLOBAL.format("sectors", "ld"),
    "store requests": GLOBAL.format("requests", "st"),
    "store sectors": GLOBAL.format("sectors", "st"),
    "reduction requests": GLOBAL.format("requests", "red"),
    "sectors": "memory_l2_theoretical_sectors_global",
    "passes": "memory_l1_wavefronts_shared",
    "passes without conflicts": "memory_l1_wavefronts_shared_ideal",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
}
# What is compared -> the SASS metric.
SASS = {
    "load requests": "smsp__sass_inst_executed_op_global_ld",
    "store requests": "smsp__sass_inst_executed_op_global_st",
    "sectors": "smsp__sass_sectors_mem_global",
    "passes": "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared",
    "passes without conflicts": "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal",
}
# Why it differs: of a kernel, or of one quantity of it.
EXPLAINED = {
    "bulk": "bulk copies do not pass the unit whose counters these are",
    ("neighbours", "passes"): "shared memory of another group is not counted",
    ("neighbours", "passes without conflicts"): "shared memory of another group is not counted",
    **{("anywhere", f"{access} {what}"): "by generic addresses, which these counters do not tell apart by memory"
       for access in ("load", "store") for what in ("requests", "sectors")},
}
EXPLAINED_OF_SASS = {
    "bulk": "bulk copies are not among these instructions",
    ("neighbours", "passes"): "shared memory of another group is not counted",
    ("neighbours", "passes without conflicts"): "shared memory of another group is not counted",
    ("copies_ahead", "load requests"): "cp.async is not among loads",
}
CUPTI_FOLDERS = "/usr/local/cuda/extras/CUPTI/lib64:/usr/local/cuda/lib64"


class Check:
    def __init__(self, arguments):
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.programs = pathlib.Path(arguments.programs).resolve()
        self.output = pathlib.Path(arguments.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)
        self.patches = {}  # what they count, by part

    def by_patches(self, part):
        report = self.output / f"patches-{part}.json"
        subprocess.run([self.pastaprof, "run", "--adapter", "sanitizer", "--tool", "access", "--launches", "all", "-o", f"/tmp/counters-{part}.pasta", "--force",
                        "--format", "json", "--report", str(report), "--", *program_of(self.programs, part)],
                       check=True, capture_output=True, timeout=60)
        document = json.loads(report.read_text())
        counts = collections.defaultdict(collections.Counter)
        names = {"read": "load", "write": "store", "atomic": "reduction"}
        for row in rows(document, "sites"):
            if row["space"] == "global":
                counts[row["kernel"]][f"{names[row['access']]} requests"] += row["warps"]
                counts[row["kernel"]][f"{names[row['access']]} sectors"] += row["sectors"]
                counts[row["kernel"]]["sectors"] += row["sectors"]
        for row in rows(document, "shared"):
            counts[row["kernel"]]["passes"] += row["passes"]
            counts[row["kernel"]]["passes without conflicts"] += row["conflict_free"]
            counts[row["kernel"]]["conflicts"] += row["passes"] - row["conflict_free"]
        return counts

    def by_counters(self, part):
        metrics = {counter: what for what, counter in QUANTITIES.items()}
        result = subprocess.run([NCU, "--clock-control", "none", "--csv", "--metrics", ",".join(metrics), *program_of(self.programs, part)],
                                capture_output=True, text=True, timeout=120)
        if result.returncode != 0:
            print(f"{part}: ncu ends with {result.returncode}: {[line for line in result.stdout.splitlines() if '==ERROR==' in line]}", flush=True)
        lines = result.stdout.splitlines()
        begin = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
        counts = collections.defaultdict(collections.Counter)
        for row in csv.DictReader(lines[begin:]):
            if row["Metric Name"] in metrics and row["Metric Value"] != "nan":
                counts[row["Kernel Name"].split("(")[0]][metrics[row["Metric Name"]]] += int(float(row["Metric Value"].replace(",", "")))
        return counts

    def by_sass(self, part):
        told = self.output / f"sass-{part}.jsonl"
        told.unlink(missing_ok=True)
        paths = f"{CUPTI_FOLDERS}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        subprocess.run([str(self.programs / "accesses"), part, str(self.programs / "libsass_metrics.so")], check=True,
                       capture_output=True, timeout=60, env={**os.environ, "SASS_METRICS": ",".join(SASS.values()),
                                                             "SASS_METRICS_OUTPUT": str(told), "LD_LIBRARY_PATH": paths})
        counts = collections.defaultdict(collections.Counter)
        for line in told.read_text().splitlines():
            row = json.loads(line)
            for what, metric in SASS.items():
                counts[row["function"]][what] += row.get(metric, 0)
        return counts

    def all(self, parts):
        failed = self.compare("counters", "Nsight Compute", parts, self.by_counters, QUANTITIES, EXPLAINED)
        return failed + self.compare("sass", "SASS metrics", parts, self.by_sass, SASS, EXPLAINED_OF_SASS)

    def compare(self, name, title, parts, by_other, quantities, explained):
        table, failed, equal = [], 0, 0
        for part in parts:
            if part not in self.patches:
                self.patches[part] = self.by_patches(part)
            patches, counters = self.patches[part], by_other(part)
            for kernel in sorted(patches):
                for what in quantities:
                    own, other = patches[kernel][what], counters[kernel][what]
                    if own == 0 and other == 0:
                        continue
                    why = "" if own == other else explained.get((kernel, what), explained.get(kernel, "not explained"))
                    equal += own == other
                    failed += why == "not explained"
                    table.append((kernel, what, own, other, why))
        (self.output / f"{name}.json").write_text(json.dumps(table, indent=0))
        lines = [f"| kernel | quantity | patches | {title} | why they differ |", "|---|---|---:|---:|---|"]
        lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in table]
        (self.output / f"{name}.md").write_text("\n".join(lines) + "\n")
        print(f"{title}: {len(table)} values: {equal} equal, {len(table) - equal - failed} explained, {failed} not")
        return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("parts", nargs="*", default=PARTS)
    arguments = parser.parse_args()
    sys.exit(min(Check(arguments).all(arguments.parts or PARTS), 1))
