#!/usr/bin/env python3
"""Forks children that train ResNet-50 and kills each at some moment: kills.py COUNT SEED FOLDER

Each child writes into FOLDER/N when its steps ended; the parent adds when it killed it."""
import os
import pathlib
import random
import signal
import struct
import sys
import time

import torch
import torchvision  # noqa: F401  before the fork, so that children begin at once

from workload import make

AT_ONCE = 8


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def child(path):
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    step = make("resnet50-train")
    while True:
        step()
        os.write(log, struct.pack("qq", os.getpid(), now()))


def main():
    count, seed, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    random.seed(seed)
    alive = {}
    started = 0
    while started < count or alive:
        while started < count and len(alive) < AT_ONCE:
            path = folder / str(started)
            pid = os.fork()
            if pid == 0:
                child(path)
            alive[pid] = (path, None, random.uniform(0.3, 3))
            started += 1
        time.sleep(0.005)
        for pid, (path, first, after) in list(alive.items()):
            if first is None:
                if path.exists() and path.stat().st_size >= 16:
                    alive[pid] = (path, now(), after)
            elif now() - first > after * 1e9:
                killed = now()
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                with open(path, "ab") as log:
                    log.write(struct.pack("qq", -1, killed))
                del alive[pid]
    assert not torch.cuda.is_initialized()


if __name__ == "__main__":
    main()
