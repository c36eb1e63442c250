"""A VAE as a trainer runs it: epochs of batches of a DataLoader, after each an evaluation, a snapshot of
all that a checkpoint holds, early stopping, and a run that goes on from the best snapshot.

SPDX-License-Identifier: MIT
"""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import common

torch.manual_seed(5)
torch.set_num_threads(1)
PIXELS, HIDDEN, LATENT, BATCH, EPOCH = common.size((16, 8, 2, 5, 2), (256, 128, 8, 20, 6))
PATIENCE = 3  # epochs without a better one


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.see, self.drop = nn.Linear(PIXELS, HIDDEN), nn.Dropout(0.1)
        self.mean, self.ln_var = nn.Linear(HIDDEN, LATENT), nn.Linear(HIDDEN, LATENT)
        self.imagine, self.paint = nn.Linear(LATENT, HIDDEN), nn.Linear(HIDDEN, PIXELS)

    def forward(self, x):
        h = self.drop(torch.tanh(self.see(x)))
        mean, ln_var = self.mean(h), self.ln_var(h)
        z = mean + torch.exp(0.5 * ln_var) * torch.randn_like(mean)
        y = self.paint(torch.tanh(self.imagine(z)))
        kl = -0.5 * (1 + ln_var - mean ** 2 - ln_var.exp()).sum()
        return (F.binary_cross_entropy_with_logits(y, x, reduction="sum") + kl) / len(x)  # what --keep keeps


class Trainer:
    def __init__(self):
        dots = (torch.rand(BATCH * (EPOCH + 1), PIXELS) < 0.3).float()
        self.train = DataLoader(TensorDataset(dots[BATCH:]), batch_size=BATCH, shuffle=True)
        self.test = DataLoader(TensorDataset(dots[:BATCH]), batch_size=BATCH)
        self.net = Vae()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.batches = iter(self.train)
        self.best, self.snapshot, self.worse = float("inf"), None, 0

    def evaluate(self):
        self.net.eval()
        with torch.no_grad():
            mean = sum(float(self.net(x)) for x, in self.test) / len(self.test)
        self.net.train()
        return mean

    def end_epoch(self):
        mean = self.evaluate()
        common.report("validation", mean)
        self.worse = 0 if mean < self.best else self.worse + 1
        if self.worse == 0:
            self.best, self.snapshot = mean, io.BytesIO()
            torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                        "random": torch.get_rng_state()}, self.snapshot)
        elif self.worse == PATIENCE:  # stopped early: the run goes on from the best one
            self.snapshot.seek(0)
            saved = torch.load(self.snapshot)
            self.net.load_state_dict(saved["net"])
            self.optimizer.load_state_dict(saved["optimizer"])
            torch.set_rng_state(saved["random"])
            self.worse = 0
        self.batches = iter(self.train)

    def step(self, i):
        if i > 0 and i % EPOCH == 0:
            self.end_epoch()
        x, = next(self.batches)
        loss = self.net(x)
        common.update(loss, self.optimizer)
        return {"loss": loss}


trainer = Trainer()
common.train(trainer.net, trainer.step, trainer.evaluate)
