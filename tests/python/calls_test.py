#!/usr/bin/env python3
"""Lines of Python that call OpenCL, in every Python that is here, on whatever device there is."""
import ctypes
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import unittest

from frames_test import pythons

PROGRAM = os.environ["PASTAPROF"]

# Each line that enqueues something, or waits, says so: "name: how often".
SCRIPT = """\
import ctypes, sys, threading
cl = ctypes.CDLL("libOpenCL.so.1")
handle, size, number, pointer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_void_p
def function(name, result, *arguments):
    made = getattr(cl, name)
    made.restype, made.argtypes = result, arguments
    return made
get_platforms = function("clGetPlatformIDs", number, number, pointer, pointer)
get_devices = function("clGetDeviceIDs", number, handle, ctypes.c_uint64, number, pointer, pointer)
create_context = function("clCreateContext", handle, pointer, number, pointer, pointer, pointer, pointer)
create_queue = function("clCreateCommandQueue", handle, handle, handle, ctypes.c_uint64, pointer)
create_buffer = function("clCreateBuffer", handle, handle, ctypes.c_uint64, size, pointer, pointer)
write_buffer = function("clEnqueueWriteBuffer", number, handle, handle, number, size, size, pointer, number, pointer, pointer)
fill_buffer = function("clEnqueueFillBuffer", number, handle, handle, pointer, size, size, size, number, pointer, pointer)
finish = function("clFinish", number, handle)
platform, device = handle(), handle()
get_platforms(1, ctypes.byref(platform), None)
get_devices(platform, 0xFFFFFFFF, 1, ctypes.byref(device), None)
context = create_context(None, 1, ctypes.byref(device), None, None, None)
queue = create_queue(context, device, 0, None)
buffer = create_buffer(context, 1, 4096, None, None)
host, zero = (ctypes.c_char * 4096)(), ctypes.c_int(0)
def write():
    write_buffer(queue, buffer, 0, 0, 4096, host, 0, None, None)  # write: 3
class Layer:
    @property
    def weights(self):
        return fill_buffer(queue, buffer, ctypes.byref(zero), 4, 0, 4096, 0, None, None)  # weights: 1
def generator():
    for i in range(2):
        yield fill_buffer(queue, buffer, ctypes.byref(zero), 4, 0, 4096, 0, None, None)  # generator: 2
write()
Layer().weights
list(generator())
thread = threading.Thread(target=lambda: [write(), write()])
thread.start()
thread.join()
fill_buffer(queue, buffer, ctypes.byref(zero), 4, 0, 4096, 0, None, None); finish(queue)  # <module>: 2
print("done")
"""


def platforms():
    try:
        count = ctypes.c_uint()
        ctypes.CDLL("libOpenCL.so.1").clGetPlatformIDs(0, None, ctypes.byref(count))
        return count.value
    except OSError:
        return 0


@unittest.skipIf(platforms() == 0, "no OpenCL here")
class Calls(unittest.TestCase):
    def watched(self, folder, python, *options, script=SCRIPT):
        (folder / "program.py").write_text(script)
        run = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", python, "program.py"], cwd=folder,
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "done\n"), run.stderr)
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=folder, capture_output=True, text=True, check=True).stdout
        frames = {"": ()}
        for number, parent, name, domain in re.findall(r'^frame (F\d+)(?: in=(F\d+))? "([^"]*)" (\w+)', dump, re.M):
            frames[number] = (*frames[parent], *([name] if domain == "python" else []))
        work = re.findall(r'^(?:copy|fill) .*|^sync .*clFinish.*', dump, re.M)
        return dump, [frames["".join(re.findall(r" scope=(F\d+)", line))] for line in work]

    def test_lines(self):
        expected = {}
        for number, line in enumerate(SCRIPT.splitlines(), 1):
            if said := re.search(r"# (\S+): (\d+)$", line):
                expected[f"program.py({number}): {said[1]}",] = int(said[2])
        for version, (python, *_) in pythons().items():
            with self.subTest(version), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                dump, found = self.watched(folder, python)
                self.assertEqual({path: found.count(path) for path in found}, expected)
                self.assertIn(f' python" "{version[0]}.{version[1]}.', dump)
                self.assertNotIn("problem not_recorded", dump)

    def test_stacks_and_none(self):
        python = next(iter(pythons().values()))[0]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            _, found = self.watched(folder, python, "--python", "stacks")
            names = [[re.sub(r"\(\d+\)", "", place) for place in path] for path in found]
            self.assertIn(["program.py: <module>", "program.py: weights"], names)
            self.assertTrue(any(path[0].startswith("threading.py") and path[-1] == "program.py: write" for path in names), names)
            for options in (("--python", "off"), ("--adapter", "opencl")):
                dump, found = self.watched(folder, python, *options)
                self.assertEqual(found, [()] * 8)
                self.assertNotIn(' python" "', dump)

    def test_reports(self):
        python = next(iter(pythons().values()))[0]
        kernel = textwrap.dedent("""\
            create_program = function("clCreateProgramWithSource", handle, handle, number, pointer, pointer, pointer)
            build = function("clBuildProgram", number, handle, number, pointer, pointer, pointer, pointer)
            create_kernel = function("clCreateKernel", handle, handle, ctypes.c_char_p, pointer)
            enqueue = function("clEnqueueNDRangeKernel", number, handle, handle, number, pointer, pointer, pointer, number,
                               pointer, pointer)
            source = ctypes.c_char_p(b"kernel void nothing() {}")
            program = create_program(context, 1, ctypes.byref(source), None, None)
            build(program, 0, None, None, None, None)
            nothing = create_kernel(program, b"nothing", None)
            def run():
                enqueue(queue, nothing, 1, None, ctypes.byref(size(64)), None, 0, None, None)  # run
            run()
            run()
            finish(queue)
            """)
        script = SCRIPT + kernel
        run = f"program.py({1 + script[:script.index('# run')].count(chr(10))}): run"
        with tempfile.TemporaryDirectory() as folder:
            self.watched(pathlib.Path(folder), python, script=script)
            report = [subprocess.run([PROGRAM, "report", "t.pasta", "--tool", *words], cwd=folder, capture_output=True,
                                     text=True, check=True).stdout
                      for words in (("kernels", "--opt", "group=line"), ("layers", "--opt", "scopes=python"))]
            self.assertRegex(report[0], rf"(?m)^  {re.escape(run)} +2 ")
            rows = re.findall(r"(?m)^  (program\.py\(\d+\): \S+) +0 +(\d+) .*?(\d+) +\S+ +-$", report[1])
            self.assertEqual([(name, calls, kernels) for name, calls, kernels in rows if name == run], [(run, "2", "2")])
            self.assertEqual(sum(int(calls) for name, calls, _ in rows), 11)


if __name__ == "__main__":
    unittest.main()
