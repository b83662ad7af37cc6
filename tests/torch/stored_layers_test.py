#!/usr/bin/env python3
"""Tool layers on stored traces. Of PyTorch, made with_stack: the times and kernels of modules are those that come
out of the file itself, by launches and the ranges around them. Of Nsight Systems: ranges of NVTX are the tree."""
import bisect
import collections
import decimal
import gzip
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile
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
    def table(self, *words, trace=TRACE):
        result = subprocess.run([PROGRAM, "report", trace, "--tool", "layers", "--format", "json", *words],
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

    def test_ranges_of_nvtx(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "t.sqlite"
            with sqlite3.connect(trace) as database:
                database.executescript(NSIGHT)
            database.close()
            rows = self.table("--opt", "scopes=annotation", trace=trace)
        self.assertEqual([(row["module"], row["depth"], row["calls"], row["host_total"], row["device_total"],
                           row["device_self"], row["kernels"]) for row in rows],
                         [("model", 0, 1, 90, 30, 10, 3), ("layer", 1, 2, 30, 20, 20, 2),
                          ("(outside modules)", 0, None, None, 5, 5, 1)])

    def test_profiles_of_jax(self):
        """Each kernel lies in what XLA has compiled, and that in the Python that launched it; with and without a graph."""
        for name in ("h200_step_as_graph", "h200_step"):
            with self.subTest(name):
                trace = ROOT / f"tests/traces/jax/{name}.trace.json.gz"
                with gzip.open(trace, "rt") as file:
                    events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
                kernels = [event for event in events if event.get("ph") == "X" and event["pid"] == 1]
                rows = self.table(trace=trace)
                self.assertEqual([(row["module"], row["kernels"], row["device_total"]) for row in rows],
                                 [("jit_step", len(kernels), sum(int(event["dur"] * 1000) for event in kernels))])
                dump = subprocess.run([PROGRAM, "dump", trace], capture_output=True, text=True, check=False).stdout
                frames = {"": ()}
                for number, parent, frame in re.findall(r'^frame (F\d+)(?: in=(F\d+))? "([^"]*)"', dump, re.M):
                    frames[number] = (*frames[parent], frame)
                found = [frames[frame] for frame in re.findall(r"^kernel .* scope=(F\d+).* flags=linked", dump, re.M)]
                self.assertEqual({(*path[:2], path[-2]) for path in found},
                                 {("jax_trace.py(23): train", "PjitFunction(step)", "jit_step")})
                operations = [event["args"].get("name", event["args"]["hlo_op"]) for event in kernels]
                self.assertEqual(sorted(path[-1] for path in found), sorted(operations))

    def test_modules_of_xla(self):
        """What XLA has compiled, as JAX gives it; its ranges are registered text of the domain TSL."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "t.sqlite"
            with sqlite3.connect(trace) as database:
                database.executescript(NSIGHT.partition("INSERT INTO NVTX_EVENTS")[0] + XLA + NSIGHT[NSIGHT.index("CREATE TABLE CUPTI"):])
            database.close()
            rows = self.table(trace=trace)
            self.assertEqual([(row["module"], row["calls"], row["device_total"], row["kernels"]) for row in rows],
                             [("jit_loss", 1, 30, 3), ("(outside modules)", None, 5, 1)])
            dump = subprocess.run([PROGRAM, "dump", trace], capture_output=True, text=True, check=True).stdout
            self.assertRegex(dump, r'(?m)^scope .*"jvp\(layer\)/dot_general" operator .*hlo_op.*fusion\.3')


# Two calls of a layer in a model; what PyTorch says of operators is none of it.
NSIGHT = """
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'kernel'), (2, 'cudaLaunchKernel');
CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, 90, 59, 'model', 1677721601), (10, 20, 59, 'layer', 1677721601),
  (11, 19, 59, 'aten::mul, seq = 7, op_id = 1', 1677721601), (30, 50, 59, 'layer', 1677721601);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (12, 13, 1677721601, 1, 2), (31, 32, 1677721601, 2, 2),
  (60, 61, 1677721601, 3, 2), (95, 96, 1677721601, 4, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 110, 0, 1, 7, 1, 1677721600, 1, 1), (110, 120, 0, 1, 7, 2, 1677721600, 1, 1),
  (120, 130, 0, 1, 7, 3, 1677721600, 1, 1), (130, 135, 0, 1, 7, 4, 1677721600, 1, 1);
"""
XLA = """
INSERT INTO NVTX_EVENTS VALUES (0, 90, 59, 'XlaModule:#prefix=jit(loss),hlo_module=jit_loss,program_id=12#', 1677721601),
  (11, 19, 59, 'Thunk:#name=jvp(layer)/dot_general,hlo_op=fusion.3,unique_hlo_op_id=85#', 1677721601);
"""

if __name__ == "__main__":
    unittest.main()
