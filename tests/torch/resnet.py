"""A small residual network: convolutions, batch normalisation, a shared activation, SGD with momentum.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

torch.manual_seed(1)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, n, relu):
        super().__init__()
        self.conv1 = nn.Conv2d(n, n, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n)
        self.conv2 = nn.Conv2d(n, n, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n)
        self.relu = relu

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(x + self.norm2(self.conv2(y)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        relu = nn.ReLU(inplace=True)
        self.stem = nn.Conv2d(1, 6, 3, padding=1)
        self.blocks = nn.Sequential(Block(6, relu), Block(6, relu))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(6, 10)

    def forward(self, x):
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


net = ResNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def step(i):
    x = torch.randn(4, 1, 8, 8)
    t = torch.randint(0, 10, (4,))
    return F.cross_entropy(net(x), t)


common.train(net, [optimizer], step)
