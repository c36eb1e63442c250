"""The models of bare-models in PyTorch, as its users would train them: eager, channels_last, the
fastest of cuDNN's engines, fused optimizers.  bf16 both ways that are usual, by autocast and with
parameters of bf16; the faster one counts.

SPDX-License-Identifier: MIT"""
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def tf32(on):
    """By the names of before 2.9, which newer ones warn of and may not have."""
    try:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = on
    except (AttributeError, RuntimeError):
        how = 'tf32' if on else 'ieee'
        torch.backends.cuda.matmul.fp32_precision = how
        torch.backends.cudnn.conv.fp32_precision = torch.backends.cudnn.rnn.fp32_precision = how


def pair(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """As ours, the stride is in the first convolution."""
    def __init__(self, inputs, middle, outputs, stride, past):
        super().__init__()
        self.a = pair(inputs, middle, 1, stride)
        self.b = pair(middle, middle, 3)
        self.c = pair(middle, outputs, 1)
        self.past = pair(inputs, outputs, 1, stride) if past else nn.Identity()

    def forward(self, x):
        h = F.relu(self.b(F.relu(self.a(x))))
        return F.relu(self.c(h) + self.past(x))


def resnet50():
    layers, inputs = [pair(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)], 64
    for n, middle, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(n):
            layers.append(Bottleneck(inputs, middle, 4 * middle, stride if i == 0 else 1, i == 0))
            inputs = 4 * middle
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def attend(q, k, v):
    if hasattr(F, 'scaled_dot_product_attention'):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    unseen = torch.ones_like(scores[0, 0]).triu(1).bool()
    return torch.softmax(scores.masked_fill(unseen, float('-inf')), 3) @ v


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm0, self.norm1 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, places, width = x.shape
        q, k, v = (y.view(n, places, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm0(x)).split(width, 2))
        x = x + self.join(attend(q, k, v).transpose(1, 2).reshape(n, places, width))
        return x + self.narrow(F.gelu(self.wide(self.norm1(x))))


class Gpt2(nn.Module):
    def __init__(self, words, places, width, heads, n):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(n)))
        self.last = nn.LayerNorm(width)

    def forward(self, x):
        h = self.word(x) + self.place.weight[:x.shape[1]]
        return (self.last(self.blocks(h)) @ self.word.weight.t()).flatten(0, 1)


def make(name, small, device):
    """(net, optimizer of parameters, input, labels)"""
    if name == 'resnet50':
        batch, side = (2, 32) if small else (256, 224)
        net = resnet50().to(memory_format=torch.channels_last)
        x = torch.randn(batch, 3, side, side, device=device).to(memory_format=torch.channels_last)
        t = torch.randint(1000, (batch,), device=device)
        return net.to(device), lambda ps: torch.optim.SGD(ps, lr=1e-3, momentum=0.9), x, t
    words, places, batch = (100, 16, 2) if small else (50257, 1024, 8)
    net = Gpt2(words, places, *((32, 2, 2) if small else (768, 12, 12)))
    x = torch.randint(words, (batch, places), device=device)
    t = torch.randint(words, (batch * places,), device=device)
    return net.to(device), lambda ps: torch.optim.Adam(ps, lr=1e-4, fused=device == 'cuda'), x, t


def seconds_of(update, wait, seconds):
    for _ in range(4):
        update()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 3 or (time.perf_counter() < end and len(samples) < 40):
        wait()
        start = time.perf_counter()
        update()
        wait()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def train(name, kind, small, device, wait):
    """One row's time: kind is tf32, autocast or bf16."""
    net, optimizer, x, t = make(name, small, device)
    if kind == 'bf16':
        net = net.to(torch.bfloat16)
        x = x.to(torch.bfloat16) if x.is_floating_point() else x
    opt = optimizer(list(net.parameters()))

    def update():
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=kind == 'autocast'):
            y = net(x)
        F.cross_entropy(y.float(), t).backward()
        opt.step()
    return seconds_of(update, wait, 0.01 if small else 1.6), len(x)


def models(names, small, device, wait, emit):
    torch.backends.cudnn.benchmark = True
    tf32(True)
    for dtype, kinds in (('bf16', ('autocast', 'bf16')), ('tf32', ('tf32',))):
        for name in names:
            row, times = {}, []
            for kind in kinds:
                if device == 'cuda':
                    torch.cuda.reset_peak_memory_stats()
                try:
                    seconds, batch = train(name, kind, small, device, wait)
                except RuntimeError as error:
                    row['torch_error_' + kind] = str(error)[:200]
                    continue
                times.append(seconds)
                row['torch_us_' + kind] = seconds * 1e6
                if device == 'cuda':
                    row['torch_peak_bytes_' + kind] = torch.cuda.max_memory_allocated()
            if times:
                row.update(torch_us=min(times) * 1e6, torch_samples_per_s=batch / min(times))
            for variant in ('', '.static'):
                emit(row='model.%s.%s%s' % (name, dtype, variant), **row)
            if device == 'cuda':
                torch.cuda.empty_cache()
