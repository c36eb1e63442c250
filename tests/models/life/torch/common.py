"""What the programs of this folder share: they train, and with --mode say what came of it as JSON: weights, and
the norm of each gradient in each iteration; plainly, recorded by themselves, or under PyTorch's profiler.

    PROGRAM [--size quick|life] [-n ITERATIONS] [--keep]
            [--mode plain|record|profile|profile-mode] [--tape FILE] [--level LEVEL] [--gradients FILE]

SPDX-License-Identifier: MIT
"""
import argparse
import contextlib
import hashlib
import json
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from tapedeck import report
except ImportError:
    def report(key, value):
        """Nothing records."""

parser = argparse.ArgumentParser()
parser.add_argument("--size", choices=("quick", "life"), default="quick")
parser.add_argument("--mode", choices=("plain", "record", "profile", "profile-mode"))
parser.add_argument("--tape")
parser.add_argument("--level", default="graph")
parser.add_argument("-n", type=int, default=4)
parser.add_argument("--keep", action="store_true", help="of each iteration its last loss, by mistake")
parser.add_argument("--gradients", metavar="FILE", help="of the last iteration, for torch.load")
given = parser.parse_args()


def size(quick, life):
    """quick for the tests of what is recorded, life as large as what people bring."""
    return life if given.size == "life" else quick


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


class Empty(TorchDispatchMode):
    """PyTorch chooses some operators otherwise under a mode, whatever the mode does."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def contexts(model):
    if given.mode == "record":
        import tapedeck
        return tapedeck.record(given.tape, model, level=given.level, overwrite=True), contextlib.nullcontext()
    if given.mode in ("profile", "profile-mode"):
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        return profile, Empty() if given.mode == "profile-mode" else contextlib.nullcontext()
    return contextlib.nullcontext(), contextlib.nullcontext()


def update(loss, optimizer):
    """A step of a program that has no more to it."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(model, step, finish=None):
    """step (i) does all of an iteration and returns its losses by name; finish () is run behind the last one."""
    kept, norms = [], []
    context, empty = contexts(model)
    with context as recording, empty:
        for i in range(given.n):
            losses = step(i)
            for name, loss in losses.items():
                report(name, loss)
            if given.keep:
                kept.append(loss)
            if given.mode:
                norms.append({name: norm(p.grad) for name, p in model.named_parameters() if p.grad is not None})
        if finish is not None:
            finish()
    if given.gradients:
        torch.save({name: p.grad for name, p in model.named_parameters() if p.grad is not None}, given.gradients)
    if not given.mode:
        return
    said = {"weights": digest(model), "gradients": norms}
    if given.mode.startswith("profile"):
        said["operators"] = counted(recording)
    print(json.dumps(said))
