"""A language model of LSTM cells, unrolled by hand; its state is carried along, cut off from the graph;
gradients are clipped; AdamW.  At size life 200 steps.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

torch.manual_seed(3)
torch.set_num_threads(1)
STEPS, N = common.size((6, 10), (200, 32))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.LSTMCell(8, N), nn.Linear(N, 12)

    def forward(self, x, state):
        ys = []
        for t in range(x.shape[1]):
            state = self.cell(self.words(x[:, t]), state)
            ys.append(self.out(state[0]))
        return torch.stack(ys, 1), state


net = Lstm()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
state = (torch.zeros(3, N), torch.zeros(3, N))


def step(i):
    global state
    x = torch.randint(0, 12, (3, STEPS + 1))
    y, after = net(x[:, :-1], state)
    state = tuple(s.detach() for s in after)
    loss = F.cross_entropy(y.flatten(0, 1), x[:, 1:].flatten())  # what --keep keeps
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1000.0)
    optimizer.step()
    return {"loss": loss}


common.train(net, step)
