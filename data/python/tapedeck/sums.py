"""What ranks are compared by: sums of 128 bits of gradients, parameters and states of an optimizer,
after each step of one that trains in several processes.

SPDX-License-Identifier: MIT
"""
import ctypes
import hashlib
import math
import struct
import weakref

import torch

from . import library as L

ODD = 0x9e3779b97f4a7c15  # 2^64 divided by the golden ratio: another element each time


def of_bytes(tensor):
    """128 bits over the elements as they lie in memory, as two words."""
    n = tensor.numel() * tensor.element_size()
    data = (ctypes.c_char * n).from_address(tensor.data_ptr()) if n else b""
    return struct.unpack("qq", hashlib.sha1(data).digest()[:16])


def count_not_finite(tensor):
    """The sum of elements is finite where all are; only where it is not they are counted, which takes ten times as
    long."""
    return 0 if math.isfinite(tensor.sum()) else tensor.numel() - int(torch.isfinite(tensor).sum())


class Sums:
    """Of the ranks of one program; `averages`: they are seen to sum their gradients."""

    def __init__(self, n_ranks):
        self.n_ranks = n_ranks
        self.averages = False
        self.brought = 0  # bytes of all sums since the last step
        self.turn = 0
        self.counts_steps = True  # until a rank has joined the others, who step on
        self.steps = weakref.WeakKeyDictionary()  # optimizer -> how many
        self.names = {}  # of parameters, by their texts' numbers

    def brings(self, n_bytes, backward):
        """A sum of all ranks' tensors: of gradients in backward, and where as much is summed as there is of them, be it
        in half precision.  A loss for the log is less."""
        self.averages |= backward
        self.brought += n_bytes

    def looks(self, optimizer):
        n = sum(tensor.grad.numel() * tensor.grad.element_size() for group in optimizer.param_groups
                for tensor in group["params"] if tensor.grad is not None)
        self.averages |= 0 < n <= 2 * self.brought
        self.brought = 0

    def row(self, kind, path, tensor):
        """One record.  What has no elements that the host can read has none."""
        tensor = tensor.detach()
        if tensor.layout != torch.strided or tensor.device.type == "meta":
            return ()
        tensor = tensor.cpu().contiguous()
        size = tensor.numel()
        number = tensor.dtype.is_floating_point and size > 0
        at = self.turn * ODD % 2 ** 64 % size if number else 0
        sample = float(tensor.view(-1)[at]) if number else 0.0
        not_finite = count_not_finite(tensor) if number else 0
        return (L.SUM, 12, kind, path, 0, self.n_ranks if kind == L.SUM_MEAN else 0, *of_bytes(tensor),
                struct.unpack("q", struct.pack("d", sample))[0], at, size, not_finite)

    def numbers(self, optimizer, text):
        """Steps of this optimizer, learning rate, momentum ...: of each group of parameters."""
        words = []
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        found = [("t", self.steps[optimizer])] if self.counts_steps else []
        for i, group in enumerate(optimizer.param_groups):
            found += [(key if i == 0 else "%s of group %d" % (key, i), value) for key, value in group.items()
                      if isinstance(value, (int, float)) and not isinstance(value, bool)]
        for key, value in found:
            bits = struct.unpack("q", struct.pack("d", value))[0]
            words += (L.SUM, 12, L.SUM_NUMBER, text(key), 0, 0, bits, 0, 0, 0, 0, 0)
        return words

    def of_step(self, optimizer, name_of, text, own):
        """All that a step has updated; name_of(parameter) is "" where it has no name, own(name) the row of this
        rank's gradient, before the mean."""
        self.turn += 1
        self.looks(optimizer)
        words = self.numbers(optimizer, text)
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                name = name_of(tensor)
                if not name or not tensor.requires_grad:
                    continue
                words += own(name)
                if tensor.grad is not None:
                    words += self.row(L.SUM_MEAN if self.averages else L.SUM_GRADIENT, text(name), tensor.grad)
                words += self.row(L.SUM_PARAMETER, text(name), tensor)
                for key, state in optimizer.state.get(tensor, {}).items():
                    if isinstance(state, torch.Tensor):
                        words += self.row(L.SUM_STATE, text("%s/%s" % (name, key)), state)
        return words
