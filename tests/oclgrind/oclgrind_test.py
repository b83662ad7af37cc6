#!/usr/bin/env python3
"""Accesses of OpenCL kernels in the simulator: every number is worked out by hand."""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

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


@unittest.skipUnless(OPENCL, "built without the headers of Oclgrind, LLVM 14 or OpenCL: run scripts/setup")
class Oclgrind(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, *options, code=0):
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", OPENCL], cwd=self.folder,
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
        self.assertEqual({tuple(v for i, v in enumerate(r) if i != efficiency) for r in rows}, OBJECTS)
        shares = {(r[0], r[1]): r[efficiency] for r in rows}
        self.assertEqual(shares["vector_add", "a (buffer 1)"], 1)
        self.assertEqual(shares["strided", "a (buffer 4)"], 0.125)
        self.assertEqual(shares["transpose_naive", "out (buffer 7)"], 0.125)
        # All bins of 16 warps, and one of 16.
        self.assertEqual(shares["histogram", "bins (buffer 12)"], (16 * 64 + 16 * 4) / 1536)
        _, rows = self.rows(report, "shared")
        self.assertEqual({tuple(r[:8]) for r in rows}, SHARED)
        self.assertEqual({r[0]: r[8] for r in rows}, {"transpose_tile": 16.5, "transpose_padded": 1, "reduce": 1})

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
        items = collections.defaultdict(set)
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

    def test_only_when_asked_for(self):
        result = self.run_watched("--tool", "access", code=125)
        self.assertIn("access", result.stderr)
        self.assertIn("device", result.stderr)

    def test_not_installed(self):
        empty = self.folder / "empty"
        empty.mkdir()
        result = subprocess.run([PROGRAM, "run", "--adapter", "oclgrind", "--", OPENCL], cwd=self.folder,
                                capture_output=True, text=True, env={"PATH": str(empty)}, check=False)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertIn("apt-get install oclgrind", result.stderr)


if __name__ == "__main__":
    unittest.main()
