#!/usr/bin/env python3
"""Processor time of a training step whose operators have next to nothing to do: some 3800 of them with PyTorch 2.11,
in 121 modules. For what watching costs:

    python3 tests/torch/step_cost.py
    pastaprof run --adapter torch --python off -- python3 tests/torch/step_cost.py
"""
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def main(steps=500):
    torch.set_num_threads(1)
    model, inputs = nn.Sequential(*(Block(4) for _ in range(30))), torch.ones(2, 4)
    times = []
    for _ in range(steps):
        begin = time.process_time()
        model(inputs).sum().backward()
        model.zero_grad(set_to_none=True)
        times.append((time.process_time() - begin) * 1e3)
    times.sort()
    print(f"ms of a step: least {times[0]:.2f}, median {times[steps // 2]:.2f}")


if __name__ == "__main__":
    main()
