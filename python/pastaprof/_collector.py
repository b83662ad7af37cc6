"""The functions that libpastacollect.so, which `pastaprof run` has loaded, has for annotations."""
import ctypes as _c

# As in pasta.h: `size` first, then functions. The GIL is kept: giving it up costs more than a call.
_SIGNATURES = (
    ("begin", _c.PYFUNCTYPE(_c.c_uint64, _c.c_char_p, _c.c_size_t)),
    ("end", _c.PYFUNCTYPE(None, _c.c_uint64)),
    ("mark", _c.PYFUNCTYPE(None, _c.c_char_p, _c.c_size_t)),
    ("step", _c.PYFUNCTYPE(None)),
    ("start", _c.PYFUNCTYPE(None)),
    ("stop", _c.PYFUNCTYPE(None)),
    ("tag", _c.PYFUNCTYPE(None, _c.c_void_p, _c.c_size_t, _c.c_char_p, _c.c_size_t)),
)


class Collector:
    """The functions by name."""

    def __init__(self, address):
        size = _c.c_size_t.from_address(address).value
        for place, (name, signature) in enumerate(_SIGNATURES, start=1):
            at = place * _c.sizeof(_c.c_void_p)
            if at >= size:
                raise LookupError(name)
            setattr(self, name, signature(_c.c_void_p.from_address(address + at).value))


_found = None


def find():
    """None when it is not loaded, or has nowhere to write."""
    global _found
    if _found is None:
        try:
            function = _c.CDLL(None).pasta_collector_v1
        except (AttributeError, OSError):
            return None
        function.restype = _c.c_void_p
        address = function()
        if address:
            try:
                _found = Collector(address)
            except LookupError:
                return None
    return _found
