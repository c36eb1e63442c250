"""DistributedDataParallel over gloo, as one of the ranks that mpirun has started, of which one may be slow:
slow.py STORE PLACE RANK MILLISECONDS bn|no ITERATIONS

In each iteration RANK sleeps at PLACE: in the loader of its data, in forward, in backward or behind the step; "none" is
nowhere.  "bn": the model has buffers, which rank 0 gives to all before forward.

SPDX-License-Identifier: MIT
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

RANK, SIZE = (int(os.environ["OMPI_COMM_WORLD_" + what]) for what in ("RANK", "SIZE"))
BATCH = 8
store, place, slow, milliseconds, buffers, n = sys.argv[1:7]
slow, seconds, n = int(slow), float(milliseconds) / 1000, int(n)

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + store, rank=RANK, world_size=SIZE,
                        timeout=datetime.timedelta(seconds=120))
torch.manual_seed(3)


def late(where):
    if where == place and RANK == slow:
        time.sleep(seconds)


class Late(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        late("forward")
        return x.clone()

    @staticmethod
    def backward(ctx, gy):
        late("backward")
        return gy


class Pass(nn.Module):
    def forward(self, x):
        return Late.apply(x)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * n

    def __getitem__(self, i):
        if i % BATCH == 0:
            late("loader")
        numbers = torch.Generator().manual_seed(i * SIZE + RANK)
        return torch.randn(1, 14, 14, generator=numbers), i % 10


net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4) if buffers == "bn" else nn.Identity(), nn.ReLU(),
                    nn.MaxPool2d(2), Pass(), nn.Flatten(), nn.Linear(4 * 49, 32), nn.ReLU(), nn.Linear(32, 10))
model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.01)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, t in torch.utils.data.DataLoader(Data(), batch_size=BATCH):
    loss = nn.functional.cross_entropy(model(x), t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    late("step")
dist.barrier()
