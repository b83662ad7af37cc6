#!/usr/bin/env python3
"""Accesses of OpenCL kernels in the simulator: every number is worked out by hand."""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "gpu"))
import known_accesses as known  # noqa: E402

PROGRAM = os.environ["PASTAPROF"]
OPENCL = os.environ.get("PASTA_OCLGRIND", "")

# kernel, object, launches, reads, writes, atomics, bytes asked, bytes moved, bytes touched, bytes of the object.
# A warp that accesses 32 words in a row moves 4 sectors of 32 bytes.
OBJECTS = {
    # 1024 words each, twice.
    ("vector_add", "a (buffer 1)", 2, 2048, 0, 0, 8192, 8192, 4096, 4096),
    ("vector_add", "b (buffer 2)", 2, 2048, 0, 0, 8192, 8192, 4096, 4096),
    ("vector_add", "c (buffer 3)", 2, 0, 2048, 0, 8192, 8192, 4096, 4096),
    # 256 words, 8 words apart: each lane has a sector of its own.
    ("strided", "a (buffer 4)", 1, 256, 0, 0, 1024, 256 * 32, 1024, 8192),
    ("strided", "b (buffer 5)", 1, 0, 256, 0, 1024, 1024, 1024, 1024),
    # 64 x 64 words: rows in; columns out, where again each lane has a sector of its own.
    ("transpose_naive", "in (buffer 6)", 1, 4096, 0, 0, 16384, 16384, 16384, 16384),
    ("transpose_naive", "out (buffer 7)", 1, 0, 4096, 0, 16384, 4096 * 32, 16384, 16384),
    # Through a tile: rows in, rows out.
    ("transpose_tile", "in (buffer 6)", 1, 4096, 0, 0, 16384, 16384, 16384, 16384),
    ("transpose_tile", "out (buffer 7)", 1, 0, 4096, 0, 16384, 16384, 16384, 16384),
    ("transpose_padded", "in (buffer 6)", 1, 4096, 0, 0, 16384, 16384, 16384, 16384),
    ("transpose_padded", "out (buffer 7)", 1, 0, 4096, 0, 16384, 16384, 16384, 16384),
    # One word for each of 4 groups: a sector for each.
    ("reduce", "in (buffer 8)", 1, 256, 0, 0, 1024, 1024, 1024, 1024),
    ("reduce", "out (buffer 9)", 1, 0, 4, 0, 16, 4 * 32, 16, 16),
    # 16 warps: all 16 bins, which are 2 sectors; and one bin, which is 1.
    ("histogram", "in (buffer 10)", 1, 512, 0, 0, 2048, 2048, 2048, 2048),
    ("histogram", "in (buffer 11)", 1, 512, 0, 0, 2048, 2048, 2048, 2048),
    ("histogram", "bins (buffer 12)", 2, 0, 0, 1024, 4096, 16 * (2 + 1) * 32, 64, 64),
}
# kernel, launches, reads, writes, atomics, bytes asked, passes, passes without conflicts.
SHARED = {
    # 128 warps write rows, 128 read columns: 32 words of one bank, or with a padded row of 32 banks.
    ("transpose_tile", 1, 4096, 4096, 0, 32768, 128 + 128 * 32, 256),
    ("transpose_padded", 1, 4096, 4096, 0, 32768, 256, 256),
    # In each of 4 groups: 64 words are written by 2 warps. Then 32, 16, ... 1 items (one warp) read two and
    # write one. At last one item reads one.
    ("reduce", 1, 4 * (2 * 63 + 1), 4 * (64 + 63), 0, 4 * 4 * (3 * 63 + 64 + 1), 4 * (2 + 3 * 6 + 1), 4 * (2 + 3 * 6 + 1)),
}


# Of the kernels of `program places`: kernel, access, object: bytes, warps, lanes of a warp, sectors, sectors needed,
# pattern, and of shared memory conflicts, worst; of atomics crowd, most crowded.
SITES = {
    # One warp: 32 words in a row, and 32 words of which each has a sector of its own.
    ("gather", "read", "at (buffer 2)"): (4, 1, 32, 4, 4, "unit", None, None, None, None),
    ("gather", "read", "in (buffer 1)"): (4, 1, 32, 32, 4, "gather", None, None, None, None),
    ("gather", "write", "out (buffer 3)"): (4, 1, 32, 4, 4, "unit", None, None, None, None),
    # 31 warps with 16 lanes in 4 sectors, one with 4 lanes in one. 16 words would fit into 2.
    ("evens", "read", "in (buffer 4)"): (4, 32, 500 / 32, 31 * 4 + 1, 31 * 2 + 1, "unit", None, None, None, None),
    ("evens", "write", "out (buffer 5)"): (4, 32, 500 / 32, 31 * 4 + 1, 31 * 2 + 1, "unit", None, None, None, None),
    # 2 groups of 2 warps: 4 lanes at each of 8 words, and the first 8 items.
    ("local_histogram", "atomic", "shared memory"): (4, 4, 32, None, None, "pieces", 1, 1, 4, 4),
    ("local_histogram", "write", "shared memory"): (4, 2, 8, None, None, "unit", 1, 1, None, None),
    ("local_histogram", "read", "shared memory"): (4, 2, 8, None, None, "unit", 1, 1, None, None),
    ("local_histogram", "write", "out (buffer 6)"): (4, 2, 8, 2, 2, "unit", None, None, None, None),
    # Group n of 16 reads n + 1 rows.
    ("triangle", "read", "in (buffer 7)"): (4, 136, 32, 136 * 4, 136 * 4, "unit", None, None, None, None),
    ("triangle", "write", "out (buffer 8)"): (4, 16, 32, 64, 64, "unit", None, None, None, None),
}


@unittest.skipUnless(OPENCL, "built without the headers of Oclgrind, LLVM 14 or OpenCL: run scripts/setup")
class Oclgrind(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, *options, code=0, program=()):
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", OPENCL, *program], cwd=self.folder,
                                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def rows(self, report, table):
        found = next(t for r in report["reports"] for t in r["parts"] if t.get("id") == table)
        return [c["name"] for c in found["columns"]], found["rows"]

    def test_numbers(self):
        result = self.run_watched("--adapter", "oclgrind", "--tool", "access", "--format", "json", "--report", "r.json")
        self.assertEqual(result.stdout, "2 64 544\n", "the program's own answer")
        live = (self.folder / "r.json").read_text()
        stored = subprocess.run([PROGRAM, "report", "t.pasta", "--tool", "access", "--format", "json"], cwd=self.folder,
                                capture_output=True, text=True, check=True).stdout
        self.assertEqual(stored, live)
        report = json.loads(stored)
        self.assertEqual(report["trace"]["events"], {"device": 9})
        names, rows = self.rows(report, "objects")
        efficiency = names.index("efficiency")
        self.assertEqual({(*r[:efficiency], *r[efficiency + 1:-1]) for r in rows}, OBJECTS)
        self.assertEqual({r[-1] for r in rows}, {"no"}, "nothing is uncovered")
        shares = {(r[0], r[1]): r[efficiency] for r in rows}
        self.assertEqual(shares["vector_add", "a (buffer 1)"], 1)
        self.assertEqual(shares["strided", "a (buffer 4)"], 0.125)
        self.assertEqual(shares["transpose_naive", "out (buffer 7)"], 0.125)
        # All bins of 16 warps, and one of 16.
        self.assertEqual(shares["histogram", "bins (buffer 12)"], (16 * 64 + 16 * 4) / 1536)
        _, rows = self.rows(report, "shared")
        self.assertEqual({tuple(r[:8]) for r in rows}, SHARED)
        self.assertEqual({r[0]: r[8] for r in rows}, {"transpose_tile": 16.5, "transpose_padded": 1, "reduce": 1})

    def test_what_gpus_count_of_the_same_kernels(self):
        """The literal numbers that tests/gpu/accesses_check.py compares with a GPU's."""
        self.run_watched("--adapter", "oclgrind", "--tool", "access", "--launches", "all", "--format", "json", "--report", "r.json",
                         program=("known",))
        report = json.loads((self.folder / "r.json").read_text())
        told = [self.table(report, "access", name) for name in ("objects", "shared", "sites")]
        kernels = {row["kernel"] for rows in told for row in rows}
        self.assertEqual(len(kernels), 20)

        def of_both(tables):
            return {key: values for part in ("simple", "edges") for key, values in tables[part].items()
                    if (key if isinstance(key, str) else key[0]) in kernels}
        self.assertEqual(known.objects_of(told[0], of_both(known.OBJECTS)), of_both(known.OBJECTS))
        self.assertEqual(known.shared_of(told[1]), of_both(known.SHARED))
        # Its loop is not unrolled, so its places are fewer.
        places = {kernel: values for kernel, values in of_both(known.SITES).items() if kernel != "reduction"}
        self.assertEqual({kernel: values for kernel, values in known.places_of(told[2]).items() if kernel != "reduction"}, places)

    def report_of(self, program, *options):
        """What is told while the program runs, which is also what the trace tells."""
        tools = [o for option in options for o in option]
        self.run_watched("--adapter", "oclgrind", *tools, "--format", "json", "--report", "r.json", program=(program,))
        live = (self.folder / "r.json").read_text()
        of_tools = [o for option in options if option[0] != "--launches" for o in option]
        stored = subprocess.run([PROGRAM, "report", "t.pasta", *of_tools, "--format", "json"], cwd=self.folder,
                                capture_output=True, text=True, check=True).stdout
        self.assertEqual(stored, live)
        return json.loads(stored)

    def table(self, report, tool, table):
        parts = next(r["parts"] for r in report["reports"] if r["tool"] == tool)
        found = next(t for t in parts if t.get("id") == table)
        names = [c["name"] for c in found["columns"]]
        return [dict(zip(names, row)) for row in found["rows"]]

    def test_places(self):
        report = self.report_of("places", ("--tool", "access"), ("--tool", "divergence"), ("--tool", "hotpages"),
                                ("--tool", "reuse"), ("--opt", "hotpages.block=4KiB"))
        columns = ("width", "warps", "lanes", "sectors", "needed", "pattern", "conflicts", "worst", "crowd",
                   "most_crowded")
        sites = self.table(report, "access", "sites")
        self.assertEqual({(s["kernel"], s["access"], s["object"]): tuple(s[c] for c in columns) for s in sites}, SITES)
        self.assertEqual([s for s in sites if s["misaligned"]], [])
        for site in sites:
            self.assertRegex(site["site"], r"^input\.cl:\d+:\d+ (load|store|call|atomicrmw)$")
        findings = {p["id"] for r in report["reports"] for p in r["parts"] if p["type"] == "finding"}
        self.assertEqual(findings, {"atomic-contention", "few-lanes", "poor-coalescing", "no-times"})

        kernels = {k["kernel"]: k for k in self.table(report, "divergence", "kernels")}
        balance = ("warps", "groups", "idle_groups", "median", "most", "imbalance")
        self.assertEqual([kernels["triangle"][c] for c in balance], [152, 16, 0, 9, 17, 17 * 16 / 152])
        self.assertEqual([kernels["evens"][c] for c in balance], [64, 32, 0, 2, 2, 1])
        self.assertEqual([kernels["local_histogram"][c] for c in balance], [10, 2, 0, 5, 5, 1])
        self.assertEqual(kernels["evens"]["active"], 1000 / (64 * 32))
        self.assertEqual([kernels[k]["partial"] for k in ("evens", "triangle", "gather")], [1, 0, 0])
        few = {(s["kernel"], s["access"], s["space"]): [s[c] for c in ("partial", "to_8", "to_16", "to_24", "to_32")]
               for s in self.table(report, "divergence", "sites")}
        self.assertEqual(few["evens", "read", "global"], [32, 1, 31, 0, 0])
        self.assertEqual(few["local_histogram", "atomic", "shared"], [0, 0, 0, 0, 4])

        objects = {o["object"]: o for o in self.table(report, "hotpages", "objects")}
        self.assertEqual([objects["in (buffer 7)"][c] for c in ("size", "reads", "writes", "moved")],
                         [2048, 136 * 32, 0, 136 * 128])
        self.assertEqual(sum(o["moved"] for o in objects.values()),
                         sum(s["sectors"] or 0 for s in sites) * 32)
        self.assertAlmostEqual(sum(o["share"] for o in objects.values()), 1)

        reuse = {k["kernel"]: k for k in self.table(report, "reuse", "kernels")}
        # 2 KiB each of rows and sums; a row is read by all groups from its own on.
        self.assertEqual([reuse["triangle"][c] for c in ("working_set", "moved", "moved_per_touched", "behaviour")],
                         [4096, 152 * 128, 152 / 32, "reuse across groups"])
        self.assertEqual(reuse["evens"]["behaviour"], "streaming")
        self.assertIsNone(reuse["gather"]["from_before"])
        self.assertEqual(reuse["evens"]["from_before"], 0)

    def test_iterations(self):
        report = self.report_of("iterations", ("--tool", "reuse"))
        rows = [list(r.values()) for r in self.table(report, "reuse", "iterations")]
        # 4 KiB of each of a, b and c, twice; then all 8 KiB of a, and 1 KiB of c. Together 8 + 4 + 4.
        self.assertEqual(rows, [[f"step#{i}", 3, 16384, 2 * 12288 + 9216, 33792, 0] for i in range(2)])
        pairs = {(p["before"], p["kernel"]): (p["launches"], p["shared"]) for p in self.table(report, "reuse", "pairs")}
        self.assertEqual(pairs, {("vector_add", "vector_add"): (3, 3 * 12288),
                                 ("vector_add", "strided"): (3, 3 * 5120), ("strided", "vector_add"): (2, 2 * 5120)})

    def test_launches(self):
        def launches(policy):
            report = self.report_of("iterations", ("--tool", "reuse"), ("--launches", policy))
            left_out = [p["evidence"]["count"] if isinstance(p["evidence"], dict) else p["evidence"]
                        for r in report["reports"] for p in r["parts"] if p.get("id") == "launches-left-out"]
            kernels = self.table(report, "reuse", "kernels")
            return {k["kernel"]: k["launches"] for k in kernels}, bool(left_out), report["trace"]["events"]["device"]
        self.assertEqual(launches("all"), ({"vector_add": 6, "strided": 3}, False, 9))
        # One of each kernel before iterations are known, and one of each position in one.
        self.assertEqual(launches("first:1"), ({"vector_add": 3, "strided": 2}, True, 9))
        self.assertEqual(launches("iterations:1/2"), ({"vector_add": 4, "strided": 2}, True, 9))
        self.assertEqual(launches("^str"), ({"strided": 3}, True, 9))
        result = self.run_watched("--adapter", "oclgrind", "--launches", "first:0", code=125)
        self.assertIn("first:K", result.stderr)

    def test_with_the_calls_of_the_program(self):
        result = self.run_watched("--adapter", "opencl,oclgrind")
        self.assertEqual(result.stdout, "2 64 544\n")
        report = json.loads(subprocess.run([PROGRAM, "report", "t.pasta", "--format", "json"], cwd=self.folder,
                                           capture_output=True, check=True).stdout)
        self.assertEqual([report["trace"]["events"][k] for k in ("kernel", "device")], [9, 9])

    def test_raw_accesses_when_they_are_asked_for(self):
        os.environ["PASTA_RAW_ACCESSES"] = "1"
        self.addCleanup(os.environ.pop, "PASTA_RAW_ACCESSES")
        self.run_watched("--adapter", "oclgrind", "--tool", "access")
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True,
                              check=True).stdout
        blobs = dict(re.findall(r'^blob (B\d+) "([0-9a-f]*)"', dump, re.M))
        counts = collections.Counter()
        items, groups = collections.defaultdict(set), collections.Counter()
        for line in dump.splitlines():
            found = re.match(r'device \S+ \S+ \S+ "(\w+)".* blob=(B\d+)', line)
            if not found or "raw-accesses/1" not in line:
                continue
            data = bytes.fromhex(blobs[found[2]])
            self.assertLessEqual(len(data), 32 << 10)
            for address, group, item, site, size, space, access in struct.iter_unpack("<QIIIIBB6x", data):
                counts[found[1], ("global", "local")[space], ("read", "write", "atomic", "barrier")[access]] += 1
                if found[1] == "reduce" and access == 1 and space == 0:
                    items[group].add((item, size))
                if found[1] == "transpose_naive":
                    groups[group] += 1
        # As the patches have counted them.
        expected = collections.Counter()
        for kernel, _, _, *numbers in OBJECTS:
            for what, count in zip(("read", "write", "atomic"), numbers):
                expected[kernel, "global", what] += count
        for kernel, _, *numbers in SHARED:
            for what, count in zip(("read", "write", "atomic"), numbers):
                expected[kernel, "local", what] += count
        # Of 4 groups each: one barrier of a tile, and one before each of 6 halvings, and after the last.
        expected["transpose_tile", "global", "barrier"] = expected["transpose_padded", "global", "barrier"] = 4
        expected["reduce", "global", "barrier"] = 4 * 7
        self.assertEqual(counts, +expected)
        self.assertEqual(items, {group: {(0, 4)} for group in range(4)}, "the first item of each writes one word")
        # 2 x 16 groups of 128 items, each of which reads a word and writes one.
        self.assertEqual(groups, {group: 256 for group in range(32)})

    def test_a_tool_that_needs_it_brings_it(self):
        result = self.run_watched("--tool", "access", "--format", "json", "--report", "r.json")
        self.assertEqual(result.stdout, "2 64 544\n")
        self.assertIn("run in a simulator", result.stderr)
        names, rows = self.rows(json.loads((self.folder / "r.json").read_text()), "objects")
        efficiency = names.index("efficiency")
        self.assertEqual({(*r[:efficiency], *r[efficiency + 1:-1]) for r in rows}, OBJECTS)
        self.assertEqual({r[-1] for r in rows}, {"no"}, "nothing is uncovered")

    def run_twice(self, *options, code=0, program=("iterations",), **also):
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", "--tool", "reuse,kernels", "--format", "json",
                                 "--report", "r.json", *options, "--", *program],
                                cwd=self.folder, capture_output=True, text=True, timeout=300, check=False, **also)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_times_and_accesses_by_two_runs(self):
        result = self.run_twice(program=(OPENCL, "iterations"))
        self.assertEqual(len(result.stdout.splitlines()), 1, "the output of one run")
        self.assertIn("the program runs 2 times", result.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["r.json", "t.pasta"])
        live = (self.folder / "r.json").read_text()
        stored = subprocess.run([PROGRAM, "report", "t.pasta", "--tool", "reuse,kernels", "--format", "json"],
                                cwd=self.folder, capture_output=True, text=True, check=True).stdout
        self.assertEqual(stored, live)
        report = json.loads(live)
        self.assertEqual([report["trace"]["events"][k] for k in ("kernel", "device")], [9, 9])
        # Times of the device, which the simulator could not tell: those of tool kernels.
        times = {k["name"]: k["total"] for k in self.table(report, "kernels", "kernels")}
        reuse = {k["kernel"]: k for k in self.table(report, "reuse", "kernels")}
        self.assertEqual({k: row["time"] for k, row in reuse.items()}, times)
        self.assertEqual({k: row["launches"] for k, row in reuse.items()}, {"vector_add": 6, "strided": 3})
        findings = {p["id"]: p for p in report["reports"][0]["parts"] if p["type"] == "finding"}
        self.assertEqual(findings["times-of-another-run"]["share"], 1)
        self.assertNotIn("launches-not-joined", findings)

    def test_some_of_the_launches_of_two_runs(self):
        self.run_twice("--launches", "^strided", program=(OPENCL, "iterations"))
        report = json.loads((self.folder / "r.json").read_text())
        times = {k["name"]: k["total"] for k in self.table(report, "kernels", "kernels")}
        reuse, = self.table(report, "reuse", "kernels")
        self.assertEqual((reuse["launches"], reuse["time"]), (3, times["strided"]))

    def test_iterations_of_two_runs(self):
        self.run_twice("--launches", "iterations:1/2", program=(OPENCL, "iterations"))
        report = json.loads((self.folder / "r.json").read_text())
        # Of step#0 and step#1 the first begins when one iteration has ended.
        rows = [list(r.values()) for r in self.table(report, "reuse", "iterations")]
        self.assertEqual(rows, [["step#1", 3, 16384, 2 * 12288 + 9216, 33792, 0]])

    def test_what_two_runs_read_and_how_they_end(self):
        both = self.folder / "both"
        script = f"cat >> {both}; {OPENCL} iterations; exit 3"
        (self.folder / "in").write_text("12345")
        with open(self.folder / "in", encoding="ascii") as file:
            file.read(2)
            os.lseek(file.fileno(), 2, os.SEEK_SET)
            self.run_twice(code=3, program=("sh", "-c", script), stdin=file)
        self.assertEqual(both.read_text(), "345345", "each from where the file was")
        result = self.run_twice(code=3, program=("sh", "-c", script), input="67")
        self.assertIn("standard input is a pipe", result.stderr)

    def test_no_second_run_after_the_end_of_the_first(self):
        ran = self.folder / "ran"
        result = self.run_twice(code=143, program=("sh", "-c", f"echo >> {ran}; {OPENCL} iterations; kill -TERM $$"))
        self.assertEqual(ran.read_text(), "\n")
        self.assertIn("it does not run again", result.stderr)
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(report["trace"]["events"]["kernel"], 9)
        self.assertIn("nothing-analysed", {p.get("id") for p in report["reports"][0]["parts"]})

    def test_one_run_says_what_it_cannot_tell(self):
        result = self.run_twice("--passes", "1", program=(OPENCL, "iterations"))
        self.assertIn("kernels will find", result.stderr)
        report = json.loads((self.folder / "r.json").read_text())
        self.assertIn("no-times", {p.get("id") for p in report["reports"][0]["parts"]})

    def test_a_process_of_a_job_runs_once(self):
        result = self.run_twice(program=(OPENCL, "iterations"), env={**os.environ, "RANK": "0", "WORLD_SIZE": "2"})
        self.assertIn("one process of a job", result.stderr)

    def test_two_runs_need_a_tool_that_needs_them(self):
        result = self.run_watched("--passes", "2", "--tool", "kernels", code=125)
        self.assertIn("--passes 2", result.stderr)

    def test_not_installed(self):
        empty = self.folder / "empty"
        empty.mkdir()
        result = subprocess.run([PROGRAM, "run", "--adapter", "oclgrind", "--", OPENCL], cwd=self.folder,
                                capture_output=True, text=True, env={"PATH": str(empty)}, check=False)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertIn("apt-get install oclgrind", result.stderr)


if __name__ == "__main__":
    unittest.main()
