"""Small networks as PyTorch programs have them, with an input each: name -> (module, inputs).

SPDX-License-Identifier: MIT
"""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Of a ResNet: two convolutions, and a shortcut."""

    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.down = None
        if stride != 1 or c_in != c_out:
            self.down = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(h + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        layers, c_in = [], 64
        for c_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers.append(nn.Sequential(Block(c_in, c_out, stride), Block(c_out, c_out, 1)))
            c_in = c_out
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.layers(x), 1), 1))


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(size, 3 * size), nn.Linear(size, size), heads
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        w = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        w = w.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(w, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Layer(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, words=50, size=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, size), nn.Embedding(32, size)
        self.layers = nn.Sequential(Layer(size, 4), Layer(size, 4))
        self.ln = nn.LayerNorm(size)
        self.head = nn.Linear(size, words, bias=False)

    def forward(self, ids):
        places = torch.arange(0, ids.size(1), device=ids.device)
        return self.head(self.ln(self.layers(self.wte(ids) + self.wpe(places))))


class Double(nn.Sequential):
    def __init__(self, c_in, c_out):
        super().__init__(nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(),
                         nn.Conv2d(c_out, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU())


class UNet(nn.Module):
    """Up once by a transposed convolution, once by interpolation."""

    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.d3 = Double(3, 8), Double(8, 16), Double(16, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.u2, self.u1 = Double(32, 16), Double(24, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.up(self.d3(F.max_pool2d(b, 2)))
        c = self.u2(torch.cat([b, c], 1))
        c = F.interpolate(c, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(self.u1(torch.cat([a, c], 1))))


class Lstm(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.embed, self.layer = nn.Embedding(20, 12), layer
        self.fc = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), 20)

    def forward(self, ids):
        y, _ = self.layer(self.embed(ids))
        return F.log_softmax(self.fc(y[:, -1]), dim=1)


def mlp():
    return nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 30), nn.LeakyReLU(0.1), nn.Dropout(0.5),
                         nn.Linear(30, 5), nn.Softmax(dim=1))


def ids(top, *shape):
    return torch.randint(0, top, shape)


class Turns(nn.Module):
    """Scripted, its loop and its branches go into the file."""

    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor):
        for i in range(x.size(0)):
            if bool(x.sum() > 0):
                x = torch.tanh(self.inner(x))
            else:
                x = torch.relu(self.inner(x)) - 0.1 * i
        return self.out(x)


def nets():
    yield "mlp", mlp(), (torch.randn(4, 20),)
    yield "resnet18", ResNet18(), (torch.randn(2, 3, 64, 64),)
    yield "gpt", Gpt(), (ids(50, 2, 16),)
    yield "unet", UNet(), (torch.randn(2, 3, 16, 24),)
    yield "lstm", Lstm(nn.LSTM(12, 16, 2, batch_first=True)), (ids(20, 3, 9),)
    yield "bilstm", Lstm(nn.LSTM(12, 16, batch_first=True, bidirectional=True)), (ids(20, 3, 9),)
    yield "gru", Lstm(nn.GRU(12, 16, 2, batch_first=True)), (ids(20, 3, 9),)
    for sign in (1, -1):
        yield f"turns that begin {'above' if sign > 0 else 'below'} 0", torch.jit.script(Turns()), (
            sign * torch.randn(4, 6).abs(),)
