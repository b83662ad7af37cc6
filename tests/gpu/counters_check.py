#!/usr/bin/env python3
"""The known kernels of accesses.cu by three sources: patches (tool `access`), Nsight Compute's counters, and CUPTI's
SASS metrics. Where two differ and no reason is known, it fails.

    tests/gpu/counters_check.py --pastaprof PROGRAM --programs FOLDER --output FOLDER [PART...]

Writes counters.json and counters.md there. Needs ncu, and for CUPTI its library where the linker finds it."""
import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

PARTS = ("simple", "edges", "hopper")
# What is compared -> the counter of Nsight Compute and the metric of CUPTI; None: there is none of it.
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
QUANTITIES = {
    "load requests": (GLOBAL.format("requests", "ld"), "smsp__sass_inst_executed_op_global_ld"),
    "load sectors": (GLOBAL.format("sectors", "ld"), None),
    "store requests": (GLOBAL.format("requests", "st"), "smsp__sass_inst_executed_op_global_st"),
    "store sectors": (GLOBAL.format("sectors", "st"), None),
    "reduction requests": (GLOBAL.format("requests", "red"), "smsp__sass_inst_executed_op_global_red"),
    "sectors": ("memory_l2_theoretical_sectors_global", "smsp__sass_sectors_mem_global"),
    "passes": ("memory_l1_wavefronts_shared", "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared"),
    "passes without conflicts": ("memory_l1_wavefronts_shared_ideal", "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal"),
    "conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", None),
}
# (kernel, quantity) -> why it differs
EXPLAINED = {}


def rows(document, table):
    for part in document["reports"][0]["parts"]:
        if part.get("id") == table:
            names = [column["name"] for column in part["columns"]]
            return [dict(zip(names, row)) for row in part["rows"]]
    return []


class Check:
    def __init__(self, arguments):
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.programs = pathlib.Path(arguments.programs).resolve()
        self.output = pathlib.Path(arguments.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)

    def by_patches(self, part):
        report = self.output / f"patches-{part}.json"
        subprocess.run([self.pastaprof, "run", "--adapter", "sanitizer", "--tool", "access", "-o", f"/tmp/counters-{part}.pasta", "--force",
                        "--format", "json", "--report", str(report), "--", str(self.programs / "accesses"), part],
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
        metrics = {ncu: what for what, (ncu, _) in QUANTITIES.items() if ncu}
        result = subprocess.run(["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(metrics), str(self.programs / "accesses"), part],
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
        metrics = {sass: what for what, (_, sass) in QUANTITIES.items() if sass}
        told = self.output / f"sass-{part}.jsonl"
        told.unlink(missing_ok=True)
        subprocess.run([str(self.programs / "accesses"), part, str(self.programs / "libsass_metrics.so")], check=True, capture_output=True, timeout=120,
                       env={**os.environ, "CUDA_MODULE_LOADING": "EAGER", "SASS_METRICS": ",".join(metrics), "SASS_METRICS_OUTPUT": str(told)})
        counts = collections.defaultdict(collections.Counter)
        for line in told.read_text().splitlines():
            row = json.loads(line)
            for metric, what in metrics.items():
                counts[row["function"]][what] += row.get(metric, 0)
        return counts

    def all(self, parts):
        table, failed, equal = [], 0, 0
        for part in parts:
            patches = self.by_patches(part)
            others = {"ncu": self.by_counters(part), "cupti": self.by_sass(part)}
            for kernel in sorted(patches):
                for what, sources in QUANTITIES.items():
                    own = patches[kernel][what]
                    values = {name: other[kernel][what] for (name, other), source in zip(others.items(), sources) if source}
                    if own == 0 and not any(values.values()):
                        continue
                    same = all(value == own for value in values.values())
                    why = "" if same else EXPLAINED.get((kernel, what), "not explained")
                    equal += same
                    failed += why == "not explained"
                    table.append((kernel, what, own, values.get("ncu", ""), values.get("cupti", ""), why))
        (self.output / "counters.json").write_text(json.dumps(table, indent=0))
        lines = ["| kernel | quantity | patches | Nsight Compute | CUPTI | why they differ |", "|---|---|---:|---:|---:|---|"]
        lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in table]
        (self.output / "counters.md").write_text("\n".join(lines) + "\n")
        print(f"{len(table)} values: {equal} equal, {len(table) - equal - failed} explained, {failed} not")
        return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("parts", nargs="*", default=PARTS)
    arguments = parser.parse_args()
    sys.exit(min(Check(arguments).all(arguments.parts or PARTS), 1))
