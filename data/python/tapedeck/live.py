"""The gate: under `tapedeck run` a program is paused, stepped and read before and after its operators.

The library tests whether it is to stop, and waits.  As long as nobody wants anything one word is 0,
and nothing here is called.

SPDX-License-Identifier: MIT
"""
import ctypes
import math
import os
import sys

import torch

from . import library as L
from .facts import DTYPES, current_node, now

NOBODY = ctypes.c_uint32(0)
BEFORE, AFTER, FAILED = range(3)
LOOK_AFTER = 4
INTERRUPTED = 1
FLUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
OUTPUT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)


class Moment(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("when", ctypes.c_uint32), ("kind", ctypes.c_uint32),
                ("phase", ctypes.c_uint32), ("place", ctypes.c_uint32), ("layer", ctypes.c_uint32),
                ("iteration", ctypes.c_uint64), ("n_events", ctypes.c_uint64),
                ("live_bytes", ctypes.c_uint64), ("error", ctypes.c_char_p)]


class Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("dtype", ctypes.c_uint32), ("ndim", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("dims", ctypes.c_int64 * 8),
                ("version", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("data", ctypes.c_void_p)]


class Calls(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("user", ctypes.c_void_p),
                ("flush", FLUSH), ("read", READ), ("output", OUTPUT)]


class Gate:
    """Of a recorder.  `word` is tested before each operator: 0 is the usual."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.moment = Moment(size=ctypes.sizeof(Moment))
        self.at = ctypes.byref(self.moment)
        self.outputs = ()
        self.held = None  # what the library reads, until it has returned
        self.raised = None  # in one of its call-backs, by the program's handler of a signal
        self.calls = Calls(size=ctypes.sizeof(Calls), flush=FLUSH(self.flush), read=READ(self.read),
                           output=OUTPUT(self.output))
        address = recorder.lib.live(recorder.p, ctypes.byref(self.calls))
        self.is_live = bool(address)
        self.word = ctypes.c_uint32.from_address(address) if address else NOBODY
        self.address = ctypes.addressof(self.word)
        for name in ("RING", "CONTROL", "BREAK", "RECORD", "LEVEL"):
            os.environ.pop("TAPEDECK_" + name, None)  # what the program starts is not taken for it

    def close(self):
        self.is_live = False
        self.word = NOBODY

    # --------------------------------------------------------------------- the mode's calls

    def before(self, func, args, frame):
        """An operator comes next.  Returns what is wanted of what it makes, 0: nothing."""
        try:
            if not self.find(func, args, frame):
                return 0
        except Exception as error:
            self.recorder.mistake("the gate", error)
            return 0
        self.recorder.collectives.waiting = 0  # it is paused: the library shows where
        self.wait(BEFORE)
        return self.word.value & LOOK_AFTER

    def after(self, func, args, out):
        """It has run, and a breakpoint asks for its numbers."""
        try:
            if self.find_outputs(func, args, out):
                self.wait(AFTER)
        finally:
            self.outputs = ()

    def failed(self, func, args, error, frame):
        if not self.is_live:
            return
        try:
            if not self.find(func, args, frame):
                return
            lines = str(error).splitlines() or [type(error).__name__]
            self.moment.error = lines[0].encode(errors="replace")[:400]
        except Exception as mistake:
            self.recorder.mistake("the gate", mistake)
            return
        self.wait(FAILED)

    # ------------------------------------------------------------------------- where it is

    def number(self):
        r = self.recorder
        return (r.n_begun - 1, r.event) if r.open else (r.n_begun, 0)

    def find(self, func, args, frame):
        """Fill the moment; False: it is no operator that is recorded."""
        r, m = self.recorder, self.moment
        known = r.operators.get(id(func)) or r.operator(func)
        if not known.kept:
            return False
        m.kind = known.number
        m.phase, m.layer = self.expected(known, args)
        m.place = r.place_of(frame)
        m.iteration, m.n_events = self.number()
        if r.hints:
            r.sweep()
        m.live_bytes = r.live_bytes
        m.error = None
        return True

    def expected(self, known, args):
        """Phase and layer that the recorder will give it."""
        r = self.recorder
        phase, layer = r.phase, r.layer
        if phase == L.BACKWARD and current_node is not None:
            layer = r.twin(layer)[1]
        elif phase == L.UPDATE:
            layer = r.layer_of_update([r.by_id.get(id(tensor)) for tensor in tensors(args)], ())
        elif phase == L.FORWARD and known.writes and r.open and r.gradients and not known.clears:
            if r.gradients_of(tensors(args[i] for i in known.writes if i < len(args))):
                phase = L.UPDATE
        return phase, layer

    def find_outputs(self, func, args, out):
        """What it has made, and where it wrote; False: nothing with numbers."""
        r = self.recorder
        try:
            known = r.operators[id(func)]
            if not known.filled:
                return False
            self.outputs = tensors(out if isinstance(out, (list, tuple)) else (out,))
            for i in known.writes:
                value = args[i] if i < len(args) else ()
                for tensor in tensors(value if isinstance(value, (list, tuple)) else (value,)):
                    if not any(tensor is t for t in self.outputs):
                        self.outputs.append(tensor)
            self.moment.iteration, self.moment.n_events = self.number()
        except Exception as error:
            r.mistake("the gate", error)
            return False
        return True

    def wait(self, when):
        """Where the program stands.  A signal's handler runs in between, and may raise."""
        r = self.recorder
        self.moment.when = when
        stands = INTERRUPTED
        try:
            while stands == INTERRUPTED:
                stands = r.lib.gate(r.p, self.at)
                raised, self.raised = self.raised, None
                if raised is not None:
                    raise raised
        except BaseException:
            r.lib.gate(r.p, None)
            raise
        finally:
            self.held = None

    # --------------------------------------------------------------------- the library's calls

    def kept(self, what, call):
        """Nothing can be raised through the library: what is not the recorder's own mistake waits."""
        try:
            try:
                return call()
            except Exception as error:
                self.recorder.mistake(what, error)
        except BaseException as error:
            self.raised = error
        return 0

    def flush(self, user):
        return self.kept("the gate", self.say_all)

    def read(self, user, variable, address):
        return self.kept("reading an array", lambda: self.give(
            address, lambda array: self.tensor(variable, array.dtype)))

    def output(self, user, i, address):
        return i < len(self.outputs) and self.kept("reading an array", lambda: self.give(
            address, lambda array: self.outputs[i]))

    def say_all(self):
        """All that has happened is said, so that whoever looks at the tape sees it."""
        r = self.recorder
        if not r.begun:
            r.drop_before()
            return
        if not r.open:
            r.begin(now())
        r.flush()

    def tensor(self, variable, dtype):
        """The tensor that the tape calls so, if it is alive: in the program's hands or in autograd's."""
        r = self.recorder
        for key, known in r.by_id.items():
            tensor = r.refs[key]() if known == variable and key in r.refs else None
            if tensor is not None:
                return tensor
        for cdata, storage in r.storages.items():
            for (offset, shape, strides), known in storage.places.items():
                if known == variable:
                    return tensor_at(cdata, dtype, offset, shape, strides)
        return None

    def give(self, address, find):
        """Hand out a tensor's numbers; 0: it is not there, or none that the library can read."""
        r = self.recorder
        on, r.on = r.on, False
        try:
            array = Array.from_address(address)
            tensor = find(array)
            if tensor is None or tensor.device.type == "meta":
                return 0
            array.dtype = L.NO_DTYPE
            array.bytes = 0
            if tensor.layout is torch.strided:
                dense = dense_of(tensor)
                array.dtype = DTYPES.get(dense.dtype, L.NO_DTYPE)
                shape = tuple(dense.shape)
                if len(shape) > 8:  # as the recorder has it
                    shape = (math.prod(shape[:-7]),) + shape[-7:]
                array.ndim = len(shape)
                for d, n in enumerate(shape):
                    array.dims[d] = n
                array.version = 0 if tensor.is_inference() else tensor._version
                array.bytes = dense.numel() * dense.element_size()
                array.data = dense.data_ptr()
                self.held = dense
            return 1
        finally:
            r.on = on


def tensors(values):
    found = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += tensors(value)
        elif isinstance(value, torch.Tensor):
            found.append(value)
    return found


def tensor_at(cdata, dtype, offset, shape, strides):
    """A tensor on a storage, unless that has gone."""
    storage = torch.UntypedStorage._new_with_weak_ptr(cdata)
    of = [known for known, number in DTYPES.items() if number == dtype]
    if storage is None or not of:
        return None
    return torch.empty(0, dtype=of[0], device=storage.device).set_(storage, offset, shape, strides)


def dense_of(tensor):
    """Its numbers on the host, row-major: itself, where it is so."""
    dense = tensor.detach()
    dense = dense.cpu() if dense.device.type != "cpu" else dense
    for resolve in ("resolve_conj", "resolve_neg"):
        dense = getattr(dense, resolve)()
    return dense.contiguous()
