"""What the programs of the tests share: they train, plainly, recorded or under PyTorch's profiler,
and say what came of it as JSON: weights, and the norm of each gradient in each iteration.

    PROGRAM [--mode plain|record|profile|profile-mode] [--tape FILE] [--level LEVEL] [-n ITERATIONS] [--keep]

SPDX-License-Identifier: MIT
"""
import argparse
import contextlib
import hashlib
import json
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--tape")
    parser.add_argument("--level", default="graph")
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def norm(tensor):
    return math.sqrt(math.fsum(x * x for x in tensor.detach().double().flatten().tolist()))


def digest(model):
    h = hashlib.sha256()
    for tensor in list(model.parameters()) + list(model.buffers()):
        h.update(bytes(json.dumps(tensor.detach().double().flatten().tolist()), "ascii"))
    return h.hexdigest()


def counted(profile):
    """Everything that the profiler saw, with the names of what it ran within."""
    rows = []
    for event in profile.events():
        above, parent = [], event.cpu_parent
        while parent is not None:
            above.append(parent.name)
            parent = parent.cpu_parent
        rows.append([event.name, above])
    return rows


def train(model, optimizers, step):
    """step (i) returns the loss; each of the optimizers takes a step after its backward."""
    given = options()
    kept, gradients = [], []
    context, empty, said = contextlib.nullcontext(), contextlib.nullcontext(), {}
    if given.mode == "record":
        import tapedeck
        context = tapedeck.record(given.tape, model, level=given.level, overwrite=True)
    elif given.mode == "profile":
        context = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    elif given.mode == "profile-mode":
        # PyTorch chooses some operators otherwise under a mode, whatever the mode does.
        class Empty(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        empty = Empty()
        context = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with context as recording, empty:
        for i in range(given.n):
            loss = step(i)
            optimizers[0].zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            if given.keep:
                kept.append(loss)
            gradients.append({name: norm(p.grad) for name, p in model.named_parameters()})
    said["weights"] = digest(model)
    said["gradients"] = gradients
    if given.mode.startswith("profile"):
        said["operators"] = counted(recording)
    print(json.dumps(said))
