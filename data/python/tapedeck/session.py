"""A recording from its beginning to its end.

SPDX-License-Identifier: MIT
"""
import re

import tapedeck

from .library import Unusable

OLDEST = (1, 13)


def check_torch():
    try:
        import torch
    except ImportError as error:
        raise Unusable("PyTorch is not there for this Python: %s" % error) from None
    version = tuple(int(n) for n in re.findall(r"\d+", str(torch.__version__))[:2])
    if version < OLDEST:
        raise Unusable("PyTorch %s is too old: %d.%d is needed" % ((torch.__version__,) + OLDEST))


class Session:
    def __init__(self, path, model, level, overwrite, budget, program, extension):
        check_torch()
        from .patches import Patches
        from .live import Gate
        from .recorder import Recorder, mode

        self.recorder = Recorder.new(extension, path, level, overwrite, program, budget)
        self.patches = Patches(self.recorder)
        self.gate = Gate(self.recorder)
        self.mode = mode(self.recorder, self.gate)
        self.model = model

    def __enter__(self):
        if tapedeck._current is not None:
            raise RuntimeError("tapedeck.record is running already")
        tapedeck._current = self
        r = self.recorder
        self.patches.install()
        self.mode.__enter__()
        if self.model is not None:
            r.register(self.model, r.root_name(self.model))
            r.begun = True  # what runs next belongs to the training
        r.on = True
        return self

    def __exit__(self, kind, error, trace):
        self.close(0 if kind is None else 1)
        return False

    def close(self, status):
        if tapedeck._current is not self:
            return
        tapedeck._current = None
        self.recorder.on = False
        try:
            self.mode.__exit__(None, None, None)
        finally:
            self.patches.remove()
            self.gate.close()
            self.recorder.close(status)

    def report(self, key, value):
        if self.recorder.on:
            self.recorder.report(key, value)

    def iteration(self):
        if self.recorder.on:
            self.recorder.by_hand = True
            self.recorder.finish()
