"""DistributedDataParallel over gloo, as one of the ranks that mpirun has started, with one mistake:
ddp.py STORE [write|rate|alone|adam|nan|copies|view|short|last|lengths|average|average-load|skip|twice|clip|hand|join|join-twice|
join-write|join-leave|unused|other|log|log-dies|log-hangs|log-raises|log-apart|length|barrier|log-scale|slope|own-part|share|share-tensor|
leave|accumulate|accumulate-hook|inside|inside-once|inside-one|inside-hand|inside-look|no-sync|nan-write|nan-under|nan-load|pair|pair-nan|pair-joint-nan|pair-view-nan].

The last line of each rank is the sum of its weights, to the last bit.

SPDX-License-Identifier: MIT
"""
import contextlib
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed

RANK, SIZE = (int(os.environ["OMPI_COMM_WORLD_" + what]) for what in ("RANK", "SIZE"))
ITERATIONS, ODD = 5, 2
mistake = sys.argv[2] if len(sys.argv) > 2 else ""
odd = RANK == SIZE - 1

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=RANK, world_size=SIZE,
                                     timeout=datetime.timedelta(seconds=10 if mistake == "inside-one" else 300))
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
if mistake == "slope":
    net[1] = torch.nn.LeakyReLU(0.3 if odd else 0.01)
if mistake == "unused":
    net[1].spare = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))
view = mistake in ("view", "pair-view-nan")
model = net if mistake in ("alone", "log-apart") else torch.nn.parallel.DistributedDataParallel(
    net, gradient_as_bucket_view=view, find_unused_parameters=mistake == "unused")
other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))  # of the same size
second = torch.nn.parallel.DistributedDataParallel(other, gradient_as_bucket_view=view) if mistake.startswith("pair") else None
if mistake == "adam":
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
else:
    optimizer = torch.optim.SGD([*model.parameters(), *(other.parameters() if second else ())], lr=0.2 if odd and mistake == "rate" else 0.1,
                                momentum=0 if mistake.startswith("join") or mistake == "log-apart" else 0.9)
if mistake == "accumulate-hook":
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    model.register_comm_hook(None, fp16_compress_hook)
numbers = torch.Generator().manual_seed(10 + (0 if mistake in ("copies", "view") else RANK))
examples = torch.randn(44, 4, generator=torch.Generator().manual_seed(1))
average = [p.detach().clone() for p in net.parameters()] if mistake.startswith("average") else []


def inside_at(i):
    """Is the module called by itself?"""
    return mistake in ("inside", "inside-hand") or i == ODD and (mistake == "inside-once" or odd and mistake == "inside-one")


for epoch in range(2 if mistake.startswith("join") else 0):  # in which each rank has more batches than the next one
    with model.join(divide_by_initial_world_size=False):
        for i in range(ITERATIONS - RANK):
            if mistake == "join-write" and odd and epoch == 1 and i == 1:
                with torch.no_grad():
                    net[0].bias.add_(0.5)
            optimizer.zero_grad()
            for k in range(2 if mistake == "join-twice" else 1):
                with model.no_sync() if mistake == "join-twice" and k == 0 else contextlib.nullcontext():
                    model(torch.randn(6, 4, generator=numbers)).square().mean().backward()
            if not (mistake == "join-leave" and odd and epoch == 1 and i > 0):
                optimizer.step()
for i in range(0 if mistake.startswith("join") else ITERATIONS):
    if odd and mistake == "write" and i == ODD:
        with torch.no_grad():
            net[0].bias.add_(0.5)
    if odd and mistake == "nan-write" and i == ODD:
        net[2].weight.data[1] = float("nan")
    if odd and mistake == "nan-under" and i == ODD:
        with torch.no_grad():
            net[0].bias.mul_(float("nan"))
    if odd and mistake == "nan-load" and i == ODD:
        net.load_state_dict({key: value * float("nan") for key, value in net.state_dict().items()})
    if odd and i == ODD and mistake == "log-dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if odd and i == ODD and mistake == "log-hangs":
        time.sleep(100)
    if mistake == "length":
        torch.distributed.all_reduce(torch.ones(4 if odd and i == ODD else 3))
    if odd and i == ODD and mistake == "barrier":
        torch.distributed.barrier()
    if odd and i == ODD and mistake == "log-raises":
        raise ValueError("a bad row")
    if mistake.startswith("average"):  # of the weights, the same on all ranks
        for kept, now in zip(average, net.parameters()):
            kept.mul_(0.9).add_(now.detach(), alpha=0.1)
            if odd and i == ODD and mistake == "average-load":
                now.data.copy_(kept)
    if mistake == "log":  # all of them do: through a view of which PyTorch says no node
        with torch.no_grad():
            net[0].bias[0] += 0.25
    optimizer.zero_grad()
    n = 3 if odd and mistake in ("short", "share", "share-tensor") or odd and mistake == "last" and i == ITERATIONS - 1 else 6
    if mistake == "lengths":  # of sequences, which come first
        n = (3, 5, 8, 4, 7)[(i + 2 * RANK) % ITERATIONS]
    x = torch.randn(n, 4, generator=numbers)
    if odd and mistake == "nan" and i == ODD:
        x[1, 2] = float("nan")
    if mistake in ("unused", "other"):  # examples that a rank draws by their numbers
        at = int(torch.randint(40, (1,), generator=numbers))
        x = torch.stack([examples[at], examples[(at + RANK) % 40], *examples[at:at + 4]])
    if mistake == "log":  # examples that each rank takes in a row
        x = examples[i * 6 + RANK:i * 6 + RANK + 6]
    if mistake.startswith("accumulate"):
        with model.no_sync():
            model(x).square().mean().backward()
    if odd and mistake == "leave" and i == ODD:
        continue
    with model.no_sync() if mistake == "no-sync" and i == ODD else contextlib.nullcontext():
        y = (model.module if inside_at(i) else model)(x)
    loss = y.square().mean()
    if mistake.startswith("share"):  # by its part of all examples: all of them count alike
        n_all = torch.tensor(float(n))
        torch.distributed.all_reduce(n_all)
        loss = loss * (n * SIZE / n_all if mistake == "share-tensor" else n * SIZE / float(n_all))
    if mistake == "log-scale":
        loss = loss * (4.0 if odd else 1.0)
    if mistake == "own-part":  # numbers that are each rank's own: a part, a seed, and what came of the examples
        loss = loss + torch.nn.functional.dropout(y[:, RANK % 2]).mean() * loss.item()
    if odd and mistake == "other" and i == ODD:
        loss = loss * 2
    if second:
        x = torch.randn(6, 4, generator=numbers)
        if odd and mistake.endswith("nan") and i == ODD:
            x[2, 1] = float("nan")
        loss_of_second = second(x).square().mean()
        if mistake == "pair-joint-nan":
            loss = loss + loss_of_second
        else:
            loss_of_second.backward()
    loss.backward()
    if mistake == "inside-hand":
        for p in net.parameters():
            torch.distributed.all_reduce(p.grad)
            p.grad /= SIZE
    if mistake == "inside-look":  # beside the training
        model.module(examples).square().mean()
    if odd and mistake == "clip" and i == ODD:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)
    if odd and mistake == "hand" and i == ODD:
        net[0].bias.grad[1] = float("nan")
    if not (odd and mistake == "skip" and i == ODD):
        optimizer.step()
    if odd and mistake == "twice" and i == ODD:
        optimizer.step()
    if mistake.startswith("log"):  # the mean loss, on one rank, and the norm of a gradient
        told = torch.tensor([loss.item(), 6.0])
        torch.distributed.all_reduce(told)
        if RANK == 0:
            print("loss", told[0].item() / SIZE, net[0].weight.grad.norm().item(), (loss * 2).item())
print("weights " + float(sum(p.double().sum() for p in net.parameters())).hex())
torch.distributed.barrier()
