"""Which does what runs with each operator: the extension module where it is there, else `plain`.

SPDX-License-Identifier: MIT
"""
import importlib.machinery
import importlib.util
import os

import torch

from . import facts
from . import library as L
from . import plain

NAME = "_tapedeck.abi3.so"
_known = {}  # file -> the module, or why it cannot be taken


def candidates(beside):
    """Where the extension may lie: named by the environment; in the package, where pip puts it; with the
    library, where it is installed; in a build tree."""
    named = os.environ.get("TAPEDECK_EXTENSION")
    if named is not None:
        return [named] if named else []
    own = [os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)]
    if not os.path.isabs(beside):
        return own
    return own + [os.path.join(beside, "tapedeck", NAME),
                  os.path.join(beside, "..", "data", "python", "extension", NAME)]


def load(path):
    if path not in _known:
        try:
            loader = importlib.machinery.ExtensionFileLoader("_tapedeck", path)
            module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_tapedeck", loader))
            loader.exec_module(module)
            if module.VERSION != L.EXTENSION:
                raise ImportError("it is of another version")
            tell(module)
            _known[path] = module
        except (ImportError, AttributeError, TypeError) as error:
            _known[path] = error
    return _known[path]


def tell(module):
    """What it needs of PyTorch."""
    module.setup(Tensor=torch.Tensor, OpOverload=torch._ops.OpOverload, detach=facts.DETACH,
                 strided=torch.strided, dtypes=facts.DTYPES, storage_of=facts.storage_of,
                 expired=facts.expired, free_weak_ref=facts.free_weak_ref,
                 current_node=facts.current_node, sequence=facts.sequence, pop_mode=facts.pop_mode,
                 push_mode=facts.push_mode, set_mode=facts.set_mode, stack_depth=facts.stack_depth,
                 accumulate=facts.accumulate)


def choose(folder, wanted=None):
    """The extension's module, or `plain`; `wanted` False: that one, True: the extension or an error.
    folder: of the library."""
    why = "it was not found"
    for path in candidates(folder) if wanted is not False else ():
        if not os.path.exists(path):
            continue
        module = load(path)
        if not isinstance(module, Exception):
            return module
        why = "%s: %s" % (path, module)
    if wanted or (wanted is None and os.environ.get("TAPEDECK_EXTENSION")):
        raise L.Unusable("the extension module cannot be loaded (%s)" % why)
    return plain
