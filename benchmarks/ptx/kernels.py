#!/usr/bin/env python3
"""Kernels of Triton as PTX, without a GPU: kernels.py FOLDER writes FOLDER/NAME.ptx and a line for each:
its name, threads of a group, bytes of shared memory. Sizes are those of ptx_steps.cu."""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=mask)


@triton.jit
def layer_norm(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        total += values
        squares += values * values
    mean = tl.sum(total, axis=0) / columns
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns - mean * mean + 1e-5)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        mask = at < columns
        values = (tl.load(x + row * columns + at, mask=mask) - mean) * scale
        values = values * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
        tl.store(out + row * columns + at, values, mask=mask)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros([M, N], dtype=tl.float32)
    for begin in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (begin + inner)[None, :])
        right = tl.load(b + (begin + inner)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    # Lanes write a column: each asks for a sector of its own.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + (at % columns) * rows + at // columns, tl.load(x + at))


POINTER = "*fp32"
KERNELS = [
    (vector_add, {"x": POINTER, "y": POINTER, "out": POINTER, "n": "i32"}, {"BLOCK": 1024}),
    (softmax, {"x": POINTER, "out": POINTER, "columns": "i32"}, {"BLOCK": 1024}),
    (layer_norm, {"x": POINTER, "weight": POINTER, "bias": POINTER, "out": POINTER, "columns": "i32"}, {"BLOCK": 1024}),
    (matmul, {"a": POINTER, "b": POINTER, "c": POINTER, "m": "i32", "n": "i32", "k": "i32"},
     {"M": 64, "N": 64, "K": 32}),
    (transpose, {"x": POINTER, "out": POINTER, "rows": "i32", "columns": "i32"}, {"BLOCK": 1024}),
]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kernel, types, constants in KERNELS:
        names = list(types)
        signature = types | {name: "constexpr" for name in constants}
        # What the launcher finds out of arguments: all of these are multiples of 16.
        multiples = {(names.index(name),): [["tt.divisibility", 16]] for name in names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=multiples)
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        name = made.metadata.name
        (folder / f"{name}.ptx").write_text(made.asm["ptx"])
        print(name, made.metadata.num_warps * 32, made.metadata.shared)


if __name__ == "__main__":
    main()
