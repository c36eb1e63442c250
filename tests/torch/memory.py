"""A small network that trains for many iterations and says how much memory this process, and the one that started
it, have after some of them: memory.py plain|mode FIRST LAST

"mode": under a mode that does nothing, to see what PyTorch itself leaves behind (1.13: a device of each that an
operator is given).  Prints a line for FIRST and LAST: iteration, bytes of this process, bytes of its parent, and how
many operators the mode has seen.

SPDX-License-Identifier: MIT
"""
import contextlib
import os
import sys

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.set_num_threads(1)
torch.manual_seed(0)
first, last = map(int, sys.argv[2:4])


class Mode(TorchDispatchMode):
    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Mode.n += 1
        return func(*args, **(kwargs or {}))


def anonymous(pid):
    """What belongs to a process alone, and is in memory: no file, and not what another one shares."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))


net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
with Mode() if sys.argv[1] == "mode" else contextlib.nullcontext():
    for i in range(1, last + 1):
        x, t = torch.randn(3, 4), torch.randint(2, (3,))
        loss = nn.functional.cross_entropy(net(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i in (first, last):
            print(i, anonymous(os.getpid()), anonymous(os.getppid()), Mode.n, flush=True)
