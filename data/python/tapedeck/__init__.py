"""Records what a PyTorch program does, for Tapedeck.

    python3 -m tapedeck -o run.tdtape train.py ARGS

    with tapedeck.record("run.tdtape", model, level="stats"):
        train(model)

    tapedeck.report("loss", loss)    # a number of a curve; nothing where nothing records
    tapedeck.iteration()             # an iteration ends here, instead of with an optimizer's step

SPDX-License-Identifier: MIT
"""
_current = None


def record(path, model=None, level="graph", overwrite=False, budget=0, program=None,
           extension=None):
    """Record what runs inside the `with`, on this thread, to a tape.

    model: whose layers and parameters have names from the beginning on; others get theirs when they
    are first called.  level: graph, stats for statistics of every output and gradient, or values for
    their elements, too.  overwrite: an older tape may go.  budget: bytes that the tape may have; 0: no bound.
    extension: True, with the extension module or not at all; False, without; None, where it is there.
    """
    from .session import Session
    return Session(path, model, level, overwrite, budget, program, extension)


def report(key, value):
    """Add a number to a curve.  A tensor is read, which waits for its device."""
    if _current is not None:
        _current.report(key, value)


def iteration():
    """End an iteration here: from the first call on only this ends one, no step of an optimizer."""
    if _current is not None:
        _current.iteration()
