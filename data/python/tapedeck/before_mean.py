"""A rank's own gradients, as DistributedDataParallel is about to average them: by these `tapedeck ranks` knows ranks that
compute with the same examples, and the one that brings a NaN.

Nobody says which model a bucket is of.  Models are known by their forward; a backward has sent all of one when what its
buckets hold is as much as the model has.  Where two have as much, nothing is said: a sum that is of a mean would make ranks
equal that are not.

SPDX-License-Identifier: MIT
"""
import weakref

import torch

from .facts import storage_of


class BeforeMean:
    """Of a recorder's collectives.  `rows`: of the newest backward, by parameter's name."""

    def __init__(self, row):
        self.row = row  # (name, gradient) -> a row of words
        self.models = weakref.WeakKeyDictionary()  # a DistributedDataParallel -> how many elements it sends
        self.rows = {}
        self.sent = 0  # elements of this backward's buckets

    def saw(self, ddp):
        """Before the first forward of a model nobody knows it."""
        if ddp not in self.models:
            self.models[ddp] = sum(tensor.numel() for _, tensor in parameters_of(ddp))

    def before(self, buckets, name_of):
        """What lies in the bucket itself is the mean as soon as it has gone."""
        stores = {storage_of(tensor)._cdata for tensor in buckets}
        for ddp in list(self.models):
            if ddp.gradient_as_bucket_view:
                self.take(ddp, name_of, lambda gradient: storage_of(gradient)._cdata in stores)

    def after(self, buckets, name_of):
        """The last one has gone, and none has come: DistributedDataParallel waits for them after backward."""
        self.sent += sum(tensor.numel() for tensor in buckets)
        whole = [ddp for ddp, size in list(self.models.items()) if size == self.sent]
        if len(whole) == 1 and not whole[0].gradient_as_bucket_view:
            self.take(whole[0], name_of, lambda gradient: True)

    def ends(self):
        self.sent = 0

    def take(self, ddp, name_of, is_in):
        for _, tensor in parameters_of(ddp):
            name = name_of(tensor) if tensor.grad is not None and tensor.grad.layout == torch.strided else ""
            if name and is_in(tensor.grad):
                self.rows[name] = self.row(name, tensor.grad)

    def take_away(self, name):
        """Of a step: a gradient of before is none of the next one."""
        return self.rows.pop(name, ())


def parameters_of(ddp):
    ignored = set(getattr(ddp, "parameters_to_ignore", ()))
    return [(name, tensor) for name, tensor in ddp.module.named_parameters() if tensor.requires_grad and name not in ignored]
