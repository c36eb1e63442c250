#!/usr/bin/env python3
"""What recording a PyTorch program costs, in microseconds an operation, beside PyTorch's profiler:

    PYTHONPATH=data/python TAPEDECK_PRODUCER=.build/gcc/engine/libtdproducer.so.0 \\
        python3 tests/bench/torch-cost.py

A transformer of small layers, all ways in turn, several times; processor time, the least counts,
of the recorder's with its words handed over, of the profiler's with its stop.

SPDX-License-Identifier: MIT
"""
import math
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import tapedeck

torch.manual_seed(0)
torch.set_num_threads(1)
ITERATIONS, ROUNDS = 10, 5


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
    begin = time.process_time()
    for _ in range(ITERATIONS):
        step()
    return (time.process_time() - begin) / ITERATIONS


def plain():
    return iterations()


def empty():
    with Empty():
        return iterations()


def recorded(level):
    with tempfile.TemporaryDirectory() as folder:
        with tapedeck.record(os.path.join(folder, "t.tdtape"), net, level=level):
            step()  # what is said once
            return iterations()


def profiled():
    begin = time.process_time()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for _ in range(ITERATIONS):
            step()
    return (time.process_time() - begin) / ITERATIONS


WAYS = [("plain", plain), ("an empty mode", empty), ("graph", lambda: recorded("graph")),
        ("stats", lambda: recorded("stats")), ("torch.profiler with its stop", profiled)]
step()
with Count():
    step()
least = {name: math.inf for name, _ in WAYS}
for _ in range(ROUNDS):
    for name, way in WAYS:
        least[name] = min(least[name], way())
print("PyTorch %s, %d operations an iteration" % (torch.__version__, Count.n))
for name, seconds in least.items():
    print("%-30s %7.2f ms   %+7.1f us an operation" % (
        name, 1e3 * seconds, 1e6 * (seconds - least["plain"]) / Count.n))
