"""A rank's own gradients, as DistributedDataParallel is about to average them: by these `tapedeck ranks` knows ranks that
compute with the same examples, and the one that brings a NaN.

Nobody says which model a bucket is of.  Where gradients lie in the buckets, that tells; else those of a model whose
backward has run are another tensor, or another version of one, than when it began: until backward is over they are
this rank's own.

SPDX-License-Identifier: MIT
"""
import weakref

import torch

from .facts import storage_of


class BeforeMean:
    """Of a recorder's collectives.  `rows`: of the newest backward, by parameter's name."""

    def __init__(self, row):
        self.row = row  # (name, gradient) -> a row of words
        self.models = weakref.WeakKeyDictionary()  # a DistributedDataParallel -> its gradients when backward began
        self.armed = weakref.WeakSet()  # those whose forward has run: the next backward of them is going to be averaged
        self.rows = {}

    def saw(self, ddp):
        """Before the first forward of a model nobody knows it."""
        if ddp not in self.models:
            self.models[ddp] = {}
        if ddp.require_backward_grad_sync:
            self.armed.add(ddp)

    def begins(self):
        """Of one model alone it is no question whose gradients a backward makes."""
        for ddp in list(self.models) if len(self.models) > 1 else ():
            self.models[ddp] = {name: state_of(tensor.grad) for name, tensor in parameters_of(ddp)}

    def before(self, buckets, name_of):
        """What lies in the bucket itself is the mean as soon as it has gone.  Returns whose they are."""
        stores = {storage_of(tensor)._cdata for tensor in buckets}
        return [ddp for ddp in list(self.models) if ddp.gradient_as_bucket_view
                and self.take(ddp, name_of, lambda name, gradient: storage_of(gradient)._cdata in stores)]

    def ends(self, name_of):
        """Backward has run, and DistributedDataParallel has not waited for what it has sent.  Returns whose have gone."""
        return [ddp for ddp in list(self.armed) if not ddp.gradient_as_bucket_view and self.take(
            ddp, name_of, lambda name, gradient: len(self.models) == 1 or self.models[ddp].get(name) != state_of(gradient))]

    def take(self, ddp, name_of, is_one):
        found = False
        for own, tensor in parameters_of(ddp):
            name = name_of(tensor) if tensor.grad is not None and tensor.grad.layout == torch.strided else ""
            if name and is_one(own, tensor.grad):
                self.rows[name] = self.row(name, tensor.grad)
                found = True
        return found

    def take_away(self, name):
        """Of a step: a gradient of before is none of the next one."""
        return self.rows.pop(name, ())


def state_of(gradient):
    return None if gradient is None else (id(gradient), gradient._version)


def parameters_of(ddp):
    ignored = set(getattr(ddp, "parameters_to_ignore", ()))
    return [(name, tensor) for name, tensor in ddp.module.named_parameters() if tensor.requires_grad and name not in ignored]
