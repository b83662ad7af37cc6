#!/usr/bin/env python3
"""Batches by workers of a DataLoader, of which the process of the steps doubles each: loader.py SAMPLES

Once the workers are forked from a process that has the GPU already, as is usual, and once they are spawned
and fill their samples on the GPU themselves, two each time."""
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, count, device):
        self.count, self.device = count, device

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.empty(1 << 12, device=self.device).fill_(index).cpu()


def main():
    count = int(sys.argv[1])
    torch.cuda.init()
    for how, device in (("fork", "cpu"), ("spawn", "cuda")):
        for batch in DataLoader(Samples(count, device), batch_size=4, num_workers=2, multiprocessing_context=how):
            on_gpu = batch.cuda()
            on_gpu.mul_(2)
            assert torch.equal(on_gpu.cpu(), batch * 2)


if __name__ == "__main__":
    main()
