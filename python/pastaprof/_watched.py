"""What there is when the process is watched."""
import ctypes as _c
from functools import wraps as _wraps
from types import coroutine as _coroutine

from pastaprof._collector import find as _find

_collector = _find()
_begin, _end, _mark, _tag = _collector.begin, _collector.end, _collector.mark, _collector.tag
start, stop, step = _collector.start, _collector.stop, _collector.step


# Names as C has them, which to make costs more than a call.
_names = {}
_MOST_NAMES = 4096

# What kind of function it is, as inspect would say, whose import costs more than all of this.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _name_of(text):
    known = _names.get(text)
    if known is None:
        encoded = str(text).encode("utf-8", "replace")
        if len(_names) >= _MOST_NAMES:
            _names.clear()
        known = _names[text] = _c.c_char_p(encoded), _c.c_size_t(len(encoded))
    return known


class annotate:
    """A range: as a context, or as a decorator. A context may be entered again, on one thread."""

    __slots__ = ("_name", "_size", "_ranges")

    def __init__(self, name):
        self._name, self._size = _name_of(name)
        self._ranges = []

    def __enter__(self):
        self._ranges.append(_begin(self._name, self._size))
        return self

    def __exit__(self, *_):
        # 0: began while collection was stopped.
        opened = self._ranges.pop()
        if opened:
            _end(opened)

    def __call__(self, function):
        name, size = self._name, self._size
        kind = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if kind & _COROUTINE:
            async def wrapper(*args, **kwargs):
                return await _stretches(name, size, function(*args, **kwargs))
        elif kind & _ASYNC_GENERATOR:
            def wrapper(*args, **kwargs):
                return _async_stretches(name, size, function(*args, **kwargs))
        elif kind & _GENERATOR:
            def wrapper(*args, **kwargs):
                return (yield from _stretches(name, size, function(*args, **kwargs)))
        else:
            def wrapper(*args, **kwargs):
                opened = _begin(name, size)
                try:
                    return function(*args, **kwargs)
                finally:
                    if opened:
                        _end(opened)
        return _wraps(function)(wrapper)


@_coroutine
def _stretches(name, size, inner):
    """Runs a generator or a coroutine, with a range whenever it has the thread."""
    resume, argument = inner.send, None
    while True:
        opened = _begin(name, size)
        try:
            item = resume(argument)
        except StopIteration as stopped:
            return stopped.value
        finally:
            if opened:
                _end(opened)
        try:
            argument = yield item
            resume = inner.send
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:
            resume, argument = inner.throw, error


async def _async_stretches(name, size, inner):
    resume, argument = inner.asend, None
    try:
        while True:
            try:
                item = await _stretches(name, size, resume(argument))
            except StopAsyncIteration:
                return
            try:
                argument = yield item
                resume = inner.asend
            except GeneratorExit:
                raise
            except BaseException as error:
                resume, argument = inner.athrow, error
    finally:
        await inner.aclose()


def mark(name):
    """A moment."""
    _mark(*_name_of(name))


def _extent(address, shape, strides, item):
    """Where the elements lie: (address, bytes). Without strides they lie one after the other."""
    if 0 in shape:
        return address, 0
    if strides is None:
        size = item
        for length in shape:
            size *= length
        return address, size
    spans = [(length - 1) * stride for length, stride in zip(shape, strides)]
    low = sum(span for span in spans if span < 0)
    return address + low, sum(map(abs, spans)) + item


def _memory(what):
    """(address, bytes) of a tensor or an array."""
    for protocol in ("__cuda_array_interface__", "__array_interface__"):
        try:
            array = getattr(what, protocol, None)
        except Exception:  # of a tensor that is of another device, or needs a gradient
            array = None
        if array is not None and array.get("data") is not None:
            return _extent(array["data"][0], array["shape"], array.get("strides"), int(array["typestr"][2:]))
    if hasattr(what, "data_ptr"):
        item = what.element_size()
        return _extent(what.data_ptr(), tuple(what.shape), [stride * item for stride in what.stride()], item)
    raise TypeError(f"tag: what is it? an address with its bytes, a tensor or an array, not {type(what).__name__}")


def tag(what, bytes=None, name=""):
    """Names a piece of memory: tag(tensor, "weights") of a tensor or an array, tag(address, bytes, "weights")."""
    if isinstance(bytes, str):
        bytes, name = None, bytes
    if isinstance(what, int):
        address = what
        if bytes is None:
            raise TypeError("tag: an address needs its bytes")
    else:
        address, size = _memory(what)
        bytes = size if bytes is None else bytes
    _tag(address, bytes, *_name_of(name))
