#!/usr/bin/env python3
"""Steps of a model whose kernels are all of Triton (torch.compile), with the patch in the PTX of those kernels:
triton_steps.py STEPS [PATCH PATCH.ptx LIBRARY]

Triton 3.6 has all that it takes: a hook for the stages of its compiler, in which the PTX gets the patch, and a
parameter of each kernel for memory of a profiler, for which it asks at each launch. A line of JSON: ms of steps with
the patch and with launches that are not analysed, in turns, and what was counted of a step.

Without a patch: bare, and under `pastaprof run --adapter sanitizer` also with Compute Sanitizer's patches in turns;
what was counted is then in the trace. LIBRARY is blocks.cpp, see `build`."""
import ctypes
import json
import os
import sys
import tempfile

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # others would not have the hook
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
os.environ["TORCHINDUCTOR_DETERMINISTIC"] = "1"  # the same kernels, however long they take
# Triton's cache does not know of the hook: what is found there has no patch, and what is left there has one.
CACHE = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = CACHE.name

import torch  # noqa: E402
import triton  # noqa: E402

from instrument import instrument  # noqa: E402

ARENA = 1 << 30
ALIGN = 256


class Sizes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("bytes", "header", "result_begin", "result_end", "image")]


class Blocks:
    """Of each launch of a step one, in an arena that is zero before the step."""

    def __init__(self, patch, native):
        self.name, self.native, self.patch = patch.encode(), ctypes.CDLL(native), None
        self.native.pasta_ptx_patch.restype = self.native.pasta_ptx_table.restype = ctypes.c_void_p
        self.native.pasta_ptx_result.restype = ctypes.c_uint64
        self.arena = torch.zeros(ARENA, dtype=torch.uint8, device="cuda")
        self.on_host = torch.zeros(ARENA // 4, dtype=torch.uint8, pin_memory=True)
        self.at = self.host_at = 0
        self.launches, self.active = [], False

    def begin(self):
        self.arena[:self.at].zero_()
        self.at = self.host_at = 0
        self.launches, self.active = [], True

    def take_objects(self):
        """As Compute Sanitizer sees them: what PyTorch asked the driver for."""
        segments = sorted((s["address"], s["total_size"]) for s in torch.cuda.memory_snapshot())
        rows = [value for number, row in enumerate(segments, 1) for value in (*row, number)]
        self.patch = ctypes.c_void_p(self.native.pasta_ptx_patch(self.name, (ctypes.c_uint64 * len(rows))(*rows),
                                                                  len(segments)))
        size = ctypes.c_uint64()
        table = self.native.pasta_ptx_table(self.patch, ctypes.byref(size))
        self.table = torch.frombuffer(bytearray(ctypes.string_at(table, size.value)), dtype=torch.uint8).cuda()
        self.native.pasta_ptx_put_table(self.patch, ctypes.c_uint64(self.table.data_ptr()))

    def __call__(self, size, align, stream):
        """Triton asks for a byte for each group of the launch."""
        if not self.active:
            return Nothing
        launch, sizes = (ctypes.c_uint32 * 6)(size, 1, 1, 128, 1, 1), Sizes()

        def block(address, image):
            self.native.pasta_ptx_block(self.patch, launch, ctypes.c_uint64(address), ctypes.byref(sizes),
                                         ctypes.c_void_p(image))

        block(0, 0)
        if self.at + sizes.bytes > len(self.arena) or self.host_at + sizes.bytes > len(self.on_host):
            raise MemoryError("a step has more launches than there is room for")
        to, image = self.at + sizes.header, self.on_host[self.host_at:]
        address = self.arena.data_ptr() + to
        block(address, image.data_ptr())
        self.arena[to:to + sizes.image].copy_(image[:sizes.image], non_blocking=True)
        self.launches.append((launch, self.at, sizes))
        self.at += (sizes.bytes + ALIGN - 1) // ALIGN * ALIGN
        self.host_at += (sizes.image + ALIGN - 1) // ALIGN * ALIGN
        return Pointer(address)

    def counted(self):
        """Of each launch, by `reuse`: bytes asked for, sectors."""
        numbers, columns = (ctypes.c_uint64 * 6000)(), 6
        for launch, begin, sizes in self.launches:
            result = self.arena[begin + sizes.result_begin:begin + sizes.result_end].cpu()
            count = self.native.pasta_ptx_result(self.patch, launch, ctypes.c_void_p(result.data_ptr()),
                                                  ctypes.c_uint64(result.numel()), 1, numbers,
                                                  ctypes.c_uint64(len(numbers)))
            yield [sum(numbers[at:count:columns]) for at in (3, 4)]


class Pointer:
    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


Nothing = Pointer(0)


def model():
    torch.manual_seed(0)
    x = torch.randn(32768, 4096, device="cuda", requires_grad=True)
    weight = torch.randn(4096, device="cuda", requires_grad=True)
    bias = torch.randn(4096, device="cuda", requires_grad=True)

    def loss(x, weight, bias):
        y = torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias)
        y = torch.nn.functional.gelu(y) + x
        return (torch.softmax(y, dim=-1) * y).sum()

    def step(compiled):
        for tensor in (x, weight, bias):
            tensor.grad = None
        compiled(x, weight, bias).backward()

    return loss, step


def time_of(step, compiled):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    step(compiled)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def with_patches_of_sanitizer(step, compiled, steps):
    adapter = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    times = {}
    for _ in range(steps):
        for patch in ("", "empty_global", "hotpages", "reuse"):
            if adapter.pasta_sanitizer_patch(patch.encode()) == 1:
                step(compiled)
                times.setdefault(patch or "bare", []).extend(time_of(step, compiled) for _ in range(2))
    adapter.pasta_sanitizer_patch(b"")
    return {"ms": times}


def put_into_kernels(patch_ptx, blocks):
    """From now on. How many accesses of each kernel have the patch before them, and what was not seen."""
    kernels = {}

    def hook(_backend, stages, *_):
        make_ptx = stages["ptx"]

        def with_patch(source, metadata):
            text, accesses, unseen = instrument(make_ptx(source, metadata), patch_ptx, "inline", has_parameter=True)
            kernels[metadata["name"]] = [len(accesses), *unseen]
            metadata["profile_scratch_size"], metadata["profile_scratch_align"] = 1, ALIGN
            return text

        stages["ptx"] = with_patch

    triton.runtime._allocation.set_profile_allocator(blocks)
    triton.knobs.runtime.add_stages_inspection_hook = hook
    return kernels


def with_own_patch(step, compiled, steps, own, kernels, blocks):
    times = {"off": [], "on": []}
    blocks.take_objects()
    for _ in range(steps):
        times["off"].append(time_of(step, compiled))
        blocks.begin()
        times["on"].append(time_of(step, compiled))
        blocks.active = False
    return {"ms": times, "kernels": kernels, "counted": list(blocks.counted()) if own == "reuse" else None}


def main():
    steps, own = int(sys.argv[1]), sys.argv[2:]
    torch._inductor.config.use_static_cuda_launcher = False  # it has no memory of a profiler
    loss, step = model()
    if own:
        patch, ptx, native = own
        blocks = Blocks(patch, native)
        with open(ptx, encoding="utf-8") as file:
            kernels = put_into_kernels(file.read(), blocks)
    compiled = torch.compile(loss)
    for _ in range(3):
        step(compiled)
    if own:
        result = with_own_patch(step, compiled, steps, patch, kernels, blocks)
    elif "CUDA_INJECTION64_PATH" in os.environ:
        result = with_patches_of_sanitizer(step, compiled, steps)
    else:
        result = {"ms": {"bare": [time_of(step, compiled) for _ in range(steps)]}}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
