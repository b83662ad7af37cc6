#!/usr/bin/env python3
"""The Python package: what a program says by it is in the trace, and is nothing when nobody watches."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = os.environ["PASTAPROF"]
ROOT = pathlib.Path(os.environ["PASTA_SOURCE_DIR"])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

HEAD = "import pastaprof as pasta\n"


class Annotations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def python(self, script, *before, code=0):
        (self.folder / "program.py").write_text(HEAD + textwrap.dedent(script))
        result = subprocess.run([*before, sys.executable, "program.py"], cwd=self.folder, env=ENVIRONMENT,
                                capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def watch(self, script, code=0, whole=True):
        """The names of what is in the trace, in order of their ends, each with the path around it."""
        self.output = self.python(script, PROGRAM, "run", "-f", "-o", "t.pasta", "--", code=code)
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.dump = dump.stdout
        if whole:
            self.assertNotRegex(dump.stdout, r"(?m)^(problem|gap)\b")
        frames = {}
        for number, parent, name in re.findall(r'^frame (\S+)(?: in=(\S+))? "([^"]*)"', dump.stdout, re.M):
            frames[number] = f"{frames[parent]}/{name}" if parent else name
        found = []
        for name, rest in re.findall(r'^scope \S+ \S+ \S+ "([^"]*)" (.*)$', dump.stdout, re.M):
            around = re.search(r"\bscope=(\S+)", rest)
            found.append(f"{frames[around.group(1)]}/{name}" if around else name)
        return found

    def same(self, script, found):
        """In the trace is what was `found`, and the program gives the same without us."""
        self.assertEqual(self.watch(script), found)
        self.assertEqual(self.python(script), self.output)

    def test_names_can_be_hidden(self):
        """The same name the same hash; nothing of it is left, with or without numbers."""
        self.python("""
            with pasta.annotate("canary of a patient"), pasta.annotate("canary#4711"), pasta.annotate("other"):
                pasta.mark("canary of a patient")
            pasta.tag(4096, 64, "canary of a tensor")
        """, PROGRAM, "run", "-f", "-o", "t.pasta", "--no-value-capture", "--")
        self.assertNotIn(b"canary", (self.folder / "t.pasta").read_bytes())
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertNotIn("canary", dump.stdout)
        self.assertNotIn("4711", dump.stdout)
        names = re.findall(r'^scope \S+ \S+ \S+ "(hidden-[0-9a-f]{16}(?:#0)?)"', dump.stdout, re.M)
        self.assertEqual(len(names), 5)
        self.assertEqual(len(set(names)), 4)
        self.assertEqual(sum(name.endswith("#0") for name in names), 1)
        self.assertIn('{\\"address\\":4096,\\"bytes\\":64}', dump.stdout)

    def test_contexts_and_functions(self):
        self.same("""
            twice = pasta.annotate("twice")
            with pasta.annotate("outer"):
                with twice, twice:
                    pasta.mark("here")
            @pasta.annotate("f")
            def f(a, *, b):
                "A page."
                return a + b
            print(f(1, b=2), f.__name__, f.__doc__)
            try:
                with pasta.annotate("fails"):
                    f()
            except TypeError:
                print("as ever")
            with pasta.annotate("\\u00e9" * 3), pasta.annotate(7):
                pass
            """, ["outer/twice/twice/here", "outer/twice/twice", "outer/twice", "outer", "f", "fails/f", "fails",
                  "\u00e9" * 3 + "/7", "\u00e9" * 3])

    def test_generators_run_in_stretches(self):
        self.same("""
            @pasta.annotate("g")
            def g():
                try:
                    got = yield 1
                    print("got", got)
                    try:
                        yield 2
                    except ValueError as error:
                        print("thrown", error)
                    yield 3
                    return "end"
                finally:
                    pasta.mark("closed")
            def around():
                print((yield from g()))
            it = around()
            print(next(it))
            pasta.mark("between")
            print(it.send("x"))
            print(it.throw(ValueError("y")))
            print(list(it))
            cut = g()
            next(cut)
            cut.close()
            """, ["g", "between", "g", "g", "g/closed", "g", "g", "closed"])

    def test_async_functions_run_in_stretches(self):
        self.same("""
            import asyncio
            @pasta.annotate("child")
            async def child(name):
                pasta.mark(name + " begins")
                await asyncio.sleep(0)
                pasta.mark(name + " ends")
                return name
            @pasta.annotate("numbers")
            async def numbers():
                yield 1
                await asyncio.sleep(0)
                yield 2
            @pasta.annotate("fails")
            async def fails():
                await asyncio.sleep(0)
                raise ValueError("as ever")
            async def main():
                print(await asyncio.gather(child("a"), child("b")))
                print([n async for n in numbers()])
                try:
                    await fails()
                except ValueError as error:
                    print(error)
                waits = asyncio.ensure_future(child("c"))
                await asyncio.sleep(0)
                waits.cancel()
                try:
                    await waits
                except asyncio.CancelledError:
                    print("cancelled")
            asyncio.run(main())
            """, ["child/a begins", "child", "child/b begins", "child", "child/a ends", "child", "child/b ends", "child",
                  "numbers", "numbers", "numbers", "numbers", "fails", "fails", "child/c begins", "child", "child"])

    def test_steps_starts_and_stops(self):
        self.same("""
            for _ in range(4):
                pasta.step()
            pasta.stop()
            with pasta.annotate("not kept"):
                pasta.mark("not kept")
                pasta.start()
            pasta.mark("kept")
            """, ["step#0", "step#1", "step#2", "kept"])

    def test_tags(self):
        script = """
            import array
            class Array:  # as NumPy's, CuPy's and Numba's are
                def __init__(self, shape, strides=None):
                    self.__array_interface__ = {"data": (4096, False), "shape": shape, "strides": strides, "typestr": "<f4"}
            class Tensor:  # as PyTorch's
                shape = (2, 3)
                def data_ptr(self): return 8192
                def element_size(self): return 2
                def stride(self): return (10, 1)
                @property
                def __array_interface__(self): raise RuntimeError("needs a gradient")
            pasta.tag(64, 32, "plain")
            pasta.tag(Array((5, 6)), name="whole")
            pasta.tag(Array((5, 6), (100, 4)), name="with gaps")
            pasta.tag(Array((5,), (-8,)), name="backwards")
            pasta.tag(Array((0, 6)), name="empty")
            pasta.tag(Tensor(), "tensor")
            """
        self.same(script, ["plain", "whole", "with gaps", "backwards", "empty", "tensor"])
        found = re.findall(r'"([^"]*)" annotation arguments="\{\\"address\\":(\d+),\\"bytes\\":(\d+)\}"', self.dump)
        self.assertEqual(found, [("plain", "64", "32"), ("whole", "4096", "120"), ("with gaps", "4096", "424"),
                                 ("backwards", "4064", "36"), ("empty", "4096", "0"), ("tensor", "8192", "26")])
        for wrong in ("pasta.tag(64)", "pasta.tag(64, 'x')", "pasta.tag('x', 3)"):
            self.watch(f"try: {wrong}\nexcept TypeError as e: print(e)")
            self.assertIn("tag: ", self.output)

    def test_threads(self):
        found = self.watch("""
            import threading
            def work():
                for _ in range(100):
                    with pasta.annotate("range"):
                        pasta.mark("mark")
            threads = [threading.Thread(target=work) for _ in range(8)]
            for t in threads: t.start()
            for t in threads: t.join()
            """)
        self.assertEqual((found.count("range"), found.count("range/mark"), len(found)), (800, 800, 1600))

    def test_processes(self):
        for method in ("fork", "spawn"):
            found = self.watch(f"""
                import multiprocessing as m
                @pasta.annotate("task")
                def f(x): return x * x
                if __name__ == "__main__":
                    with pasta.annotate("parent"):
                        p = m.get_context("{method}").Pool(2)
                        print(sum(p.map(f, range(10))))
                        p.close()
                        p.join()
                """, whole=False)
            self.assertEqual(self.output, "285\n")
            self.assertEqual(sum(name.rpartition("/")[2] == "task" for name in found), 10, found)
            self.assertIn("parent", found)

    def test_at_exit(self):
        self.same("""
            import atexit
            atexit.register(pasta.mark, "at exit")
            class Last:
                def __del__(self, mark=pasta.mark): mark("at the very end")
            last = Last()
            """, ["at exit", "at the very end"])

    def test_watched(self):
        self.assertEqual(self.python("print(pasta.watched())"), "False\n")
        self.watch("print(pasta.watched())")
        self.assertEqual(self.output, "True\n")

    def test_importing_costs_nothing_when_not_watched(self):
        result = subprocess.run([sys.executable, "-S", "-c", "import sys, os; a = set(sys.modules); import pastaprof; "
                                 "print(*sorted(set(sys.modules) - a))"], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(result.stdout.split(), ["pastaprof", "pastaprof._unwatched"])

    def test_a_collector_that_is_not_there(self):
        # What a process inherits whose LD_PRELOAD was dropped, or whose run is over.
        environment = {**ENVIRONMENT, "PASTA_RUN_FOLDER": "/nowhere"}
        result = subprocess.run([sys.executable, "-c", HEAD + "print(pasta.watched())\nwith pasta.annotate('x'): pass"],
                                env=environment, capture_output=True, text=True)
        self.assertEqual((result.stdout, result.stderr), ("False\n", ""))

    def test_the_examples_of_the_page(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "run.md").read_text(), re.M | re.S)
        self.assertTrue(blocks)
        for block in blocks:
            self.assertTrue(self.watch("weights = bytearray(64)\nweights = type('W', (), {'__array_interface__': {"
                                       "'data': (64, False), 'shape': (4,), 'typestr': '<f4'}})()\n" + block))
            self.python("weights = None\n" + block)

    def test_its_version_is_the_programs(self):
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout
        version = re.search(r'^version = "(.*)"', (ROOT / "python" / "pyproject.toml").read_text(), re.M).group(1)
        self.assertIn(version, said)


if __name__ == "__main__":
    unittest.main()
