"""Models in DistributedDataParallel whose gradients it does not average, since it does not know of their forward: the module
inside was called by itself, or all forwards ran under no_sync.  It is told of in the step that takes such gradients, unless
the program has averaged as much by itself.

SPDX-License-Identifier: MIT
"""
import weakref

import torch

# `tapedeck ranks` looks for these words.
SAYS = "the gradients of `%s`%s are not averaged: %s at %s"
BY_ITSELF = "the module inside DistributedDataParallel was called by itself"
NO_SYNC = "DistributedDataParallel ran under no_sync"


class Bypassed:
    """Of a recorder's collectives, since the last step."""

    def __init__(self):
        self.modules = {}  # id of a module inside -> weak reference of its DistributedDataParallel
        self.calls = weakref.WeakKeyDictionary()  # DistributedDataParallel -> (how it ran, where)
        self.averaged = weakref.WeakSet()  # those whose gradients it has averaged
        self.inside = 0  # forwards of DistributedDataParallel
        self.n_brought = 0  # bytes of the program's own sums
        self.backward = False

    def knows(self, ddp):
        module = ddp.module
        self.modules[id(module)] = weakref.ref(ddp, lambda _: self.modules.pop(id(module), None))

    def runs(self, ddp, places, frame):
        """Its own forward, with gradients."""
        if id(ddp.module) not in self.modules:
            self.knows(ddp)
        if not ddp.require_backward_grad_sync and ddp not in self.averaged:
            self.calls.setdefault(ddp, (NO_SYNC, places.where(frame)))

    def enters(self, module, places, frame):
        """Any module is called: by itself, if it is one of those inside."""
        ref = self.modules.get(id(module))
        ddp = ref() if ref is not None and not self.inside and torch.is_grad_enabled() else None
        if ddp is not None and ddp.module is module and ddp not in self.averaged:
            self.calls.setdefault(ddp, (BY_ITSELF, places.where(frame)))

    def are_averaged(self, ddps):
        for ddp in ddps:
            self.calls.pop(ddp, None)
            self.averaged.add(ddp)

    def of_step(self, optimizer, name_of, armed):
        """What is to be said of a step, as one line; None: nothing.  armed: those whose own forward has run, which average
        what comes of it also where nobody sees it: in a hook, or on the threads of a GPU."""
        said, ran = None, self.backward
        held = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        for ddp in set(self.averaged) | set(self.calls) | set(armed):
            own = [tensor for tensor in ddp.module.parameters() if id(tensor) in held]
            if not own:
                continue
            self.averaged.discard(ddp)
            how = self.calls.pop(ddp, None)
            how = None if ddp in armed else how
            armed.discard(ddp)
            found = [tensor for tensor in own if tensor.requires_grad and tensor.grad is not None and name_of(tensor)]
            if how and ran and said is None and sum(t.numel() * t.element_size() for t in found) > self.n_brought:
                said = SAYS % (name_of(found[0]), " and %d more" % (len(found) - 1) if len(found) > 1 else "", *how)
        self.n_brought, self.backward = 0, False
        return said
