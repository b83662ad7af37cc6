"""Operators without the extension: where there is no compiler, or it fails. Run by start.py, with its names.

PyTorch calls a "dispatch mode" for each operator that its back end is asked for, on the threads that are in
the mode and in the backward passes that they begin. It is slower than the extension and sees less: see
adapter.md.
"""

TENSOR, TENSORS, NUMBER_LIST, OTHER = range(4)  # what an argument is declared to be
# Called by PyTorch itself because of such a mode, and doing nothing.
LEFT_OUT = ("aten::detach", "profiler::_record_function_enter", "profiler::_record_function_enter_new",
            "profiler::_record_function_exit")
LONGEST_LIST = 30  # of numbers that PyTorch's own profiler calls a list
LONGEST_ARGUMENTS = 16 << 10
NONE = "[]", '""'
SCALAR = "[]", '"Scalar"'
NUMBERS = "[]", '"ScalarList"'


def watch_operators(torch):
    import atexit
    import itertools
    import threading
    from torch.utils import _python_dispatch as dispatch

    # As C++ calls them.
    types = {getattr(torch, ours): f'"{theirs}"' for ours, theirs in (
        ("float32", "float"), ("float64", "double"), ("float16", "c10::Half"), ("bfloat16", "c10::BFloat16"),
        ("int64", "long int"), ("int32", "int"), ("int16", "short int"), ("int8", "signed char"),
        ("uint8", "unsigned char"), ("bool", "bool"), ("complex64", "c10::complex<float>"),
        ("complex128", "c10::complex<double>"), ("float8_e4m3fn", "c10::Float8_e4m3fn"),
        ("float8_e5m2", "c10::Float8_e5m2")) if hasattr(torch, ours)}
    numbers = tuple(kind for kind in (int, float, complex, torch.dtype, torch.layout, torch.memory_format,
                                      getattr(torch, "SymInt", None), getattr(torch, "SymFloat", None)) if kind)
    wrapped = {kind: types.get(of, '""') for kind, of in (
        (int, torch.int64), (float, torch.float64), (bool, torch.bool), (complex, torch.complex128))}
    plain_tensors = (torch.Tensor, torch.nn.Parameter)
    no_functions = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction
    lists_have_dims = version_of(torch) >= (2, 1)

    def dims(tensor):
        if type(tensor) not in plain_tensors:
            with no_functions():  # else this would be a call of its class
                return plain_dims(tensor)
        return plain_dims(tensor)

    def plain_dims(tensor):
        if getattr(tensor, "is_nested", False):
            return "[]"
        shape = tuple(tensor.shape)
        # What stands for a number that is not known must not be asked for it.
        return f"[{','.join(map(str, shape))}]" if all(type(size) is int for size in shape) else "[]"

    def said(value, sort):
        if isinstance(value, torch.Tensor):
            return dims(value), types.get(value.dtype, '""')
        if sort == TENSORS and isinstance(value, (list, tuple)):
            return f"[{','.join(map(dims, value)) if lists_have_dims else ''}]", '"TensorList"'
        if isinstance(value, (list, tuple)):
            short = not value or isinstance(value[0], numbers) and len(value) <= LONGEST_LIST
            return NUMBERS if short else NONE
        if isinstance(value, numbers):
            if sort == TENSOR:  # was made one on the way, and is a number again for us
                return "[]", wrapped.get(type(value), '""')
            return NUMBERS if sort == NUMBER_LIST else SCALAR
        return NONE

    operators = {}

    def learn(operator):
        """Its name, and of its arguments: name, sort, and what is said of the default."""
        schema = operator._schema
        arguments = []
        for argument in schema.arguments:
            kind = str(argument.type)
            sort = OTHER
            if kind in ("Tensor", "Optional[Tensor]"):
                sort = TENSOR
            elif kind == "List[Tensor]":
                sort = TENSORS
            elif kind.replace("Optional[", "").startswith(("List[int", "List[float", "List[SymInt", "List[number")):
                sort = NUMBER_LIST
            default = argument.default_value if argument.has_default_value() else None
            arguments.append((argument.name, sort, said(default, sort)))
        known = operators[operator] = schema.name, arguments
        return known

    def describe(arguments, given, named):
        if not arguments:
            return ""
        parts = [said(given[at], sort) if at < len(given) else said(named[name], sort) if name in named else default
                 for at, (name, sort, default) in enumerate(arguments)]
        text = (f'{{"Input Dims":[{",".join(part[0] for part in parts)}],'
                f'"Input type":[{",".join(part[1] for part in parts)}]}}')
        return text if len(text) <= LONGEST_ARGUMENTS else ""

    # Autograd's numbers, where it can be asked. Of a backward operator the thread of its forward one is
    # not known: so links are only told while there is one such thread.
    sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", None)
    current_node = getattr(torch._C, "_current_autograd_node", None)
    of_thread = threading.local()
    threads = itertools.count(1)
    forward_threads = set()

    def links():
        """sequence + 1, forward thread, thread, kind"""
        state = of_thread.__dict__
        thread = state.get("thread")
        if thread is None:
            thread = state["thread"] = next(threads)
        node = current_node() if current_node is not None else None
        if node is not None:
            sequence = node._sequence_nr() if hasattr(node, "_sequence_nr") else -1
            # AccumulateGrad has the largest number there is.
            known = 0 <= sequence < 1 << 63 and len(forward_threads) == 1
            return sequence + 1 if known else 0, next(iter(forward_threads)) if known else 0, thread, BACKWARD
        if sequence_number is None:
            return 0, 0, thread, FORWARD
        # Whoever waits for its backward pass has just taken a number.
        now = sequence_number()
        before, state["sequence"] = state.get("sequence", now), now
        if now <= before:
            return 0, 0, thread, FORWARD
        forward_threads.add(thread)
        return now, 0, thread, FORWARD

    def begin_call(operator, given, named):
        try:
            name, arguments = operators.get(operator) or learn(operator)
            if name in LEFT_OUT:
                return 0
            return begin_operator(name, describe(arguments, given, named), *links())
        except Exception:
            return 0

    class Watch(dispatch.TorchDispatchMode):
        # PyTorch's compiler takes no notice of it: else it would compile nothing.
        @classmethod
        def is_infra_mode(cls):
            return True

        @classmethod
        def ignore_compile_internals(cls):
            return True

        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            begun = begin_call(operator, args, kwargs)
            try:
                return operator(*args, **kwargs)
            finally:
                if begun:
                    end_operator(begun)

    # Of each thread: there is no such mode for all.
    plain_bootstrap = threading.Thread._bootstrap_inner

    def _bootstrap_inner(self):
        with Watch():
            plain_bootstrap(self)

    threading.Thread._bootstrap_inner = _bootstrap_inner
    mode = Watch()
    mode.__enter__()

    def leave():
        if dispatch._get_current_dispatch_mode() is mode:
            mode.__exit__(None, None, None)

    atexit.register(leave)

    # What PyTorch and programs call ranges.
    ranges = torch.autograd.profiler.record_function
    enter, leave_range = ranges.__enter__, ranges.__exit__

    def __enter__(self):
        self.__dict__.setdefault("_pasta", []).append(begin_operator(str(self.name), "", 0, 0, 0, USER_SCOPE))
        return enter(self)

    def __exit__(self, *about):
        try:
            return leave_range(self, *about)
        finally:
            begun = self.__dict__.get("_pasta")
            if begun:
                end_operator(begun.pop())

    ranges.__enter__, ranges.__exit__ = __enter__, __exit__
