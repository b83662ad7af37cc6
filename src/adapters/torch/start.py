"""What begins to watch PyTorch, in the watched process, when PyTorch is about to be loaded.

Run by the collector (torch.cpp), which gives it the functions begin_module, end_module,
begin_operator, end_operator, begin_backward, end_backward, end_places, fact, library, origin, short_path and table and
the texts EXTENSION, FALLBACK and PLACES. Nothing of it may fail into the program: what cannot be watched is said as a fact of
the process.
"""
import sys


def when_loaded(name, begin):
    """Calls begin(module) when the import of this module that is under way is over."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or not getattr(spec, "_initializing", False):
        return begin(sys.modules.get(name))
    plain = type(spec)

    class Loading(plain):
        # Set by the import system: to False at the end, whether it failed or not.
        @property
        def _initializing(self):
            return self.__dict__.get("_initializing", False)

        @_initializing.setter
        def _initializing(self, value):
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = plain
                begin(sys.modules.get(name))

    spec.__class__ = Loading


def when_imported(wanted):
    """Calls wanted[name](module) once a module of this name is there: now, or when it is imported."""
    def quietly(begin):
        def begin_if_possible(module):
            try:
                begin(module)
            except Exception:  # it is not as it was
                pass
        return begin_if_possible

    wanted = {name: quietly(begin) for name, begin in wanted.items()}
    waiting = {name: begin for name, begin in wanted.items() if name not in sys.modules}
    for name in wanted.keys() - waiting.keys():
        when_loaded(name, wanted[name])

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name not in waiting:
                return None
            specs = (finder.find_spec(name, path, target) for finder in sys.meta_path
                     if finder is not self and hasattr(finder, "find_spec"))
            spec = next(filter(None, specs), None)
            execute = getattr(spec and spec.loader, "exec_module", None)
            if execute is None:
                return spec

            def exec_module(module):
                execute(module)
                begin = waiting.pop(name, None)
                if begin is not None:
                    begin(module)

            spec.loader.exec_module = exec_module
            return spec

    if waiting:
        sys.meta_path.insert(0, Finder())


def version_of(torch):
    numbers = str(torch.__version__).split("+")[0].split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, number)) or 0) for number in numbers)


# --- operators

# Without the checks that PyTorch's own release builds have not got: they change the size of things.
FLAGS = ["-O2", "-DNDEBUG", "-shared", "-fPIC", "-w"]


class Unbuilt(Exception):
    """Why there is no extension."""


def loaded_libraries():
    """PyTorch's libraries in this process, by the beginning of their names."""
    found = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            name = path.rpartition("/")[2]
            for library in ("libtorch_cpu.so", "libc10.so"):
                if name.startswith(library):
                    found[library] = "/" + path
    return list(found.values())


def cache_folder(os):
    given = os.environ.get("PASTA_CACHE")
    if given:
        return given
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "pastaprof")


def build(torch, to, os):
    """Compiles the extension. The compiler is not watched."""
    import shutil
    import subprocess
    import tempfile
    compiler = next(filter(None, map(shutil.which, filter(None, (
        os.environ.get("CXX"), "g++", "c++", "clang++")))), None)
    if compiler is None:
        raise Unbuilt("there is no C++ compiler")
    include = os.path.join(os.path.dirname(torch.__file__), "include")
    folders = [include, os.path.join(include, "torch", "csrc", "api", "include")]
    major, minor = version_of(torch)
    ours = {"LD_PRELOAD", "PASTA_RUN_FOLDER"}
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    with tempfile.TemporaryDirectory(dir=os.path.dirname(to)) as folder:
        source, built = os.path.join(folder, "extension.cpp"), os.path.join(folder, "extension.so")
        with open(source, "w") as file:
            file.write(EXTENSION)
        said = ""
        for standard in ("c++17", "c++20"):
            command = [compiler, f"-std={standard}", *FLAGS,
                       f"-DPASTA_TORCH_VERSION={major * 100 + minor}",
                       f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                       *(f"-I{path}" for path in folders if os.path.isdir(path)),
                       source, "-o", built, *loaded_libraries()]
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
            if done.returncode == 0:
                os.chmod(built, 0o700)
                os.replace(built, to)
                return
            errors = [line for line in done.stderr.decode("utf-8", "replace").splitlines()
                      if "error" in line]
            said = errors[0] if errors else f"exit {done.returncode}"
        raise Unbuilt(f"{compiler}: {said[:200]}")


def extension(torch):
    """Starts the compiled callbacks; says how they came to be there."""
    import ctypes
    import fcntl
    import hashlib
    import os
    import time
    folder = cache_folder(os)
    what = "\n".join((EXTENSION, *FLAGS, str(torch.__version__), str(torch.version.git_version),
                      str(torch._C._GLIBCXX_USE_CXX11_ABI)))
    name = f"torch-{torch.__version__}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.so"
    path = os.path.join(folder, name)
    how = "compiled before"
    try:
        if not os.path.exists(path):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            # Of several processes one compiles, and the others wait for it.
            with open(path + ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not os.path.exists(path):
                    begun = time.monotonic()
                    build(torch, path, os)
                    how = f"compiled in {time.monotonic() - begun:.1f} s"
        if os.stat(path).st_uid not in (os.getuid(), 0):
            raise Unbuilt(f"{path} belongs to somebody else")
        start = ctypes.CDLL(path).pasta_torch_start
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise Unbuilt(str(error)) from None
    start.argtypes, start.restype = [ctypes.c_void_p], ctypes.c_int
    if not start(table()):
        raise Unbuilt("it is of another version")
    return how


FORWARD, BACKWARD, USER_SCOPE = range(3)  # what begin_operator() is told


def without_extension(torch, why):
    names = dict(globals())
    try:
        exec(compile(FALLBACK, "<pastaprof>", "exec"), names)
        names["watch_operators"](torch)
        return f"operators by a dispatch mode, because {why}"
    except Exception as error:
        return f"no operators: {why}; {type(error).__name__}: {error}"


# --- modules

def about(kind, cache={}):
    """The class of a module and where its code is, as JSON."""
    known = cache.get(kind)
    if known is None:
        import json
        facts = {"class": f"{kind.__module__}.{kind.__qualname__}"}
        code = getattr(getattr(kind, "forward", None), "__code__", None)
        if code is not None:
            facts["file"] = short_path(code.co_filename)
            facts["line"] = code.co_firstlineno
        known = cache[kind] = json.dumps(facts, separators=(",", ":"))
    return known


def watch_modules(torch):
    import weakref
    module_class = torch.nn.Module
    known = {}  # by id: a weak reference, name, and what else there is to say

    def forget(reference, key):
        if key in known and known[key][0] is reference:
            del known[key]

    def name(path, part):
        key = id(part)
        if key in known and known[key][0]() is part:
            return
        # What torch.compile puts around a model is called as the model is. Of a module of TorchScript
        # `inside` is no dictionary: it has no get().
        names = [each for each in path.split(".") if each not in ("", "_orig_mod")]
        inside = part.__dict__.get("_modules") or {}
        inner = inside["_orig_mod"] if "_orig_mod" in inside else part
        known[key] = (weakref.ref(part, lambda reference: forget(reference, key)),
                      ".".join(names) or type(inner).__name__, about(type(inner)))

    def learn(module):
        """Names it and all that is in it, but for what has a name already."""
        try:
            for path, part in list(module.named_modules()):
                name(path, part)
        except Exception:  # the program may have a function of its own there
            pass
        name("", module)
        return known[id(module)]

    # True where PyTorch's compiler reads what is called: nothing of this is left in what it makes.
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
    # Not a hook: with a global one, every call of a module takes PyTorch's longer way. From 2.0 on
    # __call__() is another that calls it.
    called = "_call_impl" if hasattr(module_class, "_wrapped_call_impl") else "__call__"
    plain = getattr(module_class, called)

    def _call_impl(self, *args, **kwargs):
        if compiling():
            return plain(self, *args, **kwargs)
        entry = known.get(id(self))
        if entry is None or entry[0]() is not self:
            entry = learn(self)
        begun = begin_module(entry[1], entry[2])
        try:
            return plain(self, *args, **kwargs)
        finally:
            if begun:
                end_module()

    setattr(module_class, called, _call_impl)


# --- backward passes

def watch_backward(torch):
    """Tells where the program calls for one: the threads that run it do not know."""
    import functools
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)

    def watched(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if compiling is not None and compiling():
                return function(*args, **kwargs)
            begun = begin_backward()
            try:
                return function(*args, **kwargs)
            finally:
                end_backward(begun)

        return call

    torch.autograd.backward = watched(torch.autograd.backward)
    torch.autograd.grad = watched(torch.autograd.grad)


# --- kernels that Triton launches

MARK = "# pastaprof: "  # in what PyTorch's compiler writes
LONGEST_MARK = 8 << 10


def module_name(path):
    """"L['self'].layers[0].norm" or "L['self']._modules['layers']._modules['0'].norm": "layers.0.norm"."""
    import re
    path = re.sub(r"^[LG]\['(\w+)'\]", lambda match: "" if match[1] == "self" else match[1], path)
    return re.sub(r"(?:\._modules)?\['?(\w+)'?\]", r".\1", path).strip(".")


def watch_compiler(torch):
    """Where PyTorch's compiler calls a kernel it writes a line above it, with the operators that it was made of. It
    gets another: the lines of the program and the modules that these were called in. That is told when the code
    is loaded, also from the compiler's cache."""
    import functools
    import json
    import os
    import re
    frame = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
    library = os.path.dirname(torch.__file__) + os.sep

    def line_of(node):
        """The nearest of the user's own in the program's stack, as it was when the node was made."""
        frames = frame.findall(node.meta.get("stack_trace") or "")
        if not frames:
            return None
        own = [at for at in frames if not at[0].startswith(library) and "-packages" + os.sep not in at[0]]
        file, line, function = (own or frames)[-1]
        return short_path(file), function, int(line)

    def place_of(nodes):
        found = {}
        for file, function, line in filter(None, map(line_of, nodes)):
            found.setdefault((file, function), set()).add(line)
        places = [f"{file}({', '.join(map(str, sorted(at)))}): {function}" for (file, function), at in sorted(found.items())]
        return " + ".join(places)

    def modules_of(node):
        """The outermost first; None where nothing is known of it."""
        stack = node.meta.get("fwd_nn_module_stack") or node.meta.get("nn_module_stack")
        if not stack:  # in the model itself, or made by the compiler
            return [] if node.meta.get("stack_trace") else None
        names = [module_name(entry[0] if isinstance(entry, tuple) else str(key)) for key, entry in stack.items()]
        return [name for name in names if name]

    def common(stacks):
        """The modules that all were called in."""
        together = None
        for names in filter(lambda names: names is not None, stacks):
            together = names if together is None else os.path.commonprefix([together, names])
        return together or []

    def marked(plain):
        @functools.wraps(plain)
        def get_kernel_metadata(schedule, *more):
            said, detailed = plain(schedule, *more)
            try:
                from torch._inductor.utils import aggregate_origins
                nodes = list(aggregate_origins(schedule))
                place = place_of(nodes)
                mark = json.dumps({"place": place, "modules": common(map(modules_of, nodes))}, separators=(",", ":"))
                if place and said and len(mark) < LONGEST_MARK:
                    said += " " + MARK + mark
            except Exception:
                pass
            return said, detailed

        return get_kernel_metadata

    def tell(path):
        """Of code that is about to be loaded."""
        known, begin = None, 0
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number, line in enumerate([*lines, "end"], 1):
            # What stands above a kernel's own code is not indented.
            is_code = line[:1] not in ("", " ", "\t", "#")
            if known and (is_code or "Original ATen:" in line):
                origin(path, begin, number - 1, known["place"], "".join(name + "\n" for name in known["modules"]))
                known = None
            if MARK in line and line[0] in " \t":
                known, begin = json.loads(line.partition(MARK)[2]), number

    def watch_metadata(module):
        module.get_kernel_metadata = marked(module.get_kernel_metadata)

    def watch_loads(module):
        kind = module.PyCodeCache
        plain = kind.load_by_key_path.__func__

        @functools.wraps(plain)
        def load_by_key_path(cls, key, path, *more, **named):
            try:
                tell(path)
            except Exception:
                pass
            return plain(cls, key, path, *more, **named)

        kind.load_by_key_path = classmethod(load_by_key_path)

    when_imported({"torch._inductor.ir": watch_metadata, "torch._inductor.codegen.triton": watch_metadata,
                   "torch._inductor.codecache": watch_loads})


def operators_of(frame):
    """Of which operators PyTorch's compiler has made what this frame, or one that called it, launches. It writes
    that above the line that does."""
    import linecache
    import re
    for _ in range(8):
        if frame is None:
            return None
        if frame.f_code.co_name == "call":
            for line in range(frame.f_lineno, max(frame.f_lineno - 40, 0), -1):
                text = linecache.getline(frame.f_code.co_filename, line)
                said = re.search(r"# .*Original ATen: \[([^\]]*)\]", text)
                if said:
                    return re.sub(r"\b([a-z_]\w*)\.", r"\1::", said[1]).split(", ") if said[1] else None
                if ".run(" in text and line < frame.f_lineno:
                    return None
        frame = frame.f_back
    return None


def watch_triton(torch):
    """They are operators: none of PyTorch's is around them, or a large one."""
    import functools
    import json
    import sys
    known = {}  # by the function that is compiled, which Triton keeps

    def learn(kernel, frame):
        function, about = kernel, {}
        while not hasattr(function, "__code__") and getattr(function, "fn", None) is not None:
            function = function.fn
        # What comes from the compiler's cache has no function any more.
        code = getattr(function, "__code__", None)
        if code is not None:
            about.update(file=short_path(code.co_filename), line=code.co_firstlineno)
        operators = operators_of(frame)
        if operators:
            about["operators"] = operators
        known[id(kernel)] = kernel, "triton::" + function.__name__, json.dumps(about, separators=(",", ":"))
        return known[id(kernel)]

    def watch(kind):
        plain = kind.run

        @functools.wraps(plain)
        def run(self, *args, **kwargs):
            begun = 0
            if not kwargs.get("warmup"):  # which only compiles it
                try:
                    _, name, about = known.get(id(self.fn)) or learn(self.fn, sys._getframe(1))
                    begun = begin_operator(name, about, 0, 0, 0, FORWARD)
                except Exception:
                    pass
            try:
                return plain(self, *args, **kwargs)
            finally:
                if begun:
                    end_operator(begun)

        kind.run = run

    when_imported({
        "triton.runtime.jit": lambda module: watch(module.JITFunction),
        # Of PyTorch's compiler, which has launchers of its own.
        "torch._inductor.runtime.triton_heuristics": lambda module: watch(module.CachingAutotuner)})


def begin(torch):
    if torch is None or not hasattr(torch, "_C"):
        return
    try:
        import atexit
        import os
        library(os.path.dirname(torch.__file__))
        # Where its compiler writes Python; else into a folder that places.cpp knows by its name.
        if os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
            library(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        said = f"torch {torch.__version__}"
        try:
            how = "operators by its callbacks, " + extension(torch)
        except Unbuilt as error:
            how = without_extension(torch, error)
        fact("torch", f"{said}: {how}{PLACES}")
        atexit.register(end_places)
        watch_modules(torch)
        watch_backward(torch)
        watch_compiler(torch)
        watch_triton(torch)
    except Exception as error:
        fact("torch", f"not watched: {type(error).__name__}: {error}")


when_loaded("torch", begin)
