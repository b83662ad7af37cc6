#!/usr/bin/env python3
"""PyTorch, watched without a change to the program: operators, links, modules and lines are those that
PyTorch's own profiler and a look at the program give. Skipped where there is no PyTorch."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from ctypes.util import find_library

PROGRAM = os.environ["PASTAPROF"]
HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE / "model.py"


def find_python():
    """The interpreter that has PyTorch: this one, or the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if python and os.path.exists(python) and subprocess.run(
                [python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return python
    return None


PYTHON = find_python()


def line_of(mark):
    """The number of the line of model.py that is marked so."""
    lines = MODEL.read_text(encoding="utf-8").splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"# line: {mark}"))


class Trace:
    """What `pastaprof dump` says of scopes, in order of their beginnings."""

    def __init__(self, text):
        self.facts = dict(re.findall(r'^fact "(?:process \d+ )?([^"]*)" "([^"]*)"', text, re.M))
        frames = {}
        self.scopes = []
        for line in text.splitlines():
            words = re.match(r'(frame|scope) (.*)', line)
            if not words:
                continue
            if words[1] == "frame":
                number, parent, name, domain = re.match(r'(\S+)(?: in=(\S+))? "([^"]*)"(?: (\w+))?', words[2]).groups()
                frames[number] = (*(frames[parent] if parent else ()), (domain or "unknown", name))
                continue
            start, end, lane, name, rest = re.match(r'(\S+) (\S+) (\S+) "([^"]*)"(.*)', words[2]).groups()
            around = re.search(r' scope=(\S+)', rest)
            said = re.search(r' arguments=("(?:[^"\\]|\\.)*")', rest)
            domain = re.match(r' (unknown|operator|module|python|annotation|iteration|runtime)\b', rest)
            number = {key: int(value) for key, value in re.findall(r' (sequence|forward_thread)=(\d+)', rest)}
            self.scopes.append({
                "start": int(start), "end": int(end), "lane": lane, "name": name,
                "domain": domain[1] if domain else "unknown",
                "path": frames[around[1]] if around else (),
                "said": json.loads(json.loads(said[1])) if said else {},
                "sequence": number.get("sequence", -1), "forward": number.get("forward_thread", 0)})
        # What begins together was told the inner first.
        self.scopes.reverse()
        self.scopes.sort(key=lambda scope: (scope["start"], -scope["end"]))

    def inside(self, name):
        """All on the thread of a range that lies in it, and the range itself."""
        window = next(scope for scope in self.scopes if scope["name"] == name)
        return [scope for scope in self.scopes if scope["lane"] == window["lane"] and
                window["start"] <= scope["start"] and scope["end"] <= window["end"]]


@unittest.skipIf(PYTHON is None, "there is no PyTorch")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = {**os.environ, "PASTA_CACHE": str(cls.folder / "cache")}
        cls.traces = {}

    def watch(self, *words, options=(), code=0, environment={}, timeout=600, problems=None):
        shutil.copy(MODEL, self.folder)
        result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", PYTHON, *words],
                                cwd=self.folder, env={**self.environment, **environment}, capture_output=True, text=True,
                                timeout=timeout, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        self.output = result.stdout
        dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(dump.returncode, 3 if problems else 0)
        for problem in re.findall(r"(?m)^(?:problem|gap)\b.*", dump.stdout):
            self.assertRegex(problem, problems or "no problem")
        return Trace(dump.stdout)

    def program(self, text, **more):
        (self.folder / "program.py").write_text(textwrap.dedent(text))
        return self.watch("program.py", **more)

    def model(self, name):
        if name not in self.traces:
            trace = self.watch("model.py", name, "records.json")
            self.traces[name] = trace, json.loads((self.folder / "records.json").read_text())
        return self.traces[name]

    def without_compiler(self):
        return {"PATH": str(self.folder / "nothing"), "CXX": "", "PASTA_CACHE": str(self.folder / "empty")}

    def needs_operators(self, trace):
        if "no operators" in trace.facts.get("torch", ""):
            self.skipTest(trace.facts["torch"])

    def test_operators_are_those_of_the_profiler(self):
        """While both watch: names, shapes and links, in order."""
        for name in ("bert", "convolutional", "recurrent"):
            with self.subTest(name):
                trace, records = self.model(name)
                self.needs_operators(trace)
                ours = [(scope["name"], scope["said"].get("Input Dims", []), scope["sequence"], scope["forward"])
                        for scope in trace.inside("window") if scope["domain"] in ("operator", "annotation")]
                begin = next(i for i, record in enumerate(records) if record[0] == "window")
                theirs = [tuple(record) for record in records[begin:begin + len(ours)]]
                # Of lists of tensors the legacy profiler knows nothing.
                ours = [(n, [[] if d and isinstance(d[0], list) else d for d in dims], s, f) for n, dims, s, f in ours]
                # It has no numbers of autograd's engine either.
                ours = [(n, d, -1 if n.startswith("autograd::engine") else s, f) for n, d, s, f in ours]
                self.assertGreater(len(ours), 100)
                # The legacy profiler has numbers that are no thread's on what has no sequence.
                self.assertEqual([(n, d, s) for n, d, s, _ in ours], [(n, d, s) for n, d, s, _ in theirs])
                self.assertEqual([f for _, _, s, f in ours if s >= 0], [f for _, _, s, f in theirs if s >= 0])
                self.assertGreaterEqual(len(records), begin + len(ours))

    def test_modules_and_lines_are_those_of_the_program(self):
        trace, _ = self.model("bert")
        modules = [scope["name"] for scope in trace.inside("window") if scope["domain"] == "module"]
        layers = [f"encoder.{i}{part}" for i in range(2) for part in
                  ("", ".attention", ".attention.query", ".attention.key", ".attention.value", ".norm", ".output")]
        self.assertEqual(modules, ["Bert", "embeddings", *layers, "head"] * 2)
        source = next(scope["said"] for scope in trace.scopes if scope["name"] == "encoder.1.attention")
        self.assertEqual((source["class"], source["file"]), ("__main__.Attention", "model.py"))
        self.needs_operators(trace)
        where = {"attention": ("aten::softmax", "encoder.1.attention", "forward"),
                 "layer": ("aten::layer_norm", "encoder.1.norm", "forward"),
                 "loss": ("aten::sum", None, "step")}
        for mark, (operator, module, function) in where.items():
            with self.subTest(mark):
                for scope in trace.inside("window"):
                    if scope["name"] != operator or (module and ("module", module) not in scope["path"]):
                        continue
                    if "Backward" in str(scope["path"]) or ("operator", operator) in scope["path"]:
                        continue
                    self.assertEqual(scope["path"][-1], ("python", f"model.py({line_of(mark)}): {function}"))
                    break
                else:
                    self.fail(f"no {operator} in {module}")

    def test_backward_hangs_below_its_forward_operator(self):
        trace, _ = self.model("bert")
        self.needs_operators(trace)
        softmax = [scope for scope in trace.inside("window") if scope["name"] == "SoftmaxBackward0"]
        self.assertEqual(len(softmax), 4)
        for scope, layer in zip(softmax, ("encoder.1", "encoder.0") * 2):
            self.assertIn(("module", f"{layer}.attention"), scope["path"])
            self.assertIn(("operator", "aten::softmax"), scope["path"])
            self.assertEqual(scope["forward"], 1)

    def test_the_nearest_line_is_the_users(self):
        """Of a user's package, one in site-packages, and PyTorch."""
        for folder, text in (("site-packages/helper", "import torch\ndef call(f):\n    return torch.relu(f())\n"),
                             ("mine", "import torch\nfrom helper import call\ndef use(x):\n"
                                      "    return call(lambda: torch.nn.functional.normalize(x, dim=0))\n")):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
            (self.folder / folder / "__init__.py").write_text(text)
        trace = self.program("""
            import sys
            sys.path.insert(0, "site-packages")
            import torch
            from mine import use
            use(torch.ones(3))
        """)
        self.needs_operators(trace)
        places = {scope["name"]: scope["path"][-1][1] for scope in trace.scopes if len(scope["path"]) == 1}
        self.assertEqual(places["aten::ones"], "program.py(6): <module>")
        self.assertEqual(places["aten::clamp_min"], "mine/__init__.py(4): <lambda>")
        self.assertEqual(places["aten::relu"], "mine/__init__.py(4): use")

    def test_without_a_compiler(self):
        """What both can know is the same: operators with shapes, the modules they run in, and their lines."""
        def known(trace):
            found = []
            for scope in trace.inside("window"):
                path = str(scope["path"])
                # Of reshape() PyTorch makes another view where a dispatch mode is.
                if scope["name"] in ("aten::view", "aten::_reshape_alias"):
                    continue
                if (scope["name"].startswith("aten::") and not scope["forward"] and "Backward" not in path and
                        "autograd::engine" not in path):
                    modules = [name for domain, name in scope["path"] if domain == "module"]
                    places = [name for domain, name in scope["path"] if domain == "python"]
                    found.append((scope["name"], str(scope["said"]), modules[-1:], places[-1]))
            return found

        for name in ("bert", "convolutional", "recurrent"):
            with self.subTest(name):
                with_it, _ = self.model(name)
                self.needs_operators(with_it)
                without = self.watch("model.py", name, environment=self.without_compiler())
                self.assertIn("dispatch mode, because there is no C++ compiler", without.facts["torch"])
                theirs, ours = known(with_it), known(without)
                # What the one calls below those two lines, the other cannot see or tell from the rest.
                apart = f"model.py({line_of('backward')}): step", f"model.py({line_of('window')}): steps"
                forward = [said for said in ours if said[3] not in apart]
                at = iter(theirs)
                for said in forward:
                    self.assertIn(said, at)
                self.assertEqual({str(said[2:]) for said in theirs if said[3] not in apart},
                                 {str(said[2:]) for said in forward})

    def test_stacks_and_off(self):
        text = """
            import torch
            def outer():
                return inner()
            def inner():
                return torch.ones(3)
            outer()
        """
        trace = self.program(text, options=("--python", "stacks"))
        self.needs_operators(trace)
        ones = next(scope for scope in trace.scopes if scope["name"] == "aten::ones")
        self.assertEqual([name for _, name in ones["path"]],
                         ["program.py(7): <module>", "program.py(4): outer", "program.py(6): inner"])
        trace = self.program(text, options=("--python", "off"))
        self.assertEqual([s for s in trace.scopes if s["domain"] == "python"], [])
        self.assertIn("aten::ones", [scope["name"] for scope in trace.scopes])

    @unittest.skipUnless(find_library("OpenCL"), "there is no OpenCL")
    def test_calls_of_opencl_have_a_line_of_their_own_outside_of_operators(self):
        trace = self.program("""
            import ctypes
            import torch
            cl, pointer = ctypes.CDLL("libOpenCL.so.1"), ctypes.c_void_p
            platform, device, byref = pointer(), pointer(), ctypes.byref
            cl.clCreateContext.restype = cl.clCreateCommandQueue.restype = pointer
            cl.clGetPlatformIDs(1, byref(platform), None)
            cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, byref(device), None)
            context = cl.clCreateContext(None, 1, byref(device), None, None, None)
            queue = pointer(cl.clCreateCommandQueue(pointer(context), device, ctypes.c_uint64(0), None))
            class Function(torch.autograd.Function):
                @staticmethod
                def forward(context, x):
                    cl.clFinish(queue)
                    return x
            class Model(torch.nn.Module):
                def forward(self, x):
                    cl.clFinish(queue)
                    return Function.apply(x)
            Model()(torch.ones(3))
        """)
        self.needs_operators(trace)
        calls = [scope for scope in trace.scopes if scope["name"] in ("program.py(14): forward", "program.py(18): forward")]
        self.assertEqual([(call["name"], call["path"]) for call in calls],
                         [("program.py(18): forward", (("module", "Model"),))])

    def test_what_is_left_out(self):
        trace = self.program(f"""
            import sys
            sys.path.insert(0, {str(HERE.parents[1] / "python")!r})
            import pastaprof
            import torch
            with torch.autograd.profiler.record_function("range"):
                ones = torch.ones(3, requires_grad=True)
                pastaprof.stop()
                torch.logspace(0, 1, 3)
            torch.eye(3)
            pastaprof.start()
            ones.exp().sum().backward()
        """)
        self.needs_operators(trace)
        names = {scope["name"] for scope in trace.scopes}
        self.assertLessEqual({"range", "aten::ones", "aten::exp", "ExpBackward0"}, names)
        self.assertFalse({"aten::logspace", "aten::eye"} & names)

    def test_a_range_that_an_operator_begins_goes_on(self):
        trace = self.program("""
            import torch
            here = torch.autograd.profiler.record_function("range")
            library = torch.library.Library("mine", "DEF")
            library.define("begin(Tensor x) -> Tensor")
            def begin(x):
                here.__enter__()
                return x
            library.impl("begin", begin, "CPU")
            torch.ops.mine.begin(torch.ones(3))
            torch.eye(3)
            here.__exit__(None, None, None)
        """)
        self.needs_operators(trace)
        paths = {scope["name"]: [name for _, name in scope["path"]] for scope in trace.scopes}
        self.assertEqual(paths["mine::begin"], ["program.py(10): <module>"])
        self.assertEqual(paths["range"], [*paths["mine::begin"], "mine::begin"])
        self.assertEqual(paths["aten::eye"][:3], [*paths["range"], "range"])

    def test_operators_after_those_that_are_too_deep(self):
        for environment in ({}, self.without_compiler()):
            with self.subTest(environment):
                trace = self.program("""
                    import torch
                    class Deep(torch.nn.Module):
                        def forward(self, x, depth):
                            if depth > 0:
                                return self(x, depth - 1)
                            y = x.cos()
                            y.backward()
                            return y
                    Deep()(torch.zeros(1, requires_grad=True), 140)
                    torch.zeros(1).neg()
                    """, environment=environment, problems=r"gap .* lost=\d+$|problem dropped ")
                names = [scope["name"] for scope in trace.scopes if scope["domain"] != "python"]
                self.assertEqual(names.count("Deep"), 128)
                self.assertNotIn("aten::cos", names)
                self.assertEqual(names[-1], "aten::neg")

    def test_a_module_that_fails_is_over(self):
        trace = self.program("""
            import torch
            class Fails(torch.nn.Module):
                def forward(self, x):
                    raise ValueError
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fails = Fails()
                    self.goes_on = torch.nn.Identity()
                def forward(self, x):
                    try:
                        self.fails(x)
                    except ValueError:
                        return self.goes_on(x)
            Model()(torch.ones(1))
            torch.nn.ReLU()(torch.ones(1))
        """)
        modules = {scope["name"]: scope["path"] for scope in trace.scopes if scope["domain"] == "module"}
        self.assertEqual(modules, {"Model": (), "fails": (("module", "Model"),), "goes_on": (("module", "Model"),),
                                   "ReLU": ()})

    def test_what_the_compiler_puts_around_a_model_is_the_model(self):
        trace = self.program("""
            import torch
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = torch.nn.Sequential(torch.nn.ReLU())
                def forward(self, x):
                    return self.layers(x)
            # As in torch._dynamo.eval_frame.
            class OptimizedModule(torch.nn.Module):
                def __init__(self, model):
                    super().__init__()
                    self._orig_mod = model
                def forward(self, x):
                    return self._orig_mod(x)
            OptimizedModule(Model())(torch.ones(1))
        """)
        modules = [(scope["name"], scope["said"]["class"], scope["said"]["line"]) for scope in trace.scopes if scope["domain"] == "module"]
        self.assertEqual(modules[:3], [("Model", "__main__.Model", 7)] * 2 + [("layers", "torch.nn.modules.container.Sequential", modules[2][2])])
        self.assertEqual(modules[3][0], "layers.0")

    def test_modules_that_are_not_as_others(self):
        """Of TorchScript, and with a function of their own to name what is in them."""
        trace = self.program("""
            import torch
            class Nameless(torch.nn.Module):
                def named_modules(self, *how, **more):
                    return iter(())
                def forward(self, x):
                    return x
            class Odd(torch.nn.Module):
                def named_modules(self, *how, **more):
                    return [(1, 2, 3)]
                def forward(self, x):
                    return x
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scripted = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU()))
                    self.traced = torch.jit.trace(torch.nn.Sequential(torch.nn.ReLU()), torch.ones(1))
                def forward(self, x):
                    return self.traced(self.scripted(x))
            Odd()(Nameless()(Model()(torch.ones(1))))
        """)
        modules = {scope["name"] for scope in trace.scopes if scope["domain"] == "module"}
        self.assertLessEqual({"Model", "scripted", "traced", "Nameless", "Odd"}, modules)

    def test_no_value_is_in_the_trace(self):
        """However operators come."""
        for how, environment in (("callbacks", {}), ("dispatch mode", self.without_compiler())):
            with self.subTest(how):
                trace = self.program("""
                    import torch
                    class Model(torch.nn.Module):
                        def forward(self, x, secret, *, text):
                            return torch.add(x, secret).clamp(-876543212345.0, 987654321234.0).tile([1, 1])
                    Model()(torch.full((2,), 123456789123.0, dtype=torch.double), 345678912345.0, text="canary of a text")
                    torch.tensor([234567891234.0]).item()
                """, environment=environment)
                self.needs_operators(trace)
                self.assertIn(how, trace.facts["torch"])
                stored = (self.folder / "t.pasta").read_bytes()
                dump = subprocess.run([PROGRAM, "dump", "t.pasta"], cwd=self.folder, capture_output=True, check=True).stdout
                for canary in (b"123456789123", b"876543212345", b"987654321234", b"345678912345", b"234567891234",
                               b"canary of a text"):
                    self.assertNotIn(canary, stored)
                    self.assertNotIn(canary, dump)
                self.assertIn(b"Model", dump)
                self.assertIn("aten::clamp", [scope["name"] for scope in trace.scopes])

    def test_nobody_waits_for_the_interpreters_lock(self):
        """A thread without it calls operators and holds a lock, for which another waits that has it."""
        compiler = shutil.which("g++")
        if compiler is None:
            self.skipTest("there is no compiler")
        (self.folder / "lock.cpp").write_text(textwrap.dedent("""
            #include <ATen/record_function.h>
            #include <atomic>
            #include <mutex>
            std::mutex lock;
            std::atomic<bool> is_held{false}, is_awaited{false};
            extern "C" void work() {
              std::lock_guard<std::mutex> hold(lock);
              is_held = true;
              while (!is_awaited) {
              }
              RECORD_FUNCTION("aten::inside", std::vector<c10::IValue>());
            }
            extern "C" int held() { return is_held; }
            extern "C" void wait() {
              is_awaited = true;
              std::lock_guard<std::mutex> hold(lock);
            }
        """))
        torch, abi = subprocess.run(
            [PYTHON, "-c", "import os, torch; print(os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI))"],
            capture_output=True, text=True, check=True).stdout.split()
        for standard in ("c++17", "c++20"):
            built = subprocess.run(
                [compiler, f"-std={standard}", "-DNDEBUG", "-shared", "-fPIC", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
                 f"-I{torch}/include", "lock.cpp", "-o", "lock.so", f"-L{torch}/lib", "-ltorch_cpu", "-lc10"],
                cwd=self.folder, capture_output=True, text=True, check=False)
            if built.returncode == 0:
                break
        if "record_function.h: No such file" in built.stderr:
            self.skipTest("PyTorch's headers are not here")
        self.assertEqual(built.returncode, 0, built.stderr)
        trace = self.program("""
            import ctypes
            import threading
            import torch
            without_lock, with_lock = ctypes.CDLL("./lock.so"), ctypes.PyDLL("./lock.so")
            thread = threading.Thread(target=lambda: without_lock.work())
            thread.start()
            while not without_lock.held():
                pass
            with_lock.wait()
            thread.join()
        """, timeout=100)
        self.needs_operators(trace)
        inside = next(scope for scope in trace.scopes if scope["name"] == "aten::inside")
        self.assertEqual(inside["path"], (("python", "program.py(6): <lambda>"),))

    def test_iterations_are_counted_without_marks(self):
        """For what analyses whole ones: by the outermost module that comes again, until an optimizer does."""
        self.program("""
            import sys, torch
            sys.path.insert(0, %r)
            from device_collector import iterations
            model, loss_of = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.MSELoss()
            data, told = torch.ones(1, 2), []
            def step():
                told.append(iterations())
                return loss_of(model(data), data)
            for _ in range(4):
                step()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                step().backward()
                optimizer.step()
            print(*told, iterations())
            """ % str(HERE.parent / "python"))
        # Before each forward pass. The first optimizer's step may be the only one.
        self.assertEqual(self.output.split(), "0 0 1 2 3 4 1 2 3".split())

    def test_a_thread_and_a_forked_process(self):
        trace = self.program("""
            import os, threading, torch
            model = torch.nn.Linear(2, 2)
            def work():
                model(torch.ones(1, 2)).sum().backward()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            child = os.fork()
            if child == 0:
                torch.zeros(1)
                os._exit(0)
            os.waitpid(child, 0)
        """)
        self.needs_operators(trace)
        found = {(scope["lane"], scope["name"]) for scope in trace.scopes}
        self.assertEqual(len({lane for lane, name in found if name == "Linear"}), 1)
        linear = next(lane for lane, name in found if name == "Linear")
        zeros = next(lane for lane, name in found if name == "aten::zeros")
        self.assertNotEqual(linear, zeros)
        self.assertIn((linear, "AddmmBackward0"), found)

    def test_functions_checkpoints_and_loaders(self):
        trace = self.program("""
            import torch
            from torch.utils.checkpoint import checkpoint

            class Double(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.mul(2)
                @staticmethod
                def backward(ctx, gradient):
                    return gradient.mul(2)

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = torch.nn.Linear(2, 2)
                def forward(self, x):
                    return Double.apply(checkpoint(self.inner, x))

            class Data(torch.utils.data.Dataset):
                def __len__(self):
                    return 2
                def __getitem__(self, i):
                    return torch.full((2,), float(i)).cos()

            if __name__ == "__main__":
                model = Model()
                # As workers begin from Python 3.14 on; those of other tests are forks.
                for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1,
                                                         multiprocessing_context="forkserver"):
                    model(batch.requires_grad_()).sum().backward()
        """)
        self.needs_operators(trace)
        places = {(scope["name"], scope["path"][-1][1]) for scope in trace.scopes if scope["path"]}
        self.assertIn(("Double", "program.py(18): forward"), places)
        self.assertIn(("aten::mul", "program.py(11): backward"), places)
        self.assertIn(("aten::cos", "program.py(24): __getitem__"), places)
        self.assertEqual(len({scope["lane"] for scope in trace.scopes if scope["name"] == "aten::cos"}), 1)
        self.assertNotIn("aten::cos", {scope["name"] for scope in trace.inside("Model")})
        double = next(scope for scope in trace.scopes if scope["name"] == "DoubleBackward")
        self.assertIn(("operator", "Double"), double["path"])
        self.assertIn(("module", "Model"), double["path"])
        # Forward, and again for the backward pass.
        inner = [scope for scope in trace.scopes if scope["name"] == "inner"]
        self.assertEqual(len(inner), 2)
        for scope, around in zip(inner, ("CheckpointFunction", "CheckpointFunctionBackward")):
            self.assertEqual([name for domain, name in scope["path"] if domain == "module"], ["Model"])
            self.assertIn(("operator", around), scope["path"])

    def test_ranks(self):
        """Of gloo, in two processes: each with its modules, and the sum of gradients among its operators."""
        trace = self.program("""
            import os
            import torch
            import torch.multiprocessing as processes

            def work(rank):
                torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("ranks"),
                                                     rank=rank, world_size=2)
                model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 2)))
                for _ in range(2):
                    model(torch.ones(1, 2)).sum().backward()
                torch.distributed.destroy_process_group()

            if __name__ == "__main__":
                processes.start_processes(work, nprocs=2, start_method="fork")
        """)
        self.needs_operators(trace)
        for name in ("DistributedDataParallel", "module", "module.0", "AddmmBackward0"):
            with self.subTest(name):
                lanes = [scope["lane"] for scope in trace.scopes if scope["name"] == name]
                self.assertEqual((len(lanes), len(set(lanes))), (4, 2))
        self.assertTrue(any("all_reduce" in scope["name"] or "allreduce" in scope["name"] for scope in trace.scopes))
        addmm = [scope for scope in trace.scopes if scope["name"] == "aten::addmm"]
        self.assertTrue(addmm)
        for scope in addmm:
            self.assertIn(("module", "module.0"), scope["path"])
            self.assertIn(("python", "program.py(11): work"), scope["path"])

    def test_a_library_is_looked_for_where_its_user_says(self):
        """The collector stands in front of dlopen, which looks where the caller's RUNPATH says."""
        compiler = shutil.which("cc") or shutil.which("g++")
        if compiler is None:
            self.skipTest("there is no compiler")
        (self.folder / "hidden").mkdir()
        for name, text, more in (
                ("hidden/libinner.so", "int inner(void) { return 41; }", ["-shared", "-fPIC"]),
                ("libouter.so", "#include <dlfcn.h>\nint outer(void) { return dlopen(\"libinner.so\", RTLD_NOW) != 0; }",
                 ["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/hidden,--enable-new-dtags"]),
                ("asks", "extern int outer(void);\nint main(void) { return outer() ? 0 : 7; }",
                 ["-L.", "-louter", "-Wl,-rpath,$ORIGIN"])):
            (self.folder / "text.c").write_text(text)
            subprocess.run([compiler, "-x", "c", "text.c", "-x", "none", *more, "-o", name, "-ldl"],
                           cwd=self.folder, check=True, capture_output=True)
        for before in ([], [PROGRAM, "run", "-f", "-o", "t.pasta", "--"]):
            result = subprocess.run([*before, "./asks"], cwd=self.folder, capture_output=True, check=False)
            self.assertEqual(result.returncode, 0, before)

    def test_layers(self):
        self.model("bert")
        self.watch("model.py", "bert")
        report = json.loads(subprocess.run(
            [PROGRAM, "report", "t.pasta", "--tool", "layers", "--format", "json", "--opt", "find=encoder.1"],
            cwd=self.folder, capture_output=True, text=True, check=True).stdout)
        table = next(p for p in report["reports"][0]["parts"] if p["type"] == "table" and p["id"] == "layers")
        rows = [dict(zip((c["name"] for c in table["columns"]), row)) for row in table["rows"]]
        self.assertEqual([row["module"] for row in rows],
                         [f"encoder.1{part}" for part in ("", ".attention", ".attention.query", ".attention.key",
                                                         ".attention.value", ".norm", ".output")])
        self.assertEqual({row["calls"] for row in rows}, {3})
        self.assertRegex(rows[1]["source"], r"^model\.py:\d+$")
        self.assertEqual(rows[0]["host_total"] - rows[0]["host_self"],
                         sum(rows[i]["host_total"] for i in (1, 5, 6)))


if __name__ == "__main__":
    unittest.main()
