"""A transformer: embeddings, causal attention by hand, layer normalisation before it, Adam.  At size life
twelve layers, whose last one has the weights of the first embedding.

SPDX-License-Identifier: MIT
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import common

torch.manual_seed(2)
torch.set_num_threads(1)
N, HEADS, LENGTH, WORDS, LAYERS = common.size((16, 2, 8, 20, 2), (48, 4, 32, 100, 12))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(N, 3 * N)
        self.out = nn.Linear(N, N)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)) == 0)

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (y.view(b, t, HEADS, n // HEADS).transpose(1, 2) for y in self.qkv(x).split(n, 2))
        a = q @ k.transpose(2, 3) / math.sqrt(n // HEADS)
        a = a.masked_fill(self.mask, float("-inf")).softmax(-1)
        return self.out((a @ v).transpose(1, 2).reshape(b, t, n))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.attention = nn.LayerNorm(N), Attention()
        self.ln2, self.mlp = nn.LayerNorm(N), nn.Sequential(nn.Linear(N, 2 * N), nn.GELU(), nn.Linear(2 * N, N))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, N), nn.Embedding(LENGTH, N)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.ln, self.head = nn.LayerNorm(N), nn.Linear(N, WORDS, bias=False)
        if common.size(False, True):
            nn.init.normal_(self.words.weight, std=0.02)
            self.head.weight = self.words.weight

    def forward(self, x):
        x = self.words(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


net = Gpt()
optimizer = torch.optim.Adam(net.parameters(), lr=common.size(1e-2, 1e-3))


def step(i):
    x = torch.randint(0, WORDS, (3, LENGTH + 1))
    loss = F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())  # what --keep keeps
    common.update(loss, optimizer)
    return {"loss": loss}


common.train(net, step)
