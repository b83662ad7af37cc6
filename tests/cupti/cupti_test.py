#!/usr/bin/env python3
"""CUDA programs under pastaprof run, with a CUPTI that needs no GPU: what is told becomes events."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PASTAPROF = os.environ["PASTAPROF"]
PROGRAM = os.environ["PASTA_CUDA_PROGRAM"]
CUPTI = os.environ["PASTA_FAKE_CUPTI"]


class Cupti(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, last, code, options=(), **environment):
        environment = {**os.environ, "LD_LIBRARY_PATH": CUPTI, **environment}
        environment = {name: value for name, value in environment.items() if value is not None}
        result = subprocess.run([PASTAPROF, "run", "-o", "t.pasta", *options, "--", PROGRAM, last], cwd=self.folder,
                                env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said = result.stderr
        dump = subprocess.run([PASTAPROF, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True)
        return dump.stdout.splitlines()

    @staticmethod
    def names(lines, kind):
        return [re.search(r'"([^"]*)"', line).group(1) for line in lines if line.startswith(kind + " ")]

    def test_launches_kernels_and_paths(self):
        lines = self.run_watched("exit", 0)
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel"] * 3)
        kernels = [line for line in lines if line.startswith("kernel ")]
        self.assertTrue(all("flags=linked" in line and "grid=1,2,3 block=1,2,3" in line for line in kernels), kernels)
        frames = {line.split()[1]: line for line in lines if line.startswith("frame ")}
        scopes = [re.search(r"scope=(F\d+)", line) for line in kernels]
        self.assertIn('"forward"', frames[scopes[0].group(1)])
        self.assertIn('"step"', frames[scopes[1].group(1)])
        self.assertIsNone(scopes[2])
        # Each call lies on the program's own thread, beside its ranges.
        threads = {line.split()[3] for line in lines if re.match(r'api |scope .*"step"', line)}
        self.assertEqual(len(threads), 1)
        for line in kernels:
            _, start, end, *_ = line.split()
            self.assertEqual(int(end) - int(start), 2000)
        self.assertFalse([line for line in lines if line.startswith("problem")])

    def test_what_is_left_at_a_sudden_exit_is_taken(self):
        lines = self.run_watched("_exit", 7)
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_a_profiler_of_the_program_takes_over(self):
        lines = self.run_watched("profiler", 0)
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and "own profiler" in line])

    def test_a_killed_program_has_lost_something(self):
        lines = self.run_watched("kill", 137)
        self.assertTrue([line for line in lines if line.startswith("problem") and "was killed" in line])

    def test_only_inside_of_a_range(self):
        lines = self.run_watched("exit", 0, options=("--capture-range", "forward"))
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)"])

    def test_what_cupti_refuses_is_said(self):
        lines = self.run_watched("exit", 0, FAKE_REFUSES="1")
        self.assertTrue([line for line in lines if "CUPTI does not record overhead: refused" in line])
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_another_tool_that_is_injected_stays(self):
        self.run_watched("exit", 3, CUDA_INJECTION64_PATH="/nowhere/theirs.so")
        self.assertIn("cupti is not watched: CUDA_INJECTION64_PATH is set already, to /nowhere/theirs.so", self.said)


if __name__ == "__main__":
    unittest.main()
