"""A small language model of LSTM cells, unrolled by hand; its state is carried along, cut off from
the graph; gradients are clipped; AdamW.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

torch.manual_seed(3)
torch.set_num_threads(1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.LSTMCell(8, 10), nn.Linear(10, 12)

    def forward(self, x, state):
        ys = []
        for t in range(x.shape[1]):
            state = self.cell(self.words(x[:, t]), state)
            ys.append(self.out(state[0]))
        return torch.stack(ys, 1), state


net = Lstm()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
state = (torch.zeros(3, 10), torch.zeros(3, 10))


class Clipping:
    """Between backward and the step."""

    def step(self):
        nn.utils.clip_grad_norm_(net.parameters(), 1000.0)
        optimizer.step()

    def zero_grad(self):
        optimizer.zero_grad()


def step(i):
    global state
    x = torch.randint(0, 12, (3, 7))
    y, after = net(x[:, :-1], state)
    state = tuple(s.detach() for s in after)
    return F.cross_entropy(y.flatten(0, 1), x[:, 1:].flatten())


common.train(net, [Clipping()], step)
