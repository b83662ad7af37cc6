#!/usr/bin/env python3
"""OpenCL programs under pastaprof run: unchanged, and every command of theirs is in the trace."""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["PASTAPROF"]
OPENCL = os.environ["PASTA_OPENCL"]
REOPEN = os.environ["PASTA_REOPEN"]
REOPEN_LIBRARY = os.environ["PASTA_OPENCL_REOPEN_LIBRARY"]

LINE = re.compile(r'(\w+) (-?\d+|-) (\+?-?\d+|-) (\S+) "((?:[^"\\]|\\.)*)"(.*)')
WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


class Event:
    def __init__(self, match):
        self.kind, start, end, self.lane, self.name, rest = match.groups()
        self.start = None if start == "-" else int(start)
        self.end = None if end == "-" else self.start + int(end) if end.startswith("+") else int(end)
        self.fields = dict(WORD.findall(rest))
        self.words = set(WORD.sub("", rest).split())

    def __repr__(self):
        return f"{self.kind} {self.name} {self.start}..{self.end} {self.lane} {self.fields} {self.words}"

    def number(self, key):
        return int(self.fields[key], 0) if key in self.fields else None


class Trace:
    def __init__(self, text):
        self.events, self.lanes, self.facts, self.problems, self.frames = [], {}, {}, {}, {}
        for line in text.splitlines():
            words = dict(WORD.findall(line))
            if line.startswith("lane "):
                self.lanes[line.split()[1]] = (line.split()[2], words)
            elif line.startswith("frame "):
                self.frames[line.split()[1]] = words
            elif line.startswith("fact "):
                key, value = re.findall(r'"((?:[^"\\]|\\.)*)"', line)[:2]
                self.facts[key] = value
            elif line.startswith("problem "):
                self.problems[line.split()[1]] = int(words["count"])
            elif (match := LINE.match(line)) and match[1] not in ("process", "device"):
                self.events.append(Event(match))

    def of(self, kind, name=None):
        return [e for e in self.events if e.kind == kind and name in (None, e.name)]

    def work(self):
        return [e for e in self.events if e.kind in ("kernel", "copy", "fill")]

    def counts(self, *kinds):
        return dict(collections.Counter(e.name for e in self.events if e.kind in kinds))


class OpenCl(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def watch(self, *words, code=0, options=()):
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", *words], cwd=self.folder,
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stderr)
        self.output = result.stdout
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(dump.returncode, (0, 3), dump.stderr)
        check = subprocess.run([PROGRAM, "check", "t.pasta"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(check.returncode, (0, 3), check.stdout)
        return Trace(dump.stdout)

    def watched(self, name, count=1, code=0, problems=()):
        """The trace of a program that has ended well, of which nothing is lost and all is linked."""
        trace = self.watch(OPENCL, name, str(count), code=code)
        if code == 0:
            self.assertEqual(self.output, "done\n")
        self.assertLessEqual(set(trace.problems), set(problems) | {"partial_overlap", "queue_overlap"})
        calls = {e.fields["correlation"]: e for e in trace.of("api") if "correlation" in e.fields}
        for work in trace.work():
            self.assertEqual(work.fields.get("flags"), "linked", work)
            call = calls[work.fields["correlation"]]
            self.assertTrue(call.name.startswith("clEnqueue"), call)
            self.assertGreaterEqual(work.start, call.start, (work, call))
            self.assertEqual(trace.lanes[work.lane][0], "queue")
            self.assertEqual(trace.lanes[call.lane][0], "thread")
        # Each command waited from when it was queued until it started, on the queue that it ran on.
        waits = {name: {e.fields["correlation"]: e for e in trace.of("scope", name)} for name in ("queued", "submitted")}
        for work in trace.work():
            queued, submitted = (waits[name][work.fields["correlation"]] for name in ("queued", "submitted"))
            self.assertEqual((queued.lane, submitted.lane), (work.lane, work.lane))
            self.assertEqual((queued.end, submitted.end), (submitted.start, work.start))
            self.assertLessEqual(queued.start, calls[work.fields["correlation"]].end + 1_000_000)
            self.assertGreaterEqual(queued.start, calls[work.fields["correlation"]].start - 1_000_000)
            self.assertEqual(queued.fields["flags"], "annotation")
        return trace

    def test_vector_add(self):
        trace = self.watched("vector_add", 10)
        self.assertEqual(trace.counts("kernel", "copy"), {"vector_add": 10, "WriteBuffer": 2, "ReadBuffer": 1})
        for kernel in trace.of("kernel"):
            self.assertEqual((kernel.fields["grid"], kernel.fields["block"]), ("64,1,1", "64,1,1"))
        self.assertEqual([k.number("ordinal") for k in trace.of("kernel")], list(range(1, 11)))
        for copy in trace.of("copy"):
            self.assertEqual(copy.number("bytes"), 16384)
            self.assertEqual(copy.fields["direction"], "device_to_host" if copy.name == "ReadBuffer" else "host_to_device")
        # In the order in which they were enqueued, one after the other.
        names = [w.name for w in trace.work()]
        self.assertEqual(names, ["WriteBuffer"] * 2 + ["vector_add"] * 10 + ["ReadBuffer"])
        # What is copied is what was allocated, and all of it is freed.
        allocated = {e.number("address"): e.number("bytes") for e in trace.of("alloc")}
        self.assertEqual(sorted(allocated.values()), [16384] * 3)
        self.assertEqual({e.number("address"): e.number("bytes") for e in trace.of("free")}, allocated)
        self.assertEqual([c.number("dst") in allocated for c in trace.of("copy", "WriteBuffer")], [True, True])
        self.assertIn(trace.of("copy", "ReadBuffer")[0].number("src"), allocated)
        api = trace.counts("api")
        self.assertEqual(api["clEnqueueNDRangeKernel"], 10)
        self.assertEqual(api["clSetKernelArg"], 3)
        self.assertEqual({e.fields.get("status", "0") for e in trace.of("api")}, {"0"})
        build = [e for e in trace.of("scope") if e.name.startswith("build ")]
        self.assertEqual(len(build), 1)
        self.assertIn("vector_add", build[0].name)
        self.assertTrue(any("clock" in key and "residual" in value for key, value in trace.facts.items()), trace.facts)

    def test_a_loader_that_is_closed_and_opened_again(self):
        trace = self.watch(REOPEN, REOPEN_LIBRARY, "3")
        self.assertEqual(self.output, "done\n")
        self.assertEqual(trace.counts("kernel"), {"twice": 3})
        self.assertEqual(trace.problems, {})
        self.assertEqual({e.name for e in trace.events if e.kind == "free"}, {"clReleaseMemObject"})
        devices = {trace.lanes[k.lane][1]["device"] for k in trace.of("kernel")}
        self.assertEqual(len(devices), 1, "it is the same device each time")

    def test_a_loader_that_is_closed_under_way(self):
        # What the program left is gone with the loader; nobody asks it any more.
        os.environ["LEAVE"] = "1"
        self.addCleanup(os.environ.pop, "LEAVE")
        trace = self.watch(REOPEN, REOPEN_LIBRARY, "2")
        self.assertEqual(self.output, "done\n")
        self.assertEqual(trace.counts("kernel"), {"twice": 2})
        self.assertEqual(trace.problems["work_under_way"], 2)

    def test_matrix_product(self):
        trace = self.watched("matrix_product", 3)
        self.assertEqual(trace.counts("kernel"), {"matrix_product": 3})
        kernel = trace.of("kernel")[0]
        self.assertEqual((kernel.fields["grid"], kernel.fields["block"]), ("8,8,1", "8,8,1"))
        self.assertEqual(kernel.number("static_shared"), 512)

    def test_reduction(self):
        trace = self.watched("reduction", 8)
        self.assertEqual(trace.counts("kernel", "copy", "fill"),
                         {"FillBuffer": 1, "CopyBuffer": 1, "reduce": 1, "MapBuffer": 1, "UnmapMemObject": 1})
        fill = trace.of("fill")[0]
        self.assertEqual((fill.number("bytes"), fill.number("pattern")), (4096, 3))
        copy = trace.of("copy", "CopyBuffer")[0]
        self.assertEqual(copy.number("bytes"), 4096)
        self.assertEqual(copy.fields["direction"], "device_to_device")
        self.assertEqual(trace.of("kernel")[0].number("dynamic_shared"), 512)
        self.assertNotIn("bytes", trace.of("copy", "MapBuffer")[0].fields)

    def test_pipeline(self):
        trace = self.watched("pipeline", 5)
        kernels = trace.of("kernel")
        self.assertEqual([k.name for k in kernels], ["scale", "shift"] * 5)
        self.assertEqual(len({k.lane for k in kernels}), 2)
        for before, after in zip(kernels, kernels[1:]):
            self.assertLessEqual(before.end, after.start)

    def test_out_of_order(self):
        trace = self.watched("out_of_order", 20)
        self.assertEqual(trace.counts("kernel", "fill", "copy"), {"FillBuffer": 20, "shift": 20, "ReadBuffer": 20})
        self.assertEqual({e.name for e in trace.of("sync") if trace.lanes[e.lane][0] == "queue"}, {"Marker", "Barrier"})
        names = [words.get("name", "") for _, words in trace.lanes.values()]
        self.assertTrue(any("out of order" in name for name in names), names)

    def test_threads(self):
        trace = self.watched("threads", 20)
        self.assertEqual(trace.counts("kernel"), {"vector_add": 160})
        queues = collections.Counter(k.lane for k in trace.of("kernel"))
        self.assertEqual(sorted(queues.values()), [20] * 8)
        self.assertEqual(sorted(k.number("ordinal") for k in trace.of("kernel")), list(range(1, 161)))
        trace = self.watched("one_queue", 20)
        self.assertEqual(trace.counts("kernel"), {"shift": 160})
        launches = collections.Counter(e.lane for e in trace.of("api", "clEnqueueNDRangeKernel"))
        self.assertEqual(sorted(launches.values()), [20] * 8)

    def test_iterations_are_found(self):
        trace = self.watched("stencil", 12)
        self.assertEqual(trace.counts("kernel", "copy"),
                         {"stencil": 48, "residual": 12, "ReadBuffer": 12, "WriteBuffer": 1})
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", "--tool", "iterations", "--format", "json",
                                 "--report", "r.json", "--", OPENCL, "stencil", "12"], cwd=self.folder,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads((self.folder / "r.json").read_text())["reports"][0]
        self.assertTrue(report["parts"][0]["text"].startswith("12 iterations found"), report["parts"][0])

    def test_a_leak(self):
        trace = self.watched("leak", 7)
        self.assertEqual((len(trace.of("alloc")), len(trace.of("free"))), (14, 7))

    def test_a_crash_loses_nothing_that_had_ended(self):
        trace = self.watch(OPENCL, "crash", "25", code=134)
        self.assertEqual(trace.counts("kernel"), {"shift": 25})
        self.assertEqual(trace.problems.get("work_under_way"), 3)

    def test_forks(self):
        trace = self.watched("forks", 3)
        self.assertEqual(trace.counts("kernel"), {"vector_add": 9})
        by_process = collections.Counter(k.fields["correlation"].split(":")[0] for k in trace.of("kernel"))
        self.assertEqual(sorted(by_process.values()), [2, 2, 2, 3])

    def test_images_of_one_process(self):
        trace = self.watched("executes", 5)
        self.assertEqual(trace.counts("kernel"), {"vector_add": 9})
        self.assertEqual(len({k.fields["correlation"] for k in trace.of("kernel")}), 9)

    def test_killed_at_any_time(self):
        rng = random.Random(random.randrange(1 << 32))
        for _ in range(int(os.environ.get("PASTA_KILLS", "5"))):
            watched = subprocess.Popen([PROGRAM, "run", "-f", "-o", "t.pasta", "--", OPENCL, "announce"],
                                       cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            told = len(watched.stdout.read(4 * rng.randrange(1, 3000)))
            child = int(subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(watched.pid)]).split()[0])
            os.kill(child, signal.SIGKILL)
            told += len(watched.stdout.read())
            watched.stdout.close()
            self.assertEqual(watched.wait(timeout=60), 137)
            trace = Trace(subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True,
                                         text=True).stdout)
            # All that it had waited for is there, and what it had launched besides is counted.
            kernels = len(trace.of("kernel"))
            self.assertGreaterEqual(kernels, told // 4)
            launched = sum("correlation" in e.fields for e in trace.of("api", "clEnqueueNDRangeKernel"))
            self.assertLessEqual(launched, kernels + trace.problems.get("work_under_way", 0))
            self.assertLessEqual(trace.problems.get("work_under_way", 0), 1)

    def test_images_and_rectangles(self):
        trace = self.watched("images")
        sizes = {e.name: e.number("bytes") for e in trace.work()}
        self.assertEqual(sizes, {"WriteImage": 2048, "CopyImage": 2048, "FillImage": 32, "ReadImage": 2048,
                                 "WriteBufferRect": 128, "ReadBufferRect": 128})
        self.assertEqual(len(trace.of("alloc")), 3)
        self.assertEqual(len(trace.of("free")), 3)

    def test_shared_memory(self):
        trace = self.watched("shared_memory")
        self.assertEqual({e.name: e.number("bytes") for e in trace.work()},
                         {"SVMMemFill": 4096, "SVMMemcpy": 1024, "SVMMap": None, "SVMUnmap": None})
        self.assertEqual(trace.of("copy", "SVMMemcpy")[0].fields["direction"], "host_to_device")
        self.assertEqual([e.number("bytes") for e in trace.of("alloc") + trace.of("free")], [4096, 4096])

    def test_failures_are_told(self):
        trace = self.watched("failures")
        failed = sorted((e.name, e.number("status")) for e in trace.of("api") if e.number("status"))
        self.assertEqual(failed, [("clBuildProgram", -11), ("clCreateBuffer", -61), ("clCreateBuffer", -61),
                                  ("clCreateKernel", -46), ("clEnqueueNDRangeKernel", -53)])
        self.assertEqual(trace.of("kernel"), [])
        marks = [e for e in trace.of("scope") if "ended with status" in e.name]
        self.assertEqual(len(marks), 1, trace.of("scope"))

    def test_answers_are_those_without_us(self):
        alone = subprocess.run([OPENCL, "answers"], capture_output=True, text=True, check=True).stdout
        self.watch(OPENCL, "answers")
        self.assertEqual(self.output, alone)
        self.assertIn("profiling -7", alone)

    def test_an_adapter_that_was_not_asked_for(self):
        trace = self.watch(OPENCL, "vector_add", "3", options=("--adapter", "annotations"))
        self.assertEqual(trace.events, [])

    def test_live_report_is_that_of_the_file(self):
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", "--report", "r", "--tool", "summary,kernels",
                                 "--", OPENCL, "one_queue", "300"], cwd=self.folder, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        stored = subprocess.run([PROGRAM, "report", "t.pasta", "--tool", "summary,kernels"], cwd=self.folder,
                                capture_output=True)
        self.assertEqual((self.folder / "r").read_bytes(), stored.stdout)

    def test_a_benchmark_of_others(self):
        if shutil.which("clpeak") is None:
            self.skipTest("clpeak is not installed")
        words = ["clpeak", "--kernel-latency"]
        alone = subprocess.run(words, capture_output=True, text=True)
        trace = self.watch(*words, code=alone.returncode)
        figures = re.compile(r"[\d.]+(e[+-]\d+)?")
        self.assertEqual(figures.sub("N", self.output), figures.sub("N", alone.stdout))
        self.assertGreater(len(trace.of("kernel")), 1000)

    def test_a_program_of_others(self):
        if shutil.which("clinfo") is None:
            self.skipTest("clinfo is not installed")
        alone = subprocess.run(["clinfo"], capture_output=True, text=True)
        trace = self.watch("clinfo", code=alone.returncode)
        self.assertEqual(self.output, alone.stdout)
        self.assertGreater(len(trace.of("api")), 50)


if __name__ == "__main__":
    if not OPENCL or subprocess.run([OPENCL, "leak"], capture_output=True).returncode == 2:
        print("no OpenCL here: its headers, loader, or a runtime are missing")
        raise SystemExit(77)
    unittest.main()
