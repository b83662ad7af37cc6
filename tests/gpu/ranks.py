#!/usr/bin/env python3
"""One rank of a job of torchrun whose ranks share a GPU and talk by gloo: ranks.py STEPS

In each step rank R fills a tensor R + 1 times, and all add up a vector on the host."""
import sys

import torch
import torch.distributed as dist


def main():
    steps = int(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.cuda.set_device(0)
    values = torch.zeros(1 << 16, device="cuda")
    for _ in range(steps):
        for _ in range(rank + 1):
            values.fill_(rank + 1)
        part = values[:1024].cpu()
        dist.all_reduce(part)
        assert part[0].item() == sum(range(1, dist.get_world_size() + 1))
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
