#!/usr/bin/env python3
"""Places in Python, in every Python that is here: of a package that is in PyTorch's place, as far as the
collector looks at it, the operators are seen where the program calls them."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = os.environ["PASTAPROF"]

# Loading torch/_C is what the collector waits for; that it is no module of that name does not matter.
PACKAGE = {
    "__init__.py": """
        from types import SimpleNamespace
        __version__, version = "2.99.0", SimpleNamespace(git_version="")
        class Tensor: pass
        class dtype: pass
        int64 = float64 = bool = complex128 = dtype()
        class layout: pass
        class memory_format: pass
        try:
            from torch import _C
        except ImportError:
            _C = SimpleNamespace(_autograd=None, _GLIBCXX_USE_CXX11_ABI=True, DisableTorchFunction=None)
        from torch import autograd, nn
        from torch.utils._python_dispatch import call
        """,
    "autograd/__init__.py": """
        from torch.autograd import profiler
        def backward(): pass
        def grad(): pass
        """,
    "autograd/profiler.py": """
        class record_function:
            def __init__(self, name): self.name = name
            def __enter__(self): return self
            def __exit__(self, *about): pass
        """,
    "nn/__init__.py": "from torch.nn.modules.module import Module, Parameter\n",
    "nn/modules/module.py": """
        class Module:
            def __call__(self): pass
        class Parameter: pass
        """,
    "utils/_python_dispatch.py": """
        import threading
        from types import SimpleNamespace
        modes = threading.local()
        class TorchDispatchMode:
            def __enter__(self): modes.inner = self
            def __exit__(self, *about): modes.inner = None
        def _get_current_dispatch_mode():
            return getattr(modes, "inner", None)
        class Operator:
            def __init__(self, name): self._schema = SimpleNamespace(name=name, arguments=[])
            def __call__(self): pass
        def call(name):
            mode, operator = _get_current_dispatch_mode(), Operator(name)
            return mode.__torch_dispatch__(operator, ()) if mode else operator()
        """,
    "../triton/runtime/jit.py": """
        class JITFunction:
            def __init__(self, fn): self.fn = fn
            def run(self, *args, warmup): return args
        """,
    "_inductor/utils.py": """
        def aggregate_origins(nodes): return nodes
        """,
    "_inductor/codegen/triton.py": """
        def get_path(name, ending):
            return None, None, name + "." + ending
        class TritonScheduling:
            def define_kernel(self, source, nodes, kernel):
                get_path(source, "py")
                return kernel
        """,
    "_inductor/runtime/triton_heuristics.py": """
        class CachingAutotuner:
            def __init__(self, fn): self.fn = fn
            def run(self, *args, stream): return args
        """,
    # What PyTorch's compiler writes, and what it says while it does.
    "../compiled.py": """
        from types import SimpleNamespace
        from torch._inductor.codegen.triton import TritonScheduling
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner

        def made(name, *stacks):
            TritonScheduling().define_kernel(name, [SimpleNamespace(meta={"stack_trace": s}) for s in stacks], name)
            names = {}
            exec(compile(f"def {name}(): pass", name + ".py", "exec"), names)
            return CachingAutotuner(names[name])

        USER = 'File "program.py", line {}, in sort\\n  call()\\n'
        LIBRARY = 'File "/x/site-packages/x.py", line 2, in x\\n'
        one = made("one", USER.format(26) + LIBRARY, USER.format(25), None)
        unknown = made("unknown", None)

        def call():
            # Topologically Sorted Source Nodes: [x], Original ATen: [aten.gelu, prims.mul]
            one.run(stream=0)
            unknown.run(stream=0)
        """}

SCRIPT = """\
import asyncio, atexit, threading
import torch
from torch import call

def generator():
    yield call("generator")

class Class:
    def __call__(self):
        return [call("comprehension")
                for _ in range(1)]
    @property
    def a(self):
        call(
            "several lines")

async def coroutine():
    await asyncio.sleep(0)
    call("coroutine")

def deep(n):
    return deep(n - 1) if n else call("deep")

def sort(x):
    call("key")
    return x

list(generator())
Class()()
Class().a
asyncio.run(coroutine())
deep(100)
(lambda: call("lambda"))()
exec("call('in a string')")
sorted([1], key=sort)
with torch.autograd.profiler.record_function("range"):
    call("in a range")
thread = threading.Thread(target=lambda: call("thread"))
thread.start()
thread.join()
from triton.runtime.jit import JITFunction
def kernel():
    pass
launch = JITFunction(JITFunction(kernel))
launch.run(warmup=True)
if launch.run(1, 2, warmup=False) != (1, 2):
    raise SystemExit("not what it returns")
import compiled
compiled.call()
def größe():
    call("letters")
größe()
for i in range(300):
    exec(compile(f"def f(): call('made')\\nf()", f"made_函{i % 3}.py", "exec"))
"""
FOUND = {
    "generator": "program.py(6): generator", "comprehension": r"program.py(10): (__call__|<listcomp>)",
    "several lines": "program.py(14): a", "coroutine": "program.py(19): coroutine", "deep": "program.py(22): deep",
    "lambda": "program.py(33): <lambda>", "in a string": "<string>(1): <module>", "key": "program.py(25): sort",
    "in a range": "program.py(37): <module>", "thread": "program.py(38): <lambda>",
    "triton::kernel": "program.py(46): <module>", "letters": "program.py(51): größe",
    "triton::one": "program.py(25, 26): sort", "triton::unknown": "program.py(49): <module>"}


SAY = """import sys, sysconfig
print(*sys.version_info[:2], sysconfig.get_config_var('DESTSHARED'), sysconfig.get_config_var('EXT_SUFFIX'))"""


def pythons():
    """One of each version, the one that runs this first: (program, some library of its, ending of libraries)."""
    found = {}
    more = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    for python in filter(os.path.exists, [sys.executable, "/usr/bin/python3", *more]):
        said = subprocess.run([python, "-c", SAY], capture_output=True, text=True, check=False).stdout.split()
        libraries = sorted(glob.glob(said[2] + "/*.so")) if len(said) == 4 else []
        if libraries and (int(said[0]), int(said[1])) >= (3, 9):
            found.setdefault((int(said[0]), int(said[1])), (python, libraries[0], said[3]))
    return found


class Frames(unittest.TestCase):
    def test_places(self):
        for version, (python, library, ending) in pythons().items():
            with self.subTest(version), tempfile.TemporaryDirectory() as folder:
                self.places(pathlib.Path(folder), python, library, ending)

    def places(self, folder, python, library, ending):
        for name, text in PACKAGE.items():
            file = folder / "site-packages/torch" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        shutil.copy(library, folder / f"site-packages/torch/_C{ending}")
        (folder / "program.py").write_text(SCRIPT, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(folder / "site-packages"), "PATH": str(folder), "CXX": "",
                       "PASTA_CACHE": str(folder / "cache")}
        for mode in ("lines", "stacks"):
            run = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", "--python", mode, "--", python, "program.py"],
                                 cwd=folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=folder, capture_output=True, encoding="utf-8", check=True).stdout
            self.assertIn("operators by a dispatch mode", dump)
            self.assertNotIn("places in Python with its lock", dump)
            frames = {number: (around, name) for number, around, name in
                      re.findall(r'^frame (\S+)(?: in=(\S+))? "([^"]*)"', dump, re.M)}
            self.assertRegex(dump, r'"triton::kernel" operator .*\\"file\\":\\"program.py\\",\\"line\\":42')
            self.assertRegex(dump, r'"triton::one" operator .*\\"operators\\":\[\\"aten::gelu\\",\\"prims::mul\\"\]')
            self.assertNotRegex(dump, r'"triton::unknown" operator .*operators')
            found = {}
            for name, around in re.findall(r'^scope \S+ \S+ \S+ "([^"]*)" operator.*? scope=(\S+)', dump, re.M):
                if mode == "stacks" and name not in ("triton::kernel", "triton::one"):
                    self.assertRegex(frames[around][1], "_python_dispatch.py|compiled.py")
                    around = frames[around][0]
                found.setdefault(name, []).append(frames[around][1])
            self.assertEqual(sorted(found.pop("made")), [f"made_函{i}.py(1): f" for i in range(3) for _ in range(100)])
            self.assertEqual(set(found), set(FOUND))
            self.assertEqual(len(found["triton::kernel"]), 1)
            for name, place in FOUND.items():
                self.assertRegex(found[name][0], "^" + place.replace("(", r"\(", 1).replace("):", r"\):", 1) + "$")


if __name__ == "__main__":
    unittest.main()
