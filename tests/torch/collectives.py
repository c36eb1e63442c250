"""What ranks do together in PyTorch over gloo, as one of those that mpirun has started: collectives.py STORE WHAT.

    calls       each kind of call, in a known order
    train       DistributedDataParallel with small buckets and buffers, and a mean of the loss after each step
    slow        the same, with rank 1 late in each iteration
    late-root   the same, with rank 0 late before each forward
    missing     the same, but rank 1 leaves out the mean of iteration 2 and comes to nothing else
    other       the same, but rank 1 goes to a barrier in iteration 2 instead
    unmet       the same, but rank 1 never comes to the others
    lonely      the same, but rank 1 never sends what rank 0 waits for
    wrong       the same, but rank 1 sums three numbers in iteration 2 where the other sums gradients
    transformer of 3 million parameters

The last line of each rank is a hash of its weights.

SPDX-License-Identifier: MIT
"""
import datetime
import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist

RANK, SIZE = (int(os.environ["OMPI_COMM_WORLD_" + what]) for what in ("RANK", "SIZE"))
ITERATIONS = 6
what = sys.argv[2]
torch.set_num_threads(1)
if what == "unmet" and RANK == 1:
    time.sleep(60)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=RANK, world_size=SIZE,
                        timeout=datetime.timedelta(seconds=4 if what in ("missing", "other", "wrong") else 60 if what in ("unmet", "lonely") else 120))


def calls():
    """In one iteration, from the step before to the step after."""
    torch.manual_seed(3)
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    ones = torch.ones(8)
    pair = dist.new_group([0, 1])
    for i in range(2):
        loss = net(torch.ones(2, 4)).sum()
        if i == 1:
            dist.all_reduce(ones)
            work = dist.all_reduce(ones, async_op=True)
            torch.ones(100, 100) @ torch.ones(100, 100)
            work.wait()
            dist.broadcast(ones, 1)
            dist.reduce(ones, 0)
            dist.all_gather([torch.empty(8) for _ in range(SIZE)], ones)
            dist.gather(ones, [torch.empty(8) for _ in range(SIZE)] if RANK == 0 else None, 0)
            dist.scatter(ones, [torch.ones(8) for _ in range(SIZE)] if RANK == 0 else None, 0)
            dist.all_to_all_single(torch.empty(2 * SIZE), torch.ones(2 * SIZE))
            dist.barrier()
            if RANK < 2:
                dist.all_reduce(torch.ones(3, dtype=torch.float64), group=pair)
            if RANK == 0:
                dist.send(ones, 1)
                dist.isend(ones, 1).wait()
            elif RANK == 1:
                dist.recv(ones, 0)
                dist.recv(ones)
        loss.backward()
        optimizer.step()
    return net


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                         torch.nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.inner(self.norms[1](x))


class Transformer(torch.nn.Module):
    def __init__(self, words=1000, width=192, n=6):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.blocks = torch.nn.ModuleList(Block(width, 6) for _ in range(n))
        self.out = torch.nn.Linear(width, words)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def mean_of(loss):
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean / SIZE


def train():
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(),
                              torch.nn.Linear(32, 2))
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(10 + RANK)
    for i in range(ITERATIONS):
        if what == "late-root" and RANK == 0:
            time.sleep(0.3)
        loss = model(torch.randn(8, 16)).square().mean()
        if what == "slow" and RANK == 1:
            time.sleep(0.3)
        if i == 2 and RANK == 1 and what == "wrong":
            dist.all_reduce(torch.ones(3))
        loss.backward()
        if i == 2 and RANK == 0 and what == "lonely":
            dist.recv(torch.ones(3), 1)
        if i == 2 and RANK == 1 and what in ("missing", "lonely"):
            time.sleep(60)
        if i == 2 and RANK == 1 and what == "other":
            dist.barrier()
        mean_of(loss)
        optimizer.step()
        optimizer.zero_grad()
    return net


def transformer():
    torch.manual_seed(3)
    net = Transformer()
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    torch.manual_seed(10 + RANK)
    for _ in range(3):
        x = torch.randint(1000, (4, 33))
        loss = torch.nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        mean_of(loss)
    return net


made = {"calls": calls, "transformer": transformer}.get(what, train)()
print("weights " + hashlib.sha256(b"".join(
    bytes(p.detach().flatten().view(torch.int32).numpy().tobytes()) for p in made.parameters())).hexdigest())
dist.barrier()
