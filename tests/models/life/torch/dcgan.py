"""A DCGAN: two optimizers, spectral normalisation, two backward passes in an iteration, in one of which
the critic's parameters want no gradient.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

import common

torch.manual_seed(4)
torch.set_num_threads(1)
WIDTH, NOISE, BATCH = common.size((4, 6, 3), (16, 32, 8))


def up(n, m, *after):
    return nn.Sequential(nn.ConvTranspose2d(n, m, 4, 2, 1, bias=False), *after)


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(NOISE, 2 * WIDTH * 16)
        self.norm = nn.BatchNorm2d(2 * WIDTH)
        self.up1 = up(2 * WIDTH, WIDTH, nn.BatchNorm2d(WIDTH), nn.ReLU())
        self.up2 = up(WIDTH, 1, nn.Tanh())

    def forward(self, z):
        y = self.first(z).view(-1, 2 * WIDTH, 4, 4)
        return self.up2(self.up1(F.relu(self.norm(y))))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = spectral_norm(nn.Conv2d(1, WIDTH, 4, 2, 1))
        self.down2 = spectral_norm(nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1))
        self.verdict = nn.Linear(2 * WIDTH * 16, 1)

    def forward(self, x):
        y = F.leaky_relu(self.down2(F.leaky_relu(self.down1(x), 0.2)), 0.2)
        return self.verdict(y.flatten(1))


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.painter, self.critic = Painter(), Critic()


nets = Gan()
painter, critic = nets.painter, nets.critic
of_critic, of_painter = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (critic, painter))


def step(i):
    real, z = torch.rand(BATCH, 1, 16, 16), torch.randn(BATCH, NOISE)
    judged = F.softplus(-critic(real)).mean() + F.softplus(critic(painter(z).detach())).mean()
    common.update(judged, of_critic)
    critic.requires_grad_(False)
    loss = F.softplus(-critic(painter(torch.randn(BATCH, NOISE)))).mean()  # what --keep keeps
    common.update(loss, of_painter)
    critic.requires_grad_(True)
    return {"critic": judged, "painter": loss}


common.train(nets, step)
