"""What the adapters of devices are told by the collector, for programs that are watched."""
import ctypes


class Collector(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("push", ctypes.c_void_p), ("note", ctypes.c_void_p),
                ("is_collecting", ctypes.c_void_p), ("iterations", ctypes.CFUNCTYPE(ctypes.c_uint64))]


def iterations():
    """How many have begun, counted without marks."""
    get = ctypes.CDLL(None).pasta_device_collector_v1
    get.restype = ctypes.POINTER(Collector)
    return get().contents.iterations()
