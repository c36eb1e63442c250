"""A transformer or a residual network and its port, with or without a mistake:

    port.py --model gpt|resnet --side original|port [--fault FAULT] --tape FILE [--level LEVEL]
    port.py --model gpt|resnet --side original|port [--fault FAULT] --npz FILE

The second writes what PyTorch computes as a reference, by its hooks alone. Both sides have the same weights, data and steps.  The port has names and classes of
its own: weights of layers lie the other way round, normalisations are written out.

SPDX-License-Identifier: MIT
"""
import argparse
import math
import sys

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

import tapedeck

FAULTS = ("transposed", "epsilon", "bias", "scale", "frozen")
parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=("gpt", "resnet"))
parser.add_argument("--side", choices=("original", "port"))
parser.add_argument("--fault", choices=FAULTS)
parser.add_argument("--tape")
parser.add_argument("--npz")
parser.add_argument("--level", default="stats")
given = parser.parse_args()
torch.manual_seed(4)
torch.set_num_threads(1)
N, HEADS, LENGTH, WORDS, LAYERS = 128, 4, 32, 500, 6


class Attention(nn.Module):
    scaled = True

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(N, 3 * N), nn.Linear(N, N)

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (y.view(b, t, HEADS, n // HEADS).transpose(1, 2) for y in self.qkv(x).split(n, 2))
        a = (q @ k.transpose(2, 3)) / (math.sqrt(n // HEADS) if self.scaled else 1)
        return self.out((a.softmax(-1) @ v).transpose(1, 2).reshape(b, t, n))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(N), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(N), nn.Sequential(nn.Linear(N, 4 * N), nn.GELU(), nn.Linear(4 * N, N))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, N), nn.Embedding(LENGTH, N)
        self.h = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.ln_f, self.head = nn.LayerNorm(N), nn.Linear(N, WORDS, bias=False)

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for layer in self.h:
            x = layer(x)
        return self.head(self.ln_f(x))


class Block(nn.Module):
    def __init__(self, n, m, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, m, 3, stride, 1, bias=True), nn.BatchNorm2d(m)
        self.conv2, self.bn2 = nn.Conv2d(m, m, 3, 1, 1, bias=True), nn.BatchNorm2d(m)
        self.short = nn.Conv2d(n, m, 1, stride) if stride > 1 or n != m else None

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.short is None else self.short(x)))


class Resnet(nn.Module):  # of 18 layers
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16)
        sizes = (16, 16, 32, 64, 128)
        self.stages = nn.ModuleList([nn.Sequential(Block(n, m, 1 if n == m else 2), Block(m, m, 1))
                                     for n, m in zip(sizes, sizes[1:])])
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        for stage in self.stages:
            x = stage(x)
        return self.fc(x.mean((2, 3)))


# ---- the port: other classes, other names, other operators

class Dense(nn.Module):
    """x W + b, with W (in, out)."""

    def __init__(self, of, faults=()):
        super().__init__()
        weight = of.weight.detach().t().clone()
        if "transposed" in faults:
            weight = weight.t().clone()
        self.W = nn.Parameter(weight, requires_grad="frozen" not in faults)
        self.b = nn.Parameter(of.bias.detach().clone()) if of.bias is not None and "bias" not in faults else None

    def forward(self, x):
        y = x @ self.W
        return y if self.b is None else y + self.b


class Norm(nn.Module):
    def __init__(self, of, faults=()):
        super().__init__()
        self.gamma, self.beta = (nn.Parameter(p.detach().clone()) for p in (of.weight, of.bias))
        self.over = (0, 2, 3) if isinstance(of, nn.BatchNorm2d) else (-1,)
        self.shape = (1, -1, 1, 1) if isinstance(of, nn.BatchNorm2d) else (-1,)
        self.epsilon = of.eps if "epsilon" not in faults else 1e-2

    def forward(self, x):
        mean = x.mean(self.over, keepdim=True)
        variance = (x - mean).pow(2).mean(self.over, keepdim=True)
        y = (x - mean) / (variance + self.epsilon).sqrt()
        return y * self.gamma.view(self.shape) + self.beta.view(self.shape)


class Conv(nn.Module):
    def __init__(self, of, faults=()):
        super().__init__()
        weight = of.weight.detach().clone()
        self.W = nn.Parameter(weight.transpose(2, 3).clone() if "transposed" in faults else weight)
        self.b = nn.Parameter(of.bias.detach().clone()) if "bias" not in faults else None
        self.stride, self.pad = of.stride, of.padding

    def forward(self, x):
        return F.conv2d(x, self.W, self.b, self.stride, self.pad)


def port(module, faults):
    for kind, made in ((nn.Linear, Dense), ((nn.LayerNorm, nn.BatchNorm2d), Norm), (nn.Conv2d, Conv)):
        if isinstance(module, kind):
            return made(module, faults)
    module.scaled = "scale" not in faults
    return module


# where a mistake is, by the original's names
PLACES = {"gpt": {"transposed": "h.2.attn.out", "epsilon": "h.3.ln_2", "bias": "h.1.mlp.2", "scale": "h.4.attn",
                  "frozen": "h.3.mlp.2"},
          "resnet": {"transposed": "stages.1.0.conv2", "epsilon": "stages.2.1.bn1", "bias": "stages.0.1.conv1"}}


class Port(nn.Module):
    def __init__(self, net):
        super().__init__()
        place = PLACES[given.model].get(given.fault)
        for path, module in list(net.named_modules())[1:]:
            above, _, name = path.rpartition(".")
            net.get_submodule(above)._modules[name] = port(module, (given.fault,) if path == place else ())
        self.net = net

    def forward(self, x):
        return self.net(x)


net = Gpt() if given.model == "gpt" else Resnet()
with torch.no_grad():  # no bias and no scale is without effect
    for p in net.parameters():
        p.add_(torch.randn_like(p) * 0.05)
if given.side == "port":
    net = Port(net)
torch.manual_seed(5)
x = torch.randint(0, WORDS, (4, LENGTH)) if given.model == "gpt" else torch.randn(4, 3, 16, 16)
y = torch.randint(0, WORDS, (4, LENGTH)) if given.model == "gpt" else torch.randint(0, 10, (4,))


def write_reference():
    arrays = {}

    def keep(key, tensor):
        arrays[key] = tensor.detach().numpy().copy()

    def returned(name, out):
        keep(name + "/out", out)
        out.register_hook(lambda gradient: keep(name + "/grad", gradient))

    for name, module in net.named_modules():
        if name:
            module.register_forward_hook(lambda module, inputs, out, name=name: returned(name, out))
    F.cross_entropy(net(x).flatten(0, -2), y.flatten()).backward()
    for name, p in net.named_parameters():
        if p.grad is not None:
            keep(name + "/grad", p.grad)
    numpy.savez(given.npz, **arrays)


optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
if given.npz:
    write_reference()
    sys.exit()
with tapedeck.record(given.tape, net, level=given.level, overwrite=True):
    F.cross_entropy(net(x).flatten(0, -2), y.flatten()).backward()
    optimizer.step()
