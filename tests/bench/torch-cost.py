#!/usr/bin/env python3
"""What recording a PyTorch program costs, in microseconds an operation, beside PyTorch's profiler:

    PYTHONPATH=data/python TAPEDECK_PRODUCER=.build/gcc/engine/libtdproducer.so.0 \\
        TAPEDECK_EXTENSION=.build/gcc/data/python/_tapedeck.abi3.so python3 tests/bench/torch-cost.py

A transformer of small layers, all ways in turn in one process; of 100 iterations of each the least and
the median of the processor's time, of the recorder's with its words handed over, of the profiler's with
its stop (that of ten iterations, parted among them).  With --json the least of each beyond the plain run as JSON.

SPDX-License-Identifier: MIT
"""
import json
import math
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import tapedeck
import tapedeck.library

torch.manual_seed(0)
torch.set_num_threads(1)
ITERATIONS, ROUNDS = 10, 10


class Layer(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln1, self.qkv, self.out = nn.LayerNorm(n), nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.ln2, self.mlp = nn.LayerNorm(n), nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (y.view(b, t, 2, n // 2).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(n, 2))
        a = (q @ k.transpose(2, 3) / math.sqrt(n // 2)).softmax(-1)
        x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, n))
        return x + self.mlp(self.ln2(x))


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Count(TorchDispatchMode):
    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.n += 1
        return func(*args, **(kwargs or {}))


net = nn.Sequential(*[Layer(16) for _ in range(4)])
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
x = torch.randn(2, 8, 16)


def step():
    optimizer.zero_grad()
    F.mse_loss(net(x), x).backward()
    optimizer.step()


def iterations():
    times = []
    for _ in range(ITERATIONS):
        begin = time.process_time()
        step()
        times.append(time.process_time() - begin)
    return times


def plain():
    return iterations()


def empty():
    with Empty():
        return iterations()


def recorded(level, extension):
    with tempfile.TemporaryDirectory() as folder:
        with tapedeck.record(os.path.join(folder, "t.tdtape"), net, level=level, extension=extension):
            step()  # what is said once
            return iterations()


def profiled():
    begin = time.process_time()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for _ in range(ITERATIONS):
            step()
    return [(time.process_time() - begin) / ITERATIONS]


def has_extension():
    try:
        recorded("graph", True)
    except tapedeck.library.Unusable:
        return False
    return True


WAYS = [("plain", plain), ("an empty mode", empty), ("torch.profiler with its stop", profiled)]
for level in ("graph", "stats"):
    WAYS.append((level + " by ctypes", lambda level=level: recorded(level, False)))
    if has_extension():
        WAYS.append((level + " by the extension", lambda level=level: recorded(level, True)))
step()
with Count():
    step()
times = {name: [] for name, _ in WAYS}
for _ in range(ROUNDS):
    for name, way in WAYS:
        times[name] += way()
if "--json" in sys.argv:
    print(json.dumps({name: 1e6 * (min(found) - min(times["plain"])) / Count.n for name, found in times.items()}))
    sys.exit()
print("PyTorch %s, %d operations an iteration; microseconds an operation beyond the plain run" % (
    torch.__version__, Count.n))
print("%-30s %10s %10s %10s %10s" % ("", "least, ms", "median, ms", "least, us", "median, us"))
for name, found in times.items():
    row = [(f(found), f(times["plain"])) for f in (min, statistics.median)]
    print("%-30s %10.2f %10.2f %+10.1f %+10.1f" % (
        (name,) + tuple(1e3 * seconds for seconds, _ in row)
        + tuple(1e6 * (seconds - base) / Count.n for seconds, base in row)))
