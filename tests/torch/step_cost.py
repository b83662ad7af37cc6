#!/usr/bin/env python3
"""Processor time of a training step whose operators have next to nothing to do: some 3800 of them with PyTorch 2.11,
in 121 modules. For what watching costs:

    python3 tests/torch/step_cost.py
    pastaprof run --adapter torch --python off -- python3 tests/torch/step_cost.py

With --on, steps take turns in one process with what is named off and on: PASTA under `pastaprof run`, PyTorch's own
profiler of the processor (kineto, and kineto-shapes with the shapes of what operators get), its emit_nvtx() (nvtx), which
needs a PyTorch that is built for CUDA but no GPU, and that under PASTA (pasta-nvtx)."""
import argparse
import contextlib
import pathlib
import statistics
import sys
import time

import torch
from torch import nn

TURNS, STEPS = 12, 20


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


@contextlib.contextmanager
def watched_by(name):
    with contextlib.ExitStack() as on:
        if "pasta" in name:
            import pastaprof
            pastaprof.start()
            on.callback(pastaprof.stop)
        if "kineto" in name:
            on.enter_context(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                                    record_shapes=name == "kineto-shapes"))
        if "nvtx" in name:
            torch.cuda.synchronize = lambda: None  # which it does before and after
            on.enter_context(torch.autograd.profiler.emit_nvtx())
        yield


def times_of(step, steps):
    times = []
    for _ in range(steps):
        begin = time.process_time()
        step()
        times.append((time.process_time() - begin) * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("pasta", "kineto", "kineto-shapes", "nvtx", "pasta-nvtx"))
    on = parser.parse_args().on
    torch.set_num_threads(1)
    model, inputs = nn.Sequential(*(Block(4) for _ in range(30))), torch.ones(2, 4)

    def step():
        model(inputs).sum().backward()
        model.zero_grad(set_to_none=True)

    parts = {}
    if on:
        if "pasta" in on:
            sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
            import pastaprof
            assert pastaprof.watched()
            pastaprof.stop()
        times_of(step, STEPS)
        parts = {"off": [], on: []}
        for _ in range(TURNS):
            parts["off"] += times_of(step, STEPS)
            with watched_by(on):
                parts[on] += times_of(step, STEPS)
    else:
        parts["a step"] = times_of(step, 500)
    print("ms of a step:", "; ".join(f"{name}: least {min(times):.2f}, median {statistics.median(times):.2f}"
                                     for name, times in parts.items()))


if __name__ == "__main__":
    main()
