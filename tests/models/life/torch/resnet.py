"""A residual network: convolutions, batch normalisation, a shared activation, SGD with momentum and weight
decay.  At size life ResNet-18 of width 16 for 32 x 32 pictures.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

torch.manual_seed(1)
torch.set_num_threads(1)
WIDTH, PIXELS, STRIDES = common.size((6, 8, (1, 1)), (16, 32, (1, 1, 2, 1, 2, 1, 2, 1)))


class Block(nn.Module):
    def __init__(self, n, m, stride, relu):
        super().__init__()
        self.conv1 = nn.Conv2d(n, m, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(m)
        self.conv2 = nn.Conv2d(m, m, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(m)
        self.relu = relu
        self.short = nn.Sequential() if stride == 1 else nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False),
                                                                       nn.BatchNorm2d(m))

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.short(x) + self.norm2(self.conv2(y)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        relu, n, blocks = nn.ReLU(inplace=True), WIDTH, []
        self.stem = nn.Conv2d(1, n, 3, padding=1)
        for stride in STRIDES:
            blocks.append(Block(n, n * stride, stride, relu))
            n *= stride
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(n, 10)

    def forward(self, x):
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


net = ResNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


def step(i):
    x = torch.randn(4, 1, PIXELS, PIXELS)
    t = torch.randint(0, 10, (4,))
    loss = F.cross_entropy(net(x), t)  # what --keep keeps
    common.update(loss, optimizer)
    return {"loss": loss}


common.train(net, step)
