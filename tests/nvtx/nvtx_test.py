#!/usr/bin/env python3
"""NVTX from outside: programs that know nothing of us, in C++ and in Python."""
import collections
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["PASTAPROF"]
NVTX = os.environ.get("PASTA_NVTX", "")
XLA = os.environ.get("PASTA_NVTX_XLA", "")
SOURCE = pathlib.Path(os.environ["PASTA_SOURCE_DIR"])
PACKAGES = SOURCE / ".deps" / "python"
sys.path.insert(0, str(SOURCE / "tests" / "python"))
from calls_test import SCRIPT as OPENCL, platforms

Range = collections.namedtuple("Range", "start end lane name domain scope arguments flags")


def words(line):
    """key=value of a line of the dump, and the words without a key."""
    found, plain = {}, []
    for key, text in re.findall(r'(?:(\w+)=)?("(?:[^"\\]|\\.)*"|\S+)', line):
        value = json.loads(text) if text.startswith('"') else text
        if key:
            found[key] = value
        else:
            plain.append(value)
    return plain, found


class Nvtx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def watch(self, *command, code=0, options=(), problems=None, **more):
        """Ranges by name, lanes by number, frames by number."""
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", *command], cwd=self.folder,
                                check=False, capture_output=True, text=True, timeout=120, **more)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said = result.stderr
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True, check=False)
        ranges, self.lanes, self.frames, self.problems = collections.defaultdict(list), {}, {}, {}
        for line in dump.stdout.splitlines():
            plain, found = words(line)
            if plain[0] == "scope":
                flags = set(found.get("flags", "").split(",")) - {""}
                ranges[plain[4]].append(Range(int(plain[1]), int(plain[2]), plain[3], plain[4], plain[5],
                                              found.get("scope"), json.loads(found.get("arguments", "{}")), flags))
            elif plain[0] == "lane":
                self.lanes[plain[1]] = found.get("text") or found.get("name")
            elif plain[0] == "frame":
                self.frames[plain[1]] = plain[2]
            elif plain[0] == "gap":
                self.problems["lost"] = int(found["lost"])
            elif plain[0] == "problem":
                self.problems[plain[1]] = int(found["count"])
        self.assertEqual(self.problems, problems or {}, dump.stdout[-2000:])
        return ranges

    def check_same_when_read_again(self):
        check = subprocess.run([PROGRAM, "check", "t.pasta"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(check.returncode, (0, 3), check.stdout + check.stderr)


@unittest.skipUnless(NVTX, "built without the headers of NVTX: run scripts/setup")
class Cpp(Nvtx):
    def test_all_forms(self):
        ranges = self.watch(NVTX, "all-forms", problems={"end_without_begin": 1})
        (outer,), (inner,) = ranges["outer"], ranges["inner \u00e9\u4e16\U0001f35d"]
        self.assertTrue(outer.start <= inner.start <= inner.end <= outer.end)
        self.assertEqual(self.frames[inner.scope], "outer")
        for name in ("mark", "wide mark"):
            (mark,) = ranges[name]
            self.assertEqual((mark.flags, mark.start, self.frames[mark.scope]), ({"instant"}, mark.end, "outer"))
        self.assertEqual([r.arguments for r in ranges["with attributes"]],
                         [{"category": 'load "quoted"', "payload": 2**64 - 1}, {"category": 4, "payload": -2**63},
                          {"payload": 0.1}, {"payload": 0.1}, {"payload": 4000000000}, {"payload": -7}])
        self.assertEqual(len(ranges[""]), 2)
        self.assertEqual(sum(map(len, ranges.values())), 12)
        self.check_same_when_read_again()

    def test_long_names_leave_room_for_short_ones(self):
        ranges = self.watch(NVTX, "long-names", problems={"not_kept": 1})
        self.assertEqual({name: len(found) for name, found in ranges.items()}, {"x" * 1000: 1, "short": 1, "": 1})

    def test_domains(self):
        ranges = self.watch(NVTX, "domains")
        first, second = ranges["registered"]
        two, = (r for r in ranges["wide registered"] if "instant" not in r.flags)
        self.assertEqual(first.arguments, {"domain": "one", "category": "in one"})
        self.assertEqual(second.arguments, first.arguments)
        self.assertEqual(two.arguments, {"domain": "two", "category": "in two"})
        # Its own pop has ended each, though they are not nested.
        self.assertTrue(first.start <= two.start <= first.end <= two.end <= second.start)

    def test_ranges_of_the_process(self):
        ranges = self.watch(NVTX, "across-threads", problems={"end_without_begin": 1})
        self.assertEqual(len(ranges["of the process"]), 300)
        (domain,) = ranges["in a domain"]
        self.assertEqual(domain.arguments, {"domain": "across", "payload": 5})
        for r in (*ranges["of the process"], domain, *ranges["x" * 2000]):
            self.assertEqual((r.flags, self.lanes[r.lane], r.scope), ({"annotation"}, "NVTX start-end ranges", None))
        self.assertEqual(sum(map(len, ranges.values())), 302)

    def test_names_of_threads(self):
        ranges = self.watch(NVTX, "names")
        self.assertEqual([self.lanes[ranges[n][0].lane] for n in ("of main", "before it has a name")],
                         ["the main one", "a worker"])

    def test_operators_of_pytorch(self):
        ranges = self.watch(NVTX, "operators")
        (mul,), (add,) = ranges["aten::mul"], ranges["aten::add"]
        self.assertEqual((mul.domain, mul.arguments), ("operator", {"Input Dims": [[2, 3], []]}))
        self.assertEqual((add.domain, self.frames[add.scope]), ("operator", "aten::mul"))

    def test_deeper_than_there_is_room(self):
        ranges = self.watch(NVTX, "deep", "200", problems={"lost": 72})
        self.assertEqual((len(ranges["deep"]), len(ranges["after"])), (128, 1))

    def test_many_threads(self):
        ranges = self.watch(NVTX, "many-threads", "8")
        self.assertEqual((len(ranges["started"]), len(ranges["pushed"])), (8000, 8000))

    def test_forks(self):
        ranges = self.watch(NVTX, "forks")
        self.assertEqual({n: len(r) for n, r in ranges.items()},
                         {"open at the fork": 2, "started before": 1, "of the child": 1})

    def test_killed(self):
        ranges = self.watch(NVTX, "killed", code=137, problems={"begin_without_end": 2})
        self.assertEqual({n: r[0].flags for n, r in ranges.items()},
                         {"pushed": {"unfinished"}, "started": {"unfinished", "annotation"}, "ended": {"annotation"}})

    def test_capture_ranges(self):
        for name, count in (("pushed", 1000), ("started", 1000)):
            ranges = self.watch(NVTX, "many-threads", "1", options=("--capture-range", name))
            self.assertEqual(len(ranges[name]), count)
            self.assertEqual(len(ranges["pushed"]), 1000)
        self.assertEqual(len(ranges["started"]), 1000)

    def test_not_watched(self):
        doctor = json.loads(subprocess.run([PROGRAM, "doctor", "--format", "json"], capture_output=True).stdout)
        (collector,) = (c["detail"] for c in doctor["checks"] if c["name"] == "annotations")
        for environment in ({}, {"NVTX_INJECTION64_PATH": collector}):
            self.assertEqual(subprocess.run([NVTX, "nothing"], env={**os.environ, **environment}).returncode, 0)
        self.watch(NVTX, "nothing", options=("--adapter", "annotations"))

    def test_another_tool_is_there(self):
        self.watch(NVTX, "nothing", env={**os.environ, "NVTX_INJECTION64_PATH": "/other/tool.so"})
        self.assertIn("NVTX_INJECTION64_PATH is set already, to /other/tool.so", self.said)


@unittest.skipUnless(NVTX, "built without the headers of NVTX: run scripts/setup")
@unittest.skipUnless(importlib.util.find_spec("nvtx") or (PACKAGES / "nvtx").is_dir(),
                     "the Python package nvtx is not installed: run scripts/setup")
class Python(Nvtx):
    SCRIPT = """
import threading
import nvtx

@nvtx.annotate("decorated", domain="library", category="work", payload=4)
def work():
    with nvtx.annotate("inside"):
        nvtx.mark("here")

for _ in range(3):
    work()
rng = nvtx.start_range("started", domain="library", payload=2.5)
thread = threading.Thread(target=lambda: nvtx.end_range(rng))
thread.start()
thread.join()
nvtx.push_range("pushed")
nvtx.pop_range()
"""

    def test_package(self):
        path = os.pathsep.join(filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH"))))
        ranges = self.watch(sys.executable, "-c", self.SCRIPT, env={**os.environ, "PYTHONPATH": path})
        self.assertEqual({n: len(r) for n, r in ranges.items()},
                         {"decorated": 3, "inside": 3, "here": 3, "started": 1, "pushed": 1})
        self.assertEqual(ranges["decorated"][0].arguments, {"domain": "library", "category": "work", "payload": 4})
        self.assertEqual(ranges["started"][0].arguments, {"domain": "library", "payload": 2.5})
        self.assertEqual(self.frames[ranges["inside"][0].scope], "decorated")
        self.assertIn("instant", ranges["here"][0].flags)


@unittest.skipUnless(XLA, "built without the headers of NVTX: run scripts/setup")
class Xla(Nvtx):
    """What XLA says of where its operations were made, in a program of Python that calls what it has compiled."""
    SCRIPT = """
import ctypes, os
xla = ctypes.CDLL(os.environ["PASTA_NVTX_XLA"])
LOCATIONS = b"\\n- FOLDER/program.py:9:4[loss]\\n-- FOLDER/model.py:12:8[forward] dot_general\\n-- FOLDER/model.py:13[forward] tanh\\n"
def call():
    xla.begin_module(b"XlaModule:#prefix=jit(loss),hlo_module=jit_loss,program_id=12#", b"\\nFOLDER/program.py:90:1[&lt;module&gt;]\\n")
    xla.begin_thunk(b"Thunk:#name=jvp(layer)/dot_general,hlo_op=fusion.3,unique_hlo_op_id=85#", LOCATIONS)
    launch()
    xla.end()
    xla.begin_thunk(b"Thunk:#hlo_op=copy.1,unique_hlo_op_id=86#", b"\\n")
    launch()
    xla.end()
    xla.end()
    xla.begin_module(b"XlaModule:#hlo_module=jit_other,program_id=13#", None)
    xla.begin_thunk(b"Thunk:#hlo_op=copy.2,unique_hlo_op_id=87#", None)
    launch()
    xla.end()
    xla.end()
    launch()
"""

    def path(self, frame):
        parent, name, domain = self.trees[frame]
        return [*(self.path(parent) if parent else []), (domain, name)]

    def watch_xla(self, *options, problems=None):
        """Ranges, the paths of what is launched, and the line that does."""
        opencl, launch, finish = "", "pass", "pass"
        if platforms() > 0:
            opencl = OPENCL[:OPENCL.index("def write")]
            launch = "fill_buffer(queue, buffer, ctypes.byref(zero), 4, 0, 4096, 0, None, None)"
            finish = "finish(queue)"
        before = f"{opencl}def launch():\n"
        script = f"{before}    {launch}\n{self.SCRIPT.replace('FOLDER', str(self.folder))}call()\n{finish}\n"
        (self.folder / "program.py").write_text(script)
        ranges = self.watch(sys.executable, "program.py", options=options, problems=problems)
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True).stdout
        self.trees = {number: (parent, name, domain) for number, parent, name, domain in
                      re.findall(r'^frame (F\d+)(?: in=(F\d+))? "([^"]*)" (\w+)', dump, re.M)}
        works = [self.path(frame) for frame in re.findall(r"^fill .* scope=(F\d+)", dump, re.M)]
        return ranges, works, 1 + before.count("\n")

    def test_operators_modules_and_lines(self):
        ranges, works, line = self.watch_xla()
        module = [("python", "program.py(90): <module>"), ("module", "jit_loss")]
        (operator,) = ranges["jvp(layer)/dot_general"]
        self.assertEqual(self.path(operator.scope), [*module, ("python", "model.py(12, 13): forward")])
        self.assertEqual((operator.domain, operator.arguments), ("operator", {"hlo_op": "fusion.3", "domain": "TSL"}))
        self.assertEqual([self.path(ranges[name][0].scope) for name in ("copy.1", "copy.2")], [module, [("module", "jit_other")]])
        if platforms() == 0:
            self.skipTest("no OpenCL here")
        # Where it was not said it is the line that calls.
        here = ("python", f"program.py({line}): launch")
        self.assertEqual(works, [[*module, ("python", "model.py(12, 13): forward"), ("operator", "jvp(layer)/dot_general")],
                                 [*module, ("operator", "copy.1")],
                                 [("module", "jit_other"), ("operator", "copy.2"), here], [here]])
        report = subprocess.run([PROGRAM, "report", "t.pasta", "--tool", "layers"], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        self.assertRegex(report, r"(?m)^  jit_loss +0 +1 ")

    def test_modules_that_come_again_are_no_iterations(self):
        self.SCRIPT += f"""
import sys
sys.path.insert(0, {str(SOURCE / "tests" / "python")!r})
from device_collector import iterations
with open("iterations", "w") as file:
    for _ in range(3):
        print(iterations(), file=file)
        call()
"""
        self.watch_xla()
        self.assertEqual((self.folder / "iterations").read_text().split(), ["0"] * 3)

    def test_a_place_without_room_is_counted(self):
        before, after = self.SCRIPT.split("def call()")
        self.SCRIPT = f"{before}LOCATIONS = LOCATIONS.replace(b'forward', b'f' * (5 << 20))\ndef call(){after}"
        ranges, *_ = self.watch_xla(problems={"not_kept": 1})
        self.assertEqual(self.path(ranges["jvp(layer)/dot_general"][0].scope)[1:], [("module", "jit_loss")])

    def test_off(self):
        ranges, *_ = self.watch_xla("--python", "off")
        self.assertEqual(self.path(ranges["jvp(layer)/dot_general"][0].scope), [("module", "jit_loss")])


if __name__ == "__main__":
    unittest.main()
