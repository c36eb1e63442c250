"""What runs with each operator, in Python: the mode, and what an operator makes of the recorder's state.

The extension module has the same, and is taken where it is there.  Both write the same words; what is
changed here is to be changed there.

SPDX-License-Identifier: MIT
"""
import array
import sys
import weakref

import torch

from . import library as L
from .facts import (CATEGORIES, DETACH, DTYPES, MANY_WORDS, current_node, expired, free_weak_ref, now,
                    sequence, stack_is_python, storage_of)

CALLER = 2 if stack_is_python else 1  # of a mode: PyTorch's stack of them is no line of the program


class Ref(weakref.ref):
    """Of a tensor: with what is to be forgotten when it goes."""

    __slots__ = ("key", "cdata")


class Words(list):
    """What is said, in the library's words."""

    def take(self):
        """All of them, as an array; here are none after that."""
        row = array.array("q", self)
        self.clear()
        return row


class Storage:
    __slots__ = ("number", "bytes", "places", "variables")

    def __init__(self, number, size):
        self.number = number
        self.bytes = size
        self.places = {}  # (offset, shape, strides) -> the newest variable there
        self.variables = []  # all that the library has not been told to forget


class Dispatch:
    """The mode's method.  `recorder` and `gate` are its owner's to set."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        r = self.recorder
        # That PyTorch copies a handle is shown as a detach with a type: no operator has run.
        if not r.on or (types and func is DETACH):
            return func(*args, **kwargs) if kwargs else func(*args)
        looks = self.gate.word.value
        frame = sys._getframe(CALLER)
        if looks:
            looks = self.gate.before(func, args, frame)
        run = r.instead.get(id(func), func) if r.instead else func
        start = now()
        try:
            out = run(*args, **kwargs) if kwargs else run(*args)
        except Exception as why:
            end = now()
            try:
                r.operation(func, args, kwargs, (), start, end, L.FAILED, frame)
            except Exception as error:
                r.mistake(func, error)
            self.gate.failed(func, args, why, frame)
            raise
        try:
            r.operation(func, args, kwargs, out, start, now(), 0, frame)
        except Exception as error:  # the program goes on
            r.mistake(func, error)
        if looks:
            self.gate.after(func, args, out)
        return out


class State:
    """A recorder's, with what changes it at each operator.  The recorder fills it."""

    def operation(self, func, args, kwargs, out, start, end, flags, frame):
        known = self.operators.get(id(func)) or self.operator(func)
        if not known.kept:
            return
        if self.hints:
            self.sweep()
        if self.fresh is not None:
            self.own_nodes()
        if not self.open:
            self.begin(start)
        w = self.words
        phase = self.phase
        layer = self.layer
        place = self.place_of(frame)
        twin = 0

        # what it read, and what else it was given
        ins = []
        rest = None
        written = None
        by_id = self.by_id
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                variable = by_id.get(id(value))
                ins.append(variable if variable is not None else self.meet(value))
                if i in known.writes:
                    written = written or []
                    written.append(value)
            elif isinstance(value, (list, tuple)) and value and any(
                    isinstance(v, torch.Tensor) for v in value):
                for v in value:
                    if isinstance(v, torch.Tensor):
                        ins.append(by_id.get(id(v)) or self.meet(v))
                        if i in known.writes:
                            written = written or []
                            written.append(v)
            elif value is not None:
                if rest is None:
                    rest = []
                rest.append((i, tuple(value) if isinstance(value, list) else value))
        if kwargs:
            for name, value in kwargs.items():
                if isinstance(value, torch.Tensor):
                    ins.append(by_id.get(id(value)) or self.meet(value))
                    if name in known.written:
                        written = written or []
                        written.append(value)
                elif value is not None and value is not False:
                    rest = rest or []
                    rest.append((name, value))

        # which forward operator this is the backward of, where PyTorch says it
        if phase == L.BACKWARD:
            if current_node is not None:
                twin, layer = self.twin(layer)
        elif sequence is not None:
            number = sequence()
            if number > self.last_sequence:
                self.last_sequence = number
                self.owners[number - 1] = (self.event + 1, layer, known.plain, False)

        # what it made, and where it wrote
        changed = ()
        if written and phase == L.UPDATE:
            self.updates(written)  # of the variable that was there: what is made now comes after it
        elif written and phase == L.FORWARD and self.gradients and not known.clears:
            changed = self.gradients_of(written)
        outs = []
        if changed:
            phase = L.BACKWARD  # what is made are gradients
        made = out if isinstance(out, (list, tuple)) else (out,)
        for tensor in made:
            if isinstance(tensor, torch.Tensor):
                outs.append((tensor, self.make(tensor, phase, written)))
            elif isinstance(tensor, (list, tuple)):
                for t in tensor:
                    if isinstance(t, torch.Tensor):
                        outs.append((t, self.make(t, phase, written)))
        if written:
            for tensor in written:
                if not any(t is tensor for t, _ in outs):
                    outs.append((tensor, self.make(tensor, phase, written)))
        if phase == L.UPDATE:
            layer = self.layer_of_update(ins, [variable for _, variable in outs])
        elif phase == L.BACKWARD:
            self.gradients.update([variable for _, variable in outs])
        if changed:
            phase = L.UPDATE
            self.keep_as_left(changed)

        text = 0
        if rest:
            try:
                key = tuple(rest)
                text = known.texts.get(key)
            except TypeError:  # of what has no hash
                key = repr(rest)
                text = known.texts.get(key)
            if text is None:
                text = self.attributes(known, rest, key)
        # at once: a signal's handler may raise in between
        w += (L.OPERATION, 13 + len(ins) + len(outs), known.number, phase, place, layer, flags, 0, text,
              twin, start, end, len(ins), *ins, *[variable for _, variable in outs])
        self.event += 1
        if phase == L.FORWARD and current_node is None:
            refs = [ref for ref in [self.refs.get(id(tensor)) for tensor, _ in outs] if ref is not None]
            if refs:
                self.fresh = ((self.event, layer, known.plain), refs)
        if self.stats and known.filled:
            for tensor, variable in outs:
                self.measure(tensor, variable, ins, written)
        if len(w) > MANY_WORDS:
            self.overflow()

    def own_nodes(self):
        """Where PyTorch does not number its nodes (1.13): of what the operator before has made, tell the
        recorder the nodes, with the event that did.  Before the operator has returned there is none."""
        if self.fresh is None:
            return
        (made, refs), self.fresh, last = self.fresh, None, None
        for ref in refs:
            node = node_of(ref())
            if node is not None and node is not last:  # several outputs share one
                self.own_node(node, made)
                last = node

    def end_node(self, layer, twin):
        """What has run in backward since the node before is this one's; but a sum of gradients before its own
        operators is of what the node before has made."""
        w, first = self.words, True
        at = self.node_from
        while at < len(w):
            if w[at] == L.OPERATION and w[at + 3] == L.BACKWARD and not (first and w[at + 2] == self.seeding):
                first = first and w[at + 2] == self.adding
                w[at + 5] = self.node_layer if first else layer
                w[at + 9] = self.node_twin if first else twin
            at += w[at + 1]
        self.node_from, self.node_layer, self.node_twin = len(w), layer, twin

    def place_of(self, frame):
        """Where in the program it runs: the engine and PyTorch's optimizers run no line of its own."""
        codes = self.phase_codes
        return self.phase_place if codes is not None and frame.f_code in codes else self.places.here(frame)

    def layer_of_update(self, ins, outs):
        """The layer of what an optimizer works on: of a parameter, or of what was made of one."""
        of = self.update_layers
        for variable in ins:
            layer = of.get(variable)
            if layer is not None:
                for made in outs:
                    of[made] = layer
                return layer
        return 0

    # ------------------------------------------------------------------------ variables

    def var(self, tensor):
        variable = self.by_id.get(id(tensor))
        return variable if variable is not None else self.meet(tensor)

    def meet(self, tensor):
        """The variable of a tensor whose handle is new: known by where it lies, or made outside."""
        category = L.OPTIMIZER if self.phase == L.UPDATE else L.INPUT
        storage, cdata = self.storage(tensor, category)
        if storage is not None:
            key = (tensor.storage_offset(), tensor.shape, tensor.stride())
            variable = storage.places.get(key)
            if variable is not None:
                self.watch(tensor, variable, cdata)
                return variable
        return self.declare(tensor, storage, cdata, category, 0, 0, 0, 0)

    def make(self, tensor, phase, written):
        """The variable of an output; what is written in place and was there before stays one."""
        variable = self.by_id.get(id(tensor))
        if variable is None and not written:
            storage, cdata = self.storage(tensor, CATEGORIES[phase])
            return self.declare(tensor, storage, cdata, CATEGORIES[phase], 0, 0, 0, 0)
        if variable is None:
            variable = self.var(tensor) if any(tensor is t for t in written) else None
        own = self.parameters.get(variable)
        if variable is not None and written and any(tensor is t for t in written):
            if variable < self.first:
                self.slots.pop(variable, None)
                return variable
        storage, cdata = self.storage(tensor, CATEGORIES[phase])
        if own is not None and written:
            del self.parameters[variable]
            return self.declare(tensor, storage, cdata, own[1], own[0], *own[2:])
        return self.declare(tensor, storage, cdata, CATEGORIES[phase], 0, 0, 0, 0)

    def storage(self, tensor, category):
        try:
            store = storage_of(tensor)
            cdata = store._cdata
        except Exception:  # sparse, fake, wrapped: it has none
            return None, 0
        storage = self.storages.get(cdata)
        if storage is not None and store.nbytes() > storage.bytes:
            self.give_up(cdata, storage)  # resize_ has made it larger
            storage = None
        if storage is None:
            if store.nbytes() == 0 and not tensor.numel():
                return None, 0
            storage = self.allocate(store, cdata, category)
        return storage, cdata

    def allocate(self, store, cdata, category):
        number = self.next_storage
        self.next_storage = number + 1
        store._weak_ref()
        storage = self.storages[cdata] = Storage(number, store.nbytes())
        self.live_bytes += storage.bytes
        device = store.device
        self.words += (L.ALLOC, 7, number, store.data_ptr() if device.type != "meta" else 0,
                       store.nbytes(), category, 0 if device.type == "cpu" else (device.index or 0) + 1)
        return storage

    def declare(self, tensor, storage, cdata, category, flags, name, layer, whole):
        variable = self.next_variable
        self.next_variable = variable + 1
        shape = tensor.shape
        ndim = len(shape)
        offset = 0
        number = 0
        strides = ()
        if storage is not None:
            number = storage.number
            offset = tensor.storage_offset()
            steps = tensor.stride()
            key = (offset, shape, steps)
            if flags or storage.places.get(key) not in self.parameters:  # what is the parameter's stays so
                storage.places[key] = variable
            storage.variables.append(variable)
            if 0 < ndim <= 8 and not tensor.is_contiguous():
                strides = steps
        else:
            self.bare.append(variable)
        if ndim > 8:
            first = 1
            for n in shape[:ndim - 7]:
                first *= n
            shape = (first,) + tuple(shape[ndim - 7:])
            ndim = 8
        self.words += (L.VARIABLE, 15 + ndim + len(strides), variable, number, offset, 0,
                       DTYPES.get(tensor.dtype, L.NO_DTYPE), category, flags, 0, name, layer, 0, whole,
                       ndim, *shape, *strides)
        if flags:
            self.parameters[variable] = (flags, category, name, layer, whole)
            self.update_layers[variable] = layer
        self.watch(tensor, variable, cdata)
        return variable

    def watch(self, tensor, variable, cdata):
        key = id(tensor)
        self.by_id[key] = variable
        ref = self.refs.get(key)
        if ref is None:
            ref = self.refs[key] = Ref(tensor, self.gone)
            ref.key = key
            ref.cdata = cdata
        elif ref.cdata != cdata:  # set_ has given it another storage: the one before may go without it
            self.hints.append(ref.cdata)
            ref.cdata = cdata

    def gone(self, ref):
        self.by_id.pop(ref.key, None)
        self.refs.pop(ref.key, None)
        self.hints.append(ref.cdata)

    def sweep(self):
        """Storages whose last handle has gone are free; others have more, elsewhere."""
        hints, self.hints = self.hints, []
        for cdata in hints:
            self.look_at(cdata)

    def look_at(self, cdata):
        storage = self.storages.get(cdata)
        if storage is None:
            return
        if expired(cdata):
            self.words += (L.RELEASE, 3, storage.number)
            for variable in storage.variables:
                self.parameters.pop(variable, None)
                self.slots.pop(variable, None)
                self.update_layers.pop(variable, None)
            self.doubts.discard(cdata)
            self.remove(cdata)
        else:
            self.doubts.add(cdata)

    def remove(self, cdata):
        self.live_bytes -= self.storages.pop(cdata).bytes
        free_weak_ref(cdata)

    def measure(self, tensor, variable, ins, written):
        dtype = DTYPES.get(tensor.dtype)
        n = tensor.numel()
        if dtype is None or n == 0 or tensor.device.type == "meta" or tensor.layout is not torch.strided:
            return
        if not written:
            # a view of all of an input has the input's numbers
            for of in ins:
                slot = self.slots.get(of)
                if slot is not None and slot[1] == n and slot[2] == tensor.data_ptr():
                    self.slots[variable] = slot
                    self.words += (L.MEASURED, 4, variable, slot[0])
                    return
        if 0 in tensor.stride() and n > 1:
            return
        dense = tensor if tensor.is_contiguous() else tensor.contiguous()
        if dense.device.type != "cpu":
            dense = dense.cpu()
        slot = self.lib.measure_ahead(self.p, dtype, dense.data_ptr(), n)
        if slot >= 0:
            self.slots[variable] = (slot, n, tensor.data_ptr())
            self.words += (L.MEASURED, 4, variable, slot)


def node_of(tensor):
    """The node that made it; None: there is none, or PyTorch gives none: of a view that was made under no_grad, and of
    whose base the program has then written to another part."""
    try:
        return tensor.grad_fn if tensor is not None else None
    except RuntimeError:
        return None
