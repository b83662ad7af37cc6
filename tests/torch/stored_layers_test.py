#!/usr/bin/env python3
"""Tool layers on a stored trace of PyTorch that was made with_stack: the times and kernels of modules are
those that come out of the file itself, by launches and the ranges around them."""
import bisect
import collections
import gzip
import json
import os
import pathlib
import subprocess
import unittest

PROGRAM = os.environ["PASTAPROF"]
ROOT = pathlib.Path(os.environ["PASTA_SOURCE_DIR"])
TRACE = ROOT / "tests/traces/tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz"


def by_the_file():
    """{module: (device ns, kernels)}, each with all modules inside of it."""
    with gzip.open(TRACE, "rt") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    launches = {e["args"]["correlation"]: e for e in events
                if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    modules = collections.defaultdict(list)
    for e in events:
        if e["name"].startswith("nn.Module: "):
            modules[e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"][len("nn.Module: "):]))
    found = collections.defaultdict(lambda: [0, 0])
    for e in events:
        if e.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        launch = launches[e["args"]["correlation"]]
        for begin, end, name in modules[launch["tid"]]:
            if begin <= launch["ts"] < end:
                found[name][0] += round(e["dur"] * 1000)
                found[name][1] += e["cat"] == "kernel"
    calls = collections.Counter(name for ranges in modules.values() for _, _, name in ranges)
    return {name: (calls[name], *found[name]) for name in calls}


class StoredLayers(unittest.TestCase):
    def table(self, *words):
        result = subprocess.run([PROGRAM, "report", TRACE, "--tool", "layers", "--format", "json", *words],
                                capture_output=True, text=True, check=True)
        table = next(p for p in json.loads(result.stdout)["reports"][0]["parts"] if p.get("id") == "layers")
        return [dict(zip((c["name"] for c in table["columns"]), row)) for row in table["rows"]]

    def test_times_and_kernels(self):
        rows = self.table()
        self.assertEqual({row["module"]: (row["calls"], row["device_total"], row["kernels"]) for row in rows},
                         by_the_file())
        self.assertEqual(len(rows), 212 + 2)

    def test_one_layer(self):
        rows = self.table("--opt", "find=ViTLayer_3")
        self.assertEqual(rows[0]["module"], "ViTLayer_3")
        self.assertEqual(rows[0]["device_total"] - rows[0]["device_self"],
                         sum(row["device_total"] for row in rows if row["depth"] == rows[0]["depth"] + 1))


if __name__ == "__main__":
    unittest.main()
