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
    "_inductor/ir.py": """
        def get_kernel_metadata(nodes, wrapper):
            return "# Source Nodes: [x], Original ATen: [aten.gelu, prims.mul]", ""
        """,
    "_inductor/codecache.py": """
        class PyCodeCache:
            @classmethod
            def load_by_key_path(cls, key, path):
                names = {}
                exec(compile(open(path).read(), path, "exec"), names)
                return names
        """,
    "_inductor/runtime/triton_heuristics.py": """
        class CachingAutotuner:
            def __init__(self, fn): self.fn = fn
            def run(self, *args, stream): return args
        """,
    # What PyTorch's compiler knows of nodes, and what it writes.
    "../compiled.py": """
        import os, tempfile
        from types import SimpleNamespace
        from torch._inductor import codecache, ir

        USER = 'File "program.py", line {}, in sort\\n  call()\\n'
        LIBRARY = 'File "/x/site-packages/x.py", line 2, in x\\n'

        def node(stack, *modules, key="nn_module_stack"):
            return SimpleNamespace(meta={"stack_trace": stack, key: {name: (name, "Class") for name in modules}})

        norm = node(USER.format(26) + LIBRARY, "L['self'].layers[0]", "L['self'].layers.0.norm")
        up = node(USER.format(25), "L['self']._modules['layers']._modules['0']", "L['self'].layers[0].up",
                  key="fwd_nn_module_stack")
        made = SimpleNamespace(meta={})
        said = [ir.get_kernel_metadata(nodes, None)[0] for nodes in ([norm, made], [norm, up], [made], [node(USER.format(30))])]
        TEXT = '''
        from types import SimpleNamespace
        from torch import call as operator
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        def one(): pass
        def unknown(): pass
        one, unknown, cached = (CachingAutotuner(function) for function in (one, unknown, SimpleNamespace(fn=None, __name__="cached")))
        def call():
            {}
            one.run(stream=0)
            {}
            operator("left to PyTorch")
            {}
            unknown.run(stream=0)
            {}
            operator("of the model")
            cached.run(stream=0)
        '''.replace("\\n        ", "\\n")
        with tempfile.TemporaryDirectory(suffix="torchinductor_") as folder:
            path = os.path.join(folder, "torchinductor_compiled.py")
            with open(path, "w") as file:
                file.write(TEXT.format(*said))
            call = codecache.PyCodeCache.load_by_key_path("key", path)["call"]
            import linecache
            linecache.getlines(path)
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
    "triton::one": "program.py(26): sort", "triton::unknown": "program.py(49): <module>",
    "left to PyTorch": "program.py(25, 26): sort", "of the model": "program.py(30): sort",
    "triton::cached": "program.py(30): sort"}
MODULES = {"triton::one": ["layers.0", "layers.0.norm"], "left to PyTorch": ["layers.0"]}


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
            frames, modules = {}, {"": []}
            for number, around, name, domain in re.findall(r'^frame (\S+)(?: in=(\S+))? "([^"]*)" (\w+)', dump, re.M):
                frames[number] = around, name
                modules[number] = modules[around] + ([name] if domain == "module" else [])
            self.assertRegex(dump, r'"triton::kernel" operator .*\\"file\\":\\"program.py\\",\\"line\\":42')
            self.assertRegex(dump, r'"triton::one" operator .*\\"operators\\":\[\\"aten::gelu\\",\\"prims::mul\\"\]')
            self.assertNotRegex(dump, r'(?m)^scope .*" module')
            found = {}
            for name, around in re.findall(r'^scope \S+ \S+ \S+ "([^"]*)" operator.*? scope=(\S+)', dump, re.M):
                self.assertEqual(modules[around], MODULES.get(name, []), name)
                if mode == "stacks" and name not in ("triton::kernel", "triton::one", "triton::cached", "left to PyTorch", "of the model"):
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
