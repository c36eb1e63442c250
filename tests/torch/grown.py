"""Models of real kinds in DistributedDataParallel over gloo, with a fault of one rank:
grown.py STORE gan|transformer FAULT RANK ITERATION ITERATIONS SEED

SPDX-License-Identifier: MIT
"""
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

RANK, SIZE = (int(os.environ["OMPI_COMM_WORLD_" + what]) for what in ("RANK", "SIZE"))
store, kind, fault, odd, at, n, seed = sys.argv[1:8]
odd, at, n, seed = int(odd), int(at), int(n), int(seed)
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + store, rank=RANK, world_size=SIZE,
                        timeout=datetime.timedelta(seconds=60))
torch.manual_seed(seed + (RANK if fault in ("seed", "unsent") else 0))
own = torch.Generator().manual_seed(seed * 977 + (0 if fault == "copies" else RANK + 1))


def does(name, i):
    return fault == name and RANK == odd and i == at


def shared(net):
    return net if fault in ("unsent", "plain") else nn.parallel.DistributedDataParallel(net)


def drawn(*shape, i=-1):
    x = torch.randn(*shape, generator=own)
    if fault == "nan" and RANK == odd and i >= at:
        x.view(-1)[3] = float("nan")
    return x


def step(net, optimizer, i, first, faulty):
    if fault == "unsent":
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= SIZE
    if faulty and does("write", i):
        with torch.no_grad():
            first.bias[1] += 0.25
    if faulty and does("frozen", i):
        first.bias.grad = None
    if faulty and does("rate", i):
        optimizer.param_groups[0]["lr"] = 0.5
    if not (faulty and does("skip", i)):
        optimizer.step()


def gan():
    painter = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 12))
    critic = nn.Sequential(nn.Linear(12, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    paint, judge = shared(painter), shared(critic)
    paints, judges = (torch.optim.Adam(net.parameters(), lr=1e-3) for net in (painter, critic))
    loss = nn.BCEWithLogitsLoss()
    for i in range(n):
        real, z = drawn(6, 12, i=i), drawn(6, 5)
        judges.zero_grad()
        # one forward of each before its backward, as DistributedDataParallel wants it
        both = judge(torch.cat([real, paint(z).detach()]))
        loss(both, torch.cat([torch.ones(6, 1), torch.zeros(6, 1)])).backward()
        step(critic, judges, i, critic[0], True)
        paints.zero_grad()
        for p in critic.parameters():
            p.requires_grad_(False)
        loss(critic(paint(z)), torch.ones(6, 1)).backward()
        for p in critic.parameters():
            p.requires_grad_(True)
        step(painter, paints, i, painter[0], False)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.out = nn.Linear(8, 11)

    def forward(self, x, noise):
        x = self.embed(x) + noise
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.out(x + self.inner(x))


def transformer():
    net = Transformer()
    model = shared(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for i in range(n):
        x = torch.randint(11, (6, 6), generator=own)
        loss = nn.functional.cross_entropy(model(x[:, :-1], drawn(6, 5, 8, i=i) / 100).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        step(net, optimizer, i, net.inner[0], True)


{"gan": gan, "transformer": transformer}[kind]()
dist.barrier()
