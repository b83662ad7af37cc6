#!/usr/bin/env python3
"""The C border from outside: builds plug-ins and a client with their own CMakeLists.txt, from the
two public headers alone, and runs them against libpastaprof and the program.

Needs PASTAPROF, PASTAPROF_LIBRARY and PASTA_SOURCE_DIR in the environment.
"""
import ctypes
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PASTA_SOURCE_DIR"])
PROGRAM = os.environ["PASTAPROF"]
LIBRARY = os.environ["PASTAPROF_LIBRARY"]
CMAKE = os.environ.get("CMAKE", "cmake")
TRACES = SOURCE / "tests" / "traces"
SMALL = TRACES / "hta" / "call_stack" / "backward_thread.json"
REAL = TRACES / "hta" / "amd_trace" / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=300, **options)


class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="pasta-plugin-"))
        headers = cls.folder / "include"
        (headers / "pasta").mkdir(parents=True)
        for name in ("c.h", "plugin.hpp"):  # nothing else may be needed
            shutil.copy(SOURCE / "include" / "pasta" / name, headers / "pasta" / name)
        cls.build = cls.folder / "build"
        for command in (
            [CMAKE, "-S", SOURCE / "tests" / "plugin" / "outside", "-B", cls.build,
             f"-DPASTA_HEADERS={headers}", f"-DPASTA_LIBRARY={LIBRARY}"],
            [CMAKE, "--build", cls.build],
        ):
            done = run(*command)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def plugin(self, name):
        return self.build / f"lib{name}.so"

    def client(self, *arguments):
        return run(self.build / "client", *arguments)

    def report(self, trace, tool, *plugins):
        done = self.client(trace, tool, *plugins)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        return document["reports"][0]

    def counts_by_json(self, trace):
        """Calls by kernel name, counted here from the trace's own JSON."""
        with (gzip.open if trace.suffix == ".gz" else open)(trace, "rt") as file:
            events = json.load(file)["traceEvents"]
        counts = {}
        for event in events:
            if event.get("ph") == "X" and event.get("cat", "").lower() == "kernel":
                counts[event["name"]] = counts.get(event["name"], 0) + 1
        return sorted(([name, calls] for name, calls in counts.items()),
                      key=lambda row: (-row[1], row[0].encode()))

    def test_a_plugin_in_c_through_the_library(self):
        report = self.report(REAL, "count_kernels", self.plugin("count_kernels"))
        self.assertEqual(report["tool"], "count_kernels")
        self.assertEqual(report["parts"][0]["rows"], self.counts_by_json(REAL))

    def test_a_plugin_in_c_through_the_program(self):
        done = run(PROGRAM, "report", REAL, "--plugin", self.plugin("count_kernels"), "--tool",
                   "count_kernels", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        part = json.loads(done.stdout)["reports"][0]["parts"][0]
        self.assertEqual(part["rows"], self.counts_by_json(REAL))

    def test_the_program_knows_its_tools(self):
        named = ["--plugin", self.plugin("count_kernels"), "--plugin", self.plugin("longest_kernel")]
        listed = run(PROGRAM, "tools", *named)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("count_kernels how often each kernel ran", listed.stdout)
        page = run(PROGRAM, "tools", "count_kernels", *named).stdout
        self.assertIn("least", page)
        # Without --tool they run beside the default ones.
        done = run(PROGRAM, "report", SMALL, "--format", "json", *named)
        tools = [report["tool"] for report in json.loads(done.stdout)["reports"]]
        self.assertEqual(tools, ["summary", "idle", "kernels", "count_kernels", "longest_kernel"])
        self.assertEqual(run(PROGRAM, "report", SMALL, "--plugin", "none.so").returncode, 1)

    def test_options_reach_it_and_are_checked(self):
        everything = self.counts_by_json(REAL)
        least = everything[0][1]
        report = self.report(REAL, f"count_kernels:least={least}", self.plugin("count_kernels"))
        expected = [row for row in everything if row[1] >= least]
        self.assertEqual(report["parts"][0]["rows"], expected)
        self.assertNotEqual(expected, everything)
        for tool, words in (("count_kernels:least=x", "needs a whole number"),
                            ("count_kernels:most=1", "no option most"),
                            ("count_kernels:least", "TOOL:OPTION=VALUE")):
            done = self.client(REAL, tool, self.plugin("count_kernels"))
            self.assertEqual(done.returncode, 1, tool)
            self.assertIn(words, done.stderr)

    def test_a_plugin_in_cpp_agrees_with_the_tool_inside(self):
        report = self.report(REAL, "longest_kernel", self.plugin("longest_kernel"))
        rows = report["parts"][0]["rows"]
        kernels = self.report(REAL, "kernels")["parts"][0]
        column = [c["name"] for c in kernels["columns"]].index("max")
        self.assertEqual(max(row[2] for row in rows), max(row[column] for row in kernels["rows"]))
        self.assertEqual(rows[0][0], "2")  # the device that the trace names

    def test_events_are_those_that_the_program_dumps(self):
        done = self.client(SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 7)
        self.assertEqual(lines[0], "0 1666149715364374000 1666149715364384000 cudaLaunchKernel "
                                   "lane 24922 in aten::mm")
        self.assertEqual(lines[5], "2 1666149715428509000 1666149715428554000 void cutlass::Kernel"
                                   "<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4> lane 7 "
                                   "in aten::mm")

    def test_the_report_is_the_one_that_the_program_gives(self):
        by_library = self.client(REAL, "summary").stdout
        by_program = run(PROGRAM, "report", REAL, "--tool", "summary", "--format", "json").stdout
        self.assertEqual(by_library, by_program)
        self.assertIn('"summary"', by_library)

    def test_faults_of_a_plugin_name_it_and_end_nothing(self):
        plugin = self.plugin("faulty")
        for tool, status, words in (
            ("bad_json", 6, "gave a bad report: not a JSON document"),
            ("other_name", 6, "gave a report of tool \"kernels\""),
            ("no_report", 6, "gave no report"),
            ("no_tool", 6, "made no tool"),
            ("refusing", 4, "these events are not to my taste"),
        ):
            done = self.client(SMALL, tool, plugin)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertEqual(done.stderr.strip().split(": ", 2)[:2],
                             [f"tool {tool}", f"plug-in {plugin}"])
            self.assertIn(words, done.stderr)

    def test_what_is_no_plugin_is_refused_by_name(self):
        for path, status, words in (
            (self.build / "nothing.so", 2, "cannot load plug-in"),
            (SMALL, 2, "cannot load plug-in"),
            (LIBRARY, 3, "is no plug-in of pastaprof"),
        ):
            done = self.client(SMALL, "summary", path)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn(str(path), done.stderr)
        twice = self.client(SMALL, "summary", *[self.plugin("count_kernels")] * 2)
        self.assertEqual(twice.returncode, 1)
        self.assertIn("but there is one already", twice.stderr)

    def test_errors_of_traces_and_tools(self):
        for arguments, status, words in (
            ([self.folder / "none.json"], 2, "none.json"),
            ([SMALL, "sumary"], 1, "there is no tool \"sumary\""),
        ):
            done = self.client(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_cut_trace_gives_what_it_has(self):
        cut = self.folder / "cut.json"
        cut.write_text(SMALL.read_text()[:-600])
        done = self.client(cut, "summary")
        self.assertEqual(done.returncode, 0, done.stderr)
        problems = json.loads(done.stdout)["trace"]["quality"]["problems"]
        self.assertEqual([p["reason"] for p in problems if p["reason"] == "truncated"],
                         ["truncated"])

    def test_only_the_border_is_exported(self):
        listed = run("nm", "-D", "--defined-only", LIBRARY)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        names = {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines()}
        names.discard("PASTAPROF_1")
        self.assertEqual({name for name in names if not name.startswith("pasta_")}, set())
        header = (SOURCE / "include" / "pasta" / "c.h").read_text()
        for name in names:
            self.assertIn(f" {name}(", header)

    @unittest.skipIf("sanitize" in os.environ.get("CFLAGS", ""), "needs the sanitizer preloaded")
    def test_null_is_answered(self):
        library = ctypes.CDLL(LIBRARY)
        library.pasta_error.restype = ctypes.c_char_p
        library.pasta_tables.restype = ctypes.c_void_p
        trace = ctypes.c_void_p()
        self.assertEqual(library.pasta_open(None, ctypes.c_size_t(1), None, None), 1)
        self.assertEqual(library.pasta_open(None, ctypes.c_size_t(1), None, ctypes.byref(trace)), 1)
        self.assertEqual(library.pasta_error(trace), b"a path is NULL")
        self.assertIsNone(library.pasta_tables(trace))
        self.assertEqual(library.pasta_next(trace, None, None), 1)
        count, events = ctypes.c_size_t(7), ctypes.c_void_p()
        self.assertEqual(library.pasta_next(trace, ctypes.byref(events), ctypes.byref(count)), 1)
        self.assertEqual(count.value, 0)
        self.assertEqual(library.pasta_load_plugin(trace, None), 1)
        self.assertEqual(library.pasta_report(trace, None, ctypes.c_size_t(1), None), 1)
        library.pasta_close(trace)
        library.pasta_close(None)


if __name__ == "__main__":
    unittest.main()
