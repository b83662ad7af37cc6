#!/usr/bin/env python3
"""CUDA programs under pastaprof run, with a CUPTI that needs no GPU: what is told becomes events."""
import contextlib
import ctypes
import glob
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PASTAPROF = os.environ["PASTAPROF"]
PROGRAM = os.environ["PASTA_CUDA_PROGRAM"]
CUPTI = os.environ["PASTA_FAKE_CUPTI"]
CUDART = os.environ["PASTA_FAKE_CUDART"]
DRIVER = os.environ["PASTA_FAKE_DRIVER"]
NESTED = os.environ["PASTA_FAKE_NESTED"]


def has_cupti():
    """Whether the machine has one that is found before any other."""
    for version in (13, 12):
        with contextlib.suppress(OSError):
            return bool(ctypes.CDLL(f"libcupti.so.{version}"))
    return bool(glob.glob("/usr/local/cuda*"))


# Calls of CUDA from Python; each line that makes some says what for.
PYTHON = """\
import ctypes, os, threading
ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
cupti = ctypes.CDLL("libcupti.so.13")
launch, thread = cupti.launch_here, threading.get_native_id
class Layer:
    def forward(self):
        launch(b"in a method")
launch(b"in the program")
Layer().forward()
[launch(b"twice") for _ in range(2)]
cupti.copy_from_host(thread())
other = threading.Thread(target=launch, args=(b"in a thread",))
other.start()
other.join()
cupti.begin_launch()
launch(b"after one that did not end")
cupti.wait_in(2, 131, 126, 7, 0, thread())
native, system = ctypes.c_ulong(), ctypes.CDLL(None)
system.pthread_create(ctypes.byref(native), None, cupti.launch_here, b"no Python")
system.pthread_join(native, None)
"""

# Of a process with PyTorch, in which one of its operators launches, too.
TORCH = """\
import ctypes, os, threading
ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
cupti = ctypes.CDLL("libcupti.so.13")
launch, thread = cupti.launch_here, threading.get_native_id
launch(b"before")
import torch
library = torch.library.Library("mine", "DEF")
library.define("launch(Tensor x) -> Tensor")
def implementation(x):
    launch(b"in an operator")
    return x.clone()
library.impl("launch", implementation, "CPU")
class Layer(torch.nn.Module):
    def forward(self, x):
        launch(b"in a module")
        cupti.copy_from_host(thread())
        return torch.ops.mine.launch(x)
Layer()(torch.zeros(1))
"""

# As many ranges as are kept, and then a call.
PYTHON_DEEP = """\
import ctypes, os
collector = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
collector.InitializeInjection()
collector.pasta_collector_v1.restype = ctypes.POINTER(ctypes.c_void_p)
_, begin, end = collector.pasta_collector_v1()[:3]
begin = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t)(begin)
end = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(end)
ranges = [begin(b"range", 5) for _ in range(128)]
ctypes.CDLL("libcupti.so.13").launch_here(b"deep")
for opened in reversed(ranges):
    end(opened)
end(begin(b"after", 5))
"""

# A child after CUDA has begun, which ends as it likes or begins CUDA again.
PYTHON_FORK = """\
import ctypes, os
initialize = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection
initialize()
launch = ctypes.CDLL("libcupti.so.13").launch_here
launch(b"before")
for child in (lambda: os._exit(0), lambda: exit(0), initialize):
    if os.fork() == 0:
        child()
        exit(0)
    assert os.wait()[1] == 0
launch(b"after")
"""

# A library goes, and another lies where it was.
PYTHON_LATE = """\
import _ctypes, ctypes, os, pathlib, re, time
gone = ctypes.CDLL(os.environ["PASTA_FAKE_DRIVER"])
ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
# Our thread waits after each look. One that began before may still go on; then a whole one follows.
def looked():
    for task in pathlib.Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "pasta-cupti\\n":
            return int(re.search(r"^voluntary_ctxt_switches:\\s*(\\d+)", (task / "status").read_text(), re.M)[1])
    return 0
def wait_for_look():
    before, until = looked(), time.monotonic() + 20
    while looked() < before + 3 and time.monotonic() < until:
        time.sleep(0.01)
wait_for_look()
_ctypes.dlclose(gone._handle)
ctypes.CDLL(os.environ["NESTED"])
wait_for_look()
"""


class Cupti(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, words, code, options=(), **environment):
        environment = {**os.environ, "LD_LIBRARY_PATH": CUPTI, **environment}
        environment = {name: value for name, value in environment.items() if value is not None}
        result = subprocess.run([PASTAPROF, "run", "-o", "t.pasta", *options, "--", PROGRAM, *words.split(" ")],
                                cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said, self.wrote = result.stderr, result.stdout
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

    def run_python(self, *options, program=PYTHON, python=sys.executable, **environment):
        (self.folder / "program.py").write_text(program)
        environment = {**os.environ, "LD_LIBRARY_PATH": CUPTI, **environment}
        subprocess.run([PASTAPROF, "run", "-f", "-o", "t.pasta", *options, "--", python, "program.py"], cwd=self.folder,
                       env=environment, capture_output=True, text=True, timeout=300, check=True)
        dump = subprocess.run([PASTAPROF, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True).stdout
        frames = {None: []}
        for number, parent, name, domain in re.findall(r'^frame (F\d+)(?: in=(F\d+))? "([^"]*)" (\w+)', dump, re.M):
            frames[number] = [*frames[parent or None], *([name] if domain == "python" else [])]
        work = re.findall(r'^(?:kernel|copy|sync) \S+ \S+ \S+ "([^"]*)"(?:.* scope=(F\d+))?', dump, re.M)
        return [(name, frames[scope or None]) for name, scope in work], dump

    def test_lines_of_python_that_call(self):
        found, dump = self.run_python()
        comprehension = "<module>" if sys.version_info >= (3, 12) else "<listcomp>"
        copied = "Memcpy HtoD (Pinned -> Device)"
        lines = [("in the program", 8, "<module>"), ("in a method", 7, "forward"), ("twice", 10, comprehension),
                 ("twice", 10, comprehension), (copied, 11, "<module>"), ("in a thread", None, "run"),
                 ("after one that did not end", 16, "<module>"), ("Stream Sync", 17, "<module>"), ("no Python", None, None)]
        for name, line, function in lines:
            place = [path for work, path in found if work == name]
            self.assertTrue(place, (name, found))
            if function is None:
                self.assertEqual(place, [[]], name)
            elif line is None:  # nothing of the user's: the nearest of Python's own library
                self.assertRegex(place[0][0], r"^threading\.py\(\d+\): run$")
            else:
                self.assertEqual(place[0], [f"program.py({line}): {function}"], name)
        self.assertEqual(len(found), len(lines))
        self.assertRegex(dump, r'fact "process \d+ python" "3\.')

    def test_lines_beside_operators_of_pytorch(self):
        python = next((python for python in (sys.executable, "/usr/bin/python3") if os.path.exists(python) and subprocess.run(
            [python, "-c", "import torch"], capture_output=True, check=False).returncode == 0), None)
        if python is None:
            self.skipTest("there is no PyTorch")
        # Without a compiler: its operators are the same here.
        found, dump = self.run_python(program=TORCH, python=python, PATH="", CXX="", PASTA_CACHE=str(self.folder))
        self.assertEqual(found, [("before", ["program.py(5): <module>"]), ("in a module", ["program.py(15): forward"]),
                                 ("Memcpy HtoD (Pinned -> Device)", ["program.py(16): forward"]),
                                 ("in an operator", ["program.py(17): forward"])])
        self.assertRegex(dump, r'torch" "torch .*: operators by a dispatch mode')
        path = re.search(r'^frame (F\d+) in=(F\d+) "mine::launch" operator', dump, re.M)
        self.assertRegex(dump, rf'(?m)^kernel \S+ \S+ \S+ "in an operator".* scope={path[1]}\b')

    def test_stacks_of_python_and_none(self):
        found, _ = self.run_python("--python", "stacks")
        self.assertEqual(dict(found)["in a method"], ["program.py(9): <module>", "program.py(7): forward"])
        self.assertEqual([re.sub(r"\(\d+\)", "", place) for place in dict(found)["in a thread"]],
                         ["threading.py: _bootstrap", "threading.py: _bootstrap_inner", "threading.py: run"])
        for options in (("--python", "off"), ("--adapter", "cupti")):
            found, _ = self.run_python(*options)
            self.assertEqual([path for _, path in found], [[]] * 9)

    def delays(self, lines):
        """From the end of each launch call to the start of its kernel, ns."""
        ends = {}
        for line in lines:
            if line.startswith("api "):
                ends[re.search(r"correlation=(\S+)", line).group(1)] = int(line.split()[2])
        return [int(line.split()[1]) - ends[re.search(r"correlation=(\S+)", line).group(1)] for line in lines
                if line.startswith("kernel ")]

    def test_device_times_by_clocks_that_the_driver_reads(self):
        lines = self.run_watched("training 3", 0, LD_PRELOAD=DRIVER, FAKE_GPUS="2")
        self.assertTrue([line for line in lines if "device_clock" in line and "read beside the host's by the driver" in line], lines[:20])
        delays = self.delays(lines)
        self.assertGreater(len(delays), 1000)
        # The host's clocks themselves are read one after the other, and whoever reads them may be interrupted.
        self.assertLess(max(map(abs, delays)), 50_000)
        self.assertLess(statistics.median(map(abs, delays)), 1_000)
        self.assertFalse([line for line in lines if line.startswith("problem")])

    def test_device_times_of_cupti_where_the_driver_or_cupti_gives_no_other_and_on_demand(self):
        for environment in ({"FAKE_DRIVER_REFUSES": "objects"}, {"FAKE_DRIVER_REFUSES": "times"}, {"FAKE_CUDA": "12"},
                            {"PASTA_CUDA_CLOCK": "cupti"}):
            with self.subTest(environment):
                lines = self.run_watched("exit", 0, options=("-f",), LD_PRELOAD=DRIVER, FAKE_GPUS="2", **environment)
                self.assertTrue([line for line in lines if "device_clock" in line and "made the host's by CUPTI" in line], lines[:20])
                delays = self.delays(lines)
                self.assertEqual(len(delays), 3)
                for delay in delays:
                    self.assertAlmostEqual(delay, -1_000_000, delta=1_000)

    def test_a_clock_that_can_be_read_no_longer_is_said(self):
        lines = self.run_watched("exit", 0, LD_PRELOAD=DRIVER, FAKE_GPUS="2", FAKE_DRIVER_REFUSES="later")
        self.assertTrue([line for line in lines if line.startswith("problem collector_warning")
                         and "the clock of a GPU could not be read" in line], lines)
        self.assertLess(max(map(abs, self.delays(lines))), 200_000)

    def test_what_is_no_longer_the_driver_is_not_asked(self):
        lines = self.run_watched("exit", 0, LD_PRELOAD=DRIVER, FAKE_GPUS="2", FAKE_DRIVER_REFUSES="file")
        self.assertNotIn("fake: asked", self.said)
        self.assertTrue([line for line in lines if line.startswith("problem collector_warning")
                         and "the clock of a GPU could not be read" in line], lines)
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_a_place_that_is_too_deep_ends_with_its_call(self):
        found, dump = self.run_python("--python", "lines", program=PYTHON_DEEP)
        self.assertEqual([path for _, path in found], [[]])
        self.assertEqual(len(re.findall(r'^scope .*"after"', dump, re.M)), 1)

    def test_children_after_fork_are_not_watched(self):
        begin = time.monotonic()
        found, dump = self.run_python(program=PYTHON_FORK)
        self.assertLess(time.monotonic() - begin, 9)  # none has waited for a thread that it has not
        self.assertEqual([work for work, _ in found], ["before", "after"])
        self.assertEqual(re.findall("^problem .*", dump, re.M),
                         ['problem not_recorded count=1 first="CUDA is not watched: it had begun before fork()"'])

    def test_work_of_a_device_whose_clock_cannot_be_read_is_counted(self):
        lines = self.run_watched("exit", 0, LD_PRELOAD=DRIVER, FAKE_GPUS="2", FAKE_DRIVER_REFUSES="second")
        self.assertEqual(len(self.names(lines, "api")), 3)
        lost = 3 - len(self.names(lines, "kernel"))
        self.assertIn(lost, (1, 2))
        self.assertTrue([line for line in lines if line.startswith(f"problem collector_warning count={lost} ")
                         and "device work of a GPU whose clock cannot be read" in line], lines)

    def test_who_takes_over_gets_the_times_that_cupti_makes(self):
        self.run_watched("profiler", 0, LD_PRELOAD=DRIVER, FAKE_GPUS="1", FAKE_TELLS="1")
        self.assertEqual(re.findall("raw times ([01])", self.said), ["1", "0"])

    def test_what_is_left_at_a_sudden_exit_is_taken(self):
        lines = self.run_watched("_exit", 7)
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_what_is_left_when_a_program_ends_quickly_is_taken(self):
        lines = self.run_watched("quick_exit", 7)
        self.assertEqual(self.names(lines, "kernel"), ["before quick_exit"])
        self.assertFalse([line for line in lines if line.startswith("problem")], lines)

    def test_a_program_that_executes_another_has_lost_something(self):
        lines = self.run_watched("exec", 0)
        self.assertEqual(len(self.names(lines, "kernel")), 3)
        self.assertTrue([line for line in lines if line.startswith("problem") and "executed another program: what CUPTI" in line], lines)

    def test_a_profiler_of_the_program_takes_over(self):
        lines = self.run_watched("profiler", 0)
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and "own profiler" in line])
        self.assertNotIn("fake: who registers", self.said)

    def test_who_takes_over_gets_no_buffer_that_was_ours(self):
        lines = self.run_watched("profiler", 0, FAKE_BUSY="1")
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu", "meanwhile"])
        self.assertNotIn("fake: who registers", self.said)

    def test_of_two_that_take_over_at_once_none_gets_what_was_ours(self):
        lines = self.run_watched("profiler", 0, FAKE_BUSY="1", FAKE_SECOND="1")
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu", "meanwhile"])
        self.assertNotIn("fake: who registers", self.said)

    def test_who_has_records_written_before_cuda_begins_keeps_them(self):
        lines = self.run_watched("early", 0)
        self.assertEqual(self.names(lines, "kernel"), [])
        self.assertTrue([line for line in lines if "another tool in the program has CUPTI already" in line], lines)

    def test_cupti_that_fails_is_said(self):
        lines = self.run_watched("failing", 0)
        self.assertEqual(self.names(lines, "kernel"), ["before"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and
                         "CUPTI does not record CUDA from shortly before it failed on: refused" in line], lines)

    def test_a_killed_program_has_lost_something(self):
        lines = self.run_watched("kill", 137)
        self.assertTrue([line for line in lines if line.startswith("problem") and "was killed" in line])
        self.assertEqual(len(self.names(lines, "kernel")), 3)
        self.assertTrue([line for line in lines if line.startswith("problem work_under_way count=2 ")], lines)

    def test_only_inside_of_a_range(self):
        lines = self.run_watched("exit", 0, options=("--capture-range", "forward"))
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)"])

    def test_nothing_is_turned_on_before_the_range(self):
        lines = self.run_watched("exit", 0, options=("--capture-range", "no such range"), FAKE_TELLS="1")
        self.assertEqual(self.names(lines, "kernel"), [])
        self.assertNotIn("is on", self.said)
        os.remove(self.folder / "t.pasta")
        self.run_watched("exit", 0, options=("--capture-range", "forward"), FAKE_TELLS="1")
        self.assertIn("fake: kind 10 is on", self.said)

    def test_of_two_threads_that_start_and_stop_the_last_has_its_way(self):
        lines = self.run_watched("race", 0, FAKE_SLOW="1")
        self.assertEqual(len(self.names(lines, "kernel")), len(self.names(lines, "scope")))

    def test_waits_are_told_by_their_calls(self):
        lines = self.run_watched("waits", 0, FAKE_TELLS="1")
        self.assertNotIn("fake: kind 38 is on", self.said)  # CUPTI's own kind of waits, which costs all other calls
        calls = ["cudaLaunchKernel", "cudaStreamSynchronize", "cudaStreamWaitEvent", "cuCtxSynchronize"]
        self.assertEqual(self.names(lines, "api"), calls)
        waits = [line for line in lines if line.startswith("sync ")]
        self.assertEqual(self.names(waits, "sync"), ["Stream Sync", "Stream Wait Event", "Context Sync"])
        kernel = next(line for line in lines if line.startswith("kernel "))
        of_kernel = kernel.split()[3]
        self.assertEqual([line.split()[3] == of_kernel for line in waits], [True, True, False])
        self.assertIn(f"on={of_kernel}", waits[0])
        self.assertIn("object=224", waits[1])
        for line, call in zip(waits, (line for line in lines if line.startswith("api ") and "Launch" not in line)):
            self.assertIn("flags=linked", line)
            self.assertEqual(line.split()[1:3], call.split()[1:3])
        # The driver's part of a wait is one of its calls and no wait of its own.
        lines = self.run_watched("waits", 0, options=("-f", "--cuda-driver-calls"))
        self.assertEqual(sorted(self.names(lines, "api")), sorted([*calls, "cuStreamSynchronize"]))
        self.assertEqual(len(self.names(lines, "sync")), 3)

    def test_a_wait_after_one_in_which_collection_stopped(self):
        lines = self.run_watched("interrupted", 0)
        self.assertEqual(self.names(lines, "sync"), ["Context Sync"])

    def test_fills_and_nothing_but_their_calls(self):
        lines = self.run_watched("fills", 0)
        self.assertEqual(len([line for line in lines if line.startswith("fill ") and "bytes=1024" in line]), 1)
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel", "cudaMemsetAsync"])
        self.assertFalse([line for line in lines if line.startswith("problem")])
        lines = self.run_watched("fills", 0, options=("-f", "--cuda-fills", "calls"), FAKE_TELLS="1")
        self.assertNotIn("fake: kind 2 is on", self.said)
        self.assertFalse([line for line in lines if line.startswith("fill ")])
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel", "cudaMemsetAsync"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and "fills on GPUs" in line])

    def test_of_the_runtimes_calls_only_those_are_asked_for_that_tell_something(self):
        lines = self.run_watched("asks", 0, FAKE_TELLS="1")
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel"])
        self.assertNotIn("fake: kind 5 is on", self.said)
        # A CUPTI that knows no single calls tells of all.
        lines = self.run_watched("asks", 0, options=("-f",), FAKE_TELLS="1", FAKE_CUDA="12")
        self.assertEqual(self.names(lines, "api"), ["cudaGetDevice", "cudaLaunchKernel"])
        self.assertIn("fake: kind 5 is on", self.said)

    @staticmethod
    def path_of(lines, line):
        """The call path of an event, as "outer > inner"."""
        frames = {found.group(1): (found.group(2), found.group(3)) for found in
                  (re.match(r'frame (F\d+) (?:in=(F\d+) )?"([^"]*)"', line) for line in lines) if found}
        found = re.search(r"scope=(F\d+)", line)
        names, at = [], found and found.group(1)
        while at:
            at, name = frames[at]
            names.insert(0, name)
        return " > ".join(names)

    def test_nodes_of_a_graph_have_the_path_where_they_were_captured(self):
        lines = self.run_watched("graph", 0)
        kernels = [line for line in lines if line.startswith("kernel ")]
        self.assertEqual([self.path_of(lines, line) for line in kernels],
                         ["replay > capture > first", "replay > capture > first", "replay > capture > second", "replay"])
        self.assertFalse([line for line in lines if line.startswith("problem")])

    def test_a_graph_as_a_whole(self):
        lines = self.run_watched("graph", 0, options=("--cuda-graphs", "whole"))
        self.assertEqual(self.names(lines, "kernel"), ["CUDA graph 5"] * 4)
        self.assertEqual({self.path_of(lines, line) for line in lines if line.startswith("kernel ")}, {"replay"})

    def test_between_start_and_stop_of_the_profiler(self):
        lines = self.run_watched("profiled", 0, options=("--capture-range", "cudaProfilerApi"))
        self.assertEqual(self.names(lines, "kernel"), ["inside"] * 4)
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel", "cuLaunchKernel"] * 2)
        self.assertFalse([line for line in lines if line.startswith("problem")])
        os.remove(self.folder / "t.pasta")
        lines = self.run_watched("exit", 0, options=("--capture-range", "cudaProfilerApi"))
        self.assertEqual(self.names(lines, "kernel"), [])
        self.assertTrue([line for line in lines if "neither cudaProfilerStart nor cuProfilerStart was seen" in line])

    def test_iterations_by_number(self):
        for how, marks in (("steps", {"step#2", "step#3"}), ("numbers", {"step 2", "step 3"}), ("names", {"train_step"}),
                           ("optimizers", {"Optimizer.step#SGD.step"})):
            with self.subTest(how):
                lines = self.run_watched(f"by-{how}", 0, options=("--capture-range", "iterations:2-3"))
                os.remove(self.folder / "t.pasta")
                self.assertEqual(len(self.names(lines, "kernel")), 2)
                self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel"] * 2)
                self.assertEqual(set(self.names(lines, "scope")), marks)
                self.assertFalse([line for line in lines if line.startswith("problem")])

    def test_iterations_from_the_beginning_and_none(self):
        lines = self.run_watched("by-optimizers", 0, options=("--capture-range", "iterations:0"))
        self.assertEqual(len(self.names(lines, "kernel")), 1)
        os.remove(self.folder / "t.pasta")
        lines = self.run_watched("by-steps", 0, options=("--capture-range", "iterations:20-30"))
        self.assertTrue([line for line in lines if "iterations were told of, none of these" in line], lines)
        os.remove(self.folder / "t.pasta")
        lines = self.run_watched("by-nothing", 0, options=("--capture-range", "iterations:20-30"))
        self.assertTrue([line for line in lines if "nothing marks iterations" in line], lines)
        self.run_watched("by-nothing", 125, options=("--capture-range", "iterations:30-20"))
        self.assertIn("give the first iteration and the last, as in iterations:20-30", self.said)

    def test_numbers_that_come_round_again(self):
        lines = self.run_watched("long", 0)
        calls = [re.search(r"correlation=(\S+)", line).group(1) for line in lines if line.startswith("api ")]
        kernels = [line for line in lines if line.startswith("kernel ")]
        self.assertEqual([re.search(r"correlation=(\S+)", line).group(1) for line in kernels], calls)
        self.assertEqual(len(set(calls)), 10)
        self.assertTrue(all("flags=linked" in line for line in kernels))

    def test_kernels_that_kernels_launch_are_said_to_be_missing(self):
        said = lambda lines: [line for line in lines if line.startswith("problem") and "kernels that kernels launch" in line]
        self.assertEqual(said(self.run_watched("exit", 0, FAKE_LOADS=CUDART)), [])
        lines = self.run_watched("exit", 0, options=("-f",), FAKE_LOADS=NESTED)
        self.assertEqual(len(said(lines)), 1)
        self.assertIn("not_recorded", said(lines)[0])
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_code_that_launches_kernels_may_come_late_and_where_another_has_gone(self):
        for nested, count in (("PASTA_FAKE_NESTED", 1), ("PASTA_FAKE_CUDART", 0)):
            _, dump = self.run_python(program=PYTHON_LATE.replace("NESTED", nested))
            self.assertEqual(dump.count("kernels that kernels launch"), count)

    def test_external_numbers_are_moments_of_the_thread(self):
        lines = self.run_watched("external", 0)
        call = next(line for line in lines if line.startswith("api "))
        mark = next(line for line in lines if line.startswith("scope "))
        self.assertIn('"external id custom 0"', mark)
        self.assertIn('{\\"id\\":17}', mark)
        self.assertEqual(mark.split()[1:4:2], call.split()[1:4:2])
        self.assertTrue([line for line in lines if line.startswith("problem not_kept count=2")], lines)

    def test_a_profiler_that_finds_cupti_by_itself_takes_over(self):
        lines = self.run_watched("loaded", 0)
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and "own profiler" in line])

    def test_a_profiler_that_brings_its_own_cupti_takes_over(self):
        other = self.folder / "libcupti.so"
        shutil.copy(f"{CUPTI}/libcupti.so.13", other)
        lines = self.run_watched("other", 0, FAKE_OTHER=str(other))
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertTrue([line for line in lines if line.startswith("problem not_recorded") and "own profiler" in line])

    def test_who_has_cupti_first_keeps_it(self):
        lines = self.run_watched("exit", 0, FAKE_TAKEN="1")
        self.assertEqual(self.names(lines, "kernel"), [])
        self.assertTrue([line for line in lines if "another tool in the program has CUPTI already" in line])

    def test_memory_stays_where_it_is(self):
        lines = self.run_watched("storm 200000 2000", 0)
        sizes = [int(word) for word in self.wrote.splitlines()[0].split()]
        self.assertEqual(len(self.names(lines, "kernel")), 200_000)
        self.assertFalse([line for line in lines if line.startswith("problem")])
        # In KiB, when the collector was there, and after each tenth of the launches.
        self.assertLess(max(sizes) - sizes[0], 150 << 10)
        self.assertEqual(len(sizes), 11)

    def test_iterations_of_training_without_marks(self):
        lines = self.run_watched("training 30", 0)
        self.assertGreater(len(self.names(lines, "kernel")), 30 * 300)
        text = subprocess.run([PASTAPROF, "report", "t.pasta", "--tool", "iterations", "--format", "json"], cwd=self.folder,
                              capture_output=True, text=True).stdout
        parts = json.loads(text)["reports"][0]["parts"]
        rows = next(part["rows"] for part in parts if part["type"] == "table" and part["id"] == "iterations")
        self.assertEqual(len(rows), 30, text[:2000])

    @unittest.skipIf(has_cupti(), "the machine has a CUPTI of its own")
    def test_cupti_is_found_where_the_program_has_it(self):
        packages = "venv/lib/python3.11/site-packages"
        for library, cupti, environment in (
                # Wheels of CUDA 12, of CUDA 13, of a Python that has loaded none of them; toolkits.
                (f"{packages}/nvidia/cuda_runtime/lib/libcudart.so.12", f"{packages}/nvidia/cuda_cupti/lib/libcupti.so.12", {}),
                (f"{packages}/nvidia/cu13/lib/libcudart.so.13", f"{packages}/nvidia/cu13/lib/libcupti.so.13", {}),
                (f"{packages}/numpy/core/_multiarray.so", f"{packages}/nvidia/cuda_cupti/lib/libcupti.so.12", {}),
                ("toolkit/lib64/libcublas.so.13", "toolkit/extras/CUPTI/lib64/libcupti.so.13", {}),
                ("driver/libcuda.so.1", "driver/libcupti.so.13", {}),
                (None, "home/extras/CUPTI/lib64/libcupti.so.13", {"CUDA_HOME": "home"}),
                (None, "home/targets/x86_64-linux/lib/libcupti.so.12", {"CUDA_PATH": "home"})):
            with self.subTest(cupti), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder).resolve()
                for path, source in ((library, CUDART), (cupti, f"{CUPTI}/libcupti.so.13")):
                    if path is not None:
                        (root / path).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(source, root / path)
                given = {name: str(root / value) for name, value in environment.items()}
                lines = self.run_watched("exit", 0, LD_LIBRARY_PATH=None, FAKE_LOADS=library and str(root / library), **given)
                os.remove(self.folder / "t.pasta")
                self.assertEqual(len(self.names(lines, "kernel")), 3, self.said)
                found = next(line for line in lines if "cupti_library" in line).split()[-1].strip('"')
                self.assertEqual(pathlib.Path(found).resolve(), root / cupti)

    @unittest.skipIf(has_cupti(), "the machine has a CUPTI of its own")
    def test_no_cupti_is_said(self):
        lines = self.run_watched("exit", 5, LD_LIBRARY_PATH=None)
        self.assertTrue([line for line in lines if "CUDA is not watched: no libcupti.so.13 or libcupti.so.12" in line])

    def test_records_of_cuda_12(self):
        lines = self.run_watched("exit", 0, FAKE_CUDA="12")
        self.assertEqual(self.names(lines, "kernel"), ["gemm(float*, int)", "relu", "relu"])
        self.assertEqual(self.names(lines, "api"), ["cudaLaunchKernel"] * 3)

    def test_what_cupti_refuses_is_said(self):
        lines = self.run_watched("exit", 0, FAKE_REFUSES="1")
        self.assertTrue([line for line in lines if "CUPTI does not record overhead: refused" in line])
        self.assertEqual(len(self.names(lines, "kernel")), 3)

    def test_another_tool_that_is_injected_stays(self):
        self.run_watched("exit", 3, CUDA_INJECTION64_PATH="/nowhere/theirs.so")
        self.assertIn("cupti is not watched: CUDA_INJECTION64_PATH is set already, to /nowhere/theirs.so", self.said)


if __name__ == "__main__":
    unittest.main()
