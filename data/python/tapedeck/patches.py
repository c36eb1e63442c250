"""Where the recorder learns what operators do not say: calls of modules, backward, steps of
optimizers, forks, exits.  Everything is put back when recording ends.

SPDX-License-Identifier: MIT
"""
import functools
import os
import sys
from threading import get_ident

import torch

from . import library as L
from . import names


TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
OPTIMIZERS = os.path.dirname(os.path.abspath(torch.optim.__file__)) + os.sep
of_optimizers = names.Codes(lambda code: code.co_filename.startswith(OPTIMIZERS))


def codes_of(optimizer):
    """The functions that stand for a step of PyTorch's own optimizers; those of the program run lines of
    its own."""
    return of_optimizers if type(optimizer).__module__.startswith("torch.") else None


class Patches:
    def __init__(self, recorder):
        self.recorder = recorder
        self.undo = []
        self.steps = {}
        self.scoped = []  # the scopes of the program that are open

    def put(self, owner, name, value):
        before = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, value)
        self.undo.append((owner, name, before))

    def install(self):
        self.modules()
        self.scopes()
        self.backward(torch.autograd, "backward")
        self.backward(torch.autograd, "grad")
        self.optimizers()
        self.exits()
        self.subclasses()
        try:
            self.recorder.collectives.install(self.put)
        except Exception as error:  # of a PyTorch that is not as those before it
            self.recorder.say("collectives are not recorded: %s: %s" % (type(error).__name__, error))

    def remove(self):
        while self.undo:
            owner, name, before = self.undo.pop()
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def modules(self):
        recorder, bypassed, hang = self.recorder, self.recorder.collectives.bypassed, self.recorder.collectives.hang
        call = torch.nn.Module.__dict__["__call__"]

        def recorded_call(module, *args, **kwargs):
            if not recorder.on or get_ident() != recorder.thread:
                return call(module, *args, **kwargs)
            depth = len(recorder.stack)
            try:
                try:
                    recorder.enter(module)
                    if hang.waits:  # what DistributedDataParallel waited for before its module runs
                        hang.leaves()
                    if bypassed.modules:
                        bypassed.enters(module, recorder.places, sys._getframe(1))
                except Exception as error:
                    recorder.mistake("a layer", error)
                return call(module, *args, **kwargs)
            finally:
                while len(recorder.stack) > depth:
                    recorder.leave()

        make = torch.nn.Module.__dict__["__init__"]

        @functools.wraps(make)
        def recorded_init(module, *args, **kwargs):
            make(module, *args, **kwargs)
            if recorder.on and get_ident() == recorder.thread:
                recorder.was_made(module)

        self.put(torch.nn.Module, "__call__", recorded_call)
        self.put(torch.nn.Module, "__init__", recorded_init)

    def scopes(self):
        """The program's torch.profiler.record_function; PyTorch's own, as around an optimizer's step, say what
        the tape says anyway."""
        recorder, patches = self.recorder, self
        cls = torch.autograd.profiler.record_function
        enter, leave = cls.__enter__, cls.__exit__

        @functools.wraps(enter)
        def recorded_enter(scope):
            if (recorder.on and get_ident() == recorder.thread
                    and not sys._getframe(1).f_code.co_filename.startswith(TORCH)):
                recorder.open_scope(str(scope.name))
                patches.scoped.append(scope)
            return enter(scope)

        @functools.wraps(leave)
        def recorded_leave(scope, *args):
            while any(known is scope for known in patches.scoped):  # ends those in it, too
                patches.scoped.pop()
                recorder.close_scope()
            return leave(scope, *args)

        self.put(cls, "__enter__", recorded_enter)
        self.put(cls, "__exit__", recorded_leave)

    def backward(self, owner, name):
        recorder = self.recorder
        run = getattr(owner, name)
        codes = self.engine_codes()

        @functools.wraps(run)
        def recorded(*args, **kwargs):
            if not recorder.on or get_ident() != recorder.thread:
                return run(*args, **kwargs)
            before = recorder.phase, recorder.phase_place, recorder.phase_codes
            try:
                recorder.nodes_begin()
            except Exception as error:
                recorder.mistake("backward", error)
            recorder.phase, recorder.phase_codes = L.BACKWARD, codes
            recorder.phase_place = recorder.places.here(sys._getframe(1))
            recorder.backward_begins()
            try:
                result = run(*args, **kwargs)
            except BaseException as error:
                recorder.backward_ends(error)
                raise
            finally:
                recorder.phase, recorder.phase_place, recorder.phase_codes = before
            recorder.backward_ends()
            return result

        self.put(owner, name, recorded)

    @staticmethod
    def engine_codes():
        """Functions of PyTorch that call its engine: what runs right below them is no line of Python."""
        import torch.autograd.graph
        callers = (torch.autograd.backward, torch.autograd.grad,
                   getattr(torch.autograd.graph, "_engine_run_backward", None))
        codes = [getattr(c, "__wrapped__", c).__code__ for c in callers if c is not None]
        return names.Codes(lambda code: code in codes)

    # ---- optimizers

    def optimizers(self):
        patches = self
        base = torch.optim.Optimizer
        make = base.__init__

        @functools.wraps(make)
        def recorded_init(optimizer, *args, **kwargs):
            make(optimizer, *args, **kwargs)
            patches.step(type(optimizer))

        self.put(base, "__init__", recorded_init)
        classes = [base]
        while classes:
            cls = classes.pop()
            classes += cls.__subclasses__()
            if cls is not base:
                self.step(cls)

    def step(self, cls):
        """Wrap the step of a class, where it defines one."""
        for owner in cls.__mro__:
            if "step" in owner.__dict__:
                break
        else:
            return
        step = owner.__dict__["step"]
        # PyTorch wraps it once more when the first optimizer of the class is made.
        if owner is torch.optim.Optimizer or getattr(step, "_tapedeck", None) is self:
            return
        recorder = self.recorder

        @functools.wraps(step)
        def recorded_step(optimizer, *args, **kwargs):
            if not recorder.on or recorder.phase == L.UPDATE or get_ident() != recorder.thread:
                return step(optimizer, *args, **kwargs)
            before = recorder.phase, recorder.phase_place, recorder.phase_codes
            recorder.phase, recorder.phase_codes = L.UPDATE, codes_of(optimizer)
            recorder.phase_place = recorder.places.here(sys._getframe(1))
            try:
                return step(optimizer, *args, **kwargs)
            finally:
                recorder.phase, recorder.phase_place, recorder.phase_codes = before
                try:
                    recorder.states(optimizer)
                    recorder.without_gradient(optimizer)
                    recorder.step_ends(optimizer)
                except Exception as error:
                    recorder.mistake("a step", error)

        recorded_step._tapedeck = self
        self.put(owner, "step", recorded_step)

    # ---- what a mode breaks

    def subclasses(self):
        """PyTorch 1.13 cannot make a tensor a subclass under any mode: there none is on meanwhile."""
        off = getattr(torch._C, "_DisableTorchDispatch", None)
        if not torch.__version__.startswith("1."):
            return
        turn = torch.Tensor.as_subclass

        @functools.wraps(turn)
        def as_subclass(tensor, cls):
            guard = off()
            try:
                return turn(tensor, cls)
            finally:
                del guard

        self.put(torch.Tensor, "as_subclass", as_subclass)

    # ---- the process

    def exits(self):
        recorder = self.recorder
        leave = os._exit

        def recorded_exit(status):
            try:
                recorder.close(status if isinstance(status, int) else 1)
            finally:
                leave(status)

        self.put(os, "_exit", recorded_exit)
        os.register_at_fork(after_in_child=lambda: forget(recorder))


def forget(recorder):
    """In a forked child: the tape is the parent's."""
    recorder.on = False
    recorder.p = None
