"""The recorder: a mode under which PyTorch runs its operators, and what is made of them.

Each operator that runs, forward, backward or in an optimizer, passes the mode.  What is said of it
is collected in a list of numbers and handed to the library once an iteration.  Nothing here keeps a
tensor alive or changes one, and no mistake of the recorder reaches the program.

SPDX-License-Identifier: MIT
"""
import os
import struct
import sys
import weakref
from threading import get_ident

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import library as L
from . import collectives
from . import hot
from . import names
from . import nodes
from . import plain
from . import sums
from . import turns
from .facts import (current_node, expired, free_weak_ref, now, sequence, set_mode, stack_is_python,
                    storage_of)

MANY_MADE = 4096
MANY_TEXTS = 1024  # that are remembered of an operator
MANY_OLD = 32  # variables of one storage that are kept a while longer


def mode(recorder, gate):
    """The mode under which all runs, of the same kind as the recorder's state."""
    class Mode(recorder.hot.Dispatch, TorchDispatchMode):
        def __enter__(self):
            entered = super().__enter__()
            if stack_is_python and recorder.hot is not plain:
                set_mode(recorder.hot.Stack())  # until no mode is left on it
            return entered

    made = Mode()
    made.recorder, made.gate, made.word = recorder, gate, gate.address
    return made


def of_run():
    """The number of this process among those that mpirun or torchrun has started, and how many they are."""
    names = ("RANK", "WORLD_SIZE") if "TORCHELASTIC_RUN_ID" in os.environ else (
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    try:
        rank, n = (int(os.environ[name]) for name in names)
    except (KeyError, ValueError):
        return 0, 1
    return (rank, n) if 0 <= rank < n else (0, 1)


class Recorder(nodes.Nodes):
    """What happens less often than an operator; of a state, which is plain or the extension's (`new`)."""

    @classmethod
    def new(cls, extension, *args):
        lib = L.load()
        state = hot.choose(lib.folder, extension)
        return type("Recorder", (cls, state.State), {})(lib, state, *args)

    def __init__(self, lib, state, path, level="graph", overwrite=False, program=None, budget=0):
        if level not in L.LEVELS:
            raise L.Unusable("there is no level '%s': it is graph, stats or values" % level)
        super().__init__()
        self.lib = lib
        options = L.Options(size=0, level=L.LEVELS[level], path=os.fsencode(path), producer=b"PyTorch",
                            version=str(torch.__version__).encode(), overwrite=bool(overwrite),
                            program=os.fsencode(program or sys.argv[0] or "python"),
                            budget_bytes=budget)
        options.rank, options.n_ranks = of_run()
        options.size = L.ctypes.sizeof(options)
        self.sums = sums.Sums(options.n_ranks) if options.n_ranks > 1 else None
        why = L.ctypes.create_string_buffer(300)
        self.p = self.lib.new(L.ctypes.byref(options), why, len(why))
        if not self.p:
            raise L.Unusable(why.value.decode(errors="replace"))
        self.hot = state
        if state is not plain:
            self.producer, self.measure_ahead = self.p, L.address_of(self.lib.measure_ahead)
        self.pid = os.getpid()
        self.thread = get_ident()
        self.stats = level != "graph"
        self.on = False
        self.words = state.Words()
        self.refused = 0  # records, by the library
        self.mistakes = 0  # of this recorder
        self.first_mistake = ""
        self.operators = {}
        self.places = names.Places(self.place, self.source)
        self.by_id = {}  # of tensors that are alive: id -> variable
        self.refs = {}
        self.storages = {}  # by the address of the storage, which a weak reference keeps from reuse
        self.live_bytes = 0  # of them
        self.hints = []  # storages that one of whose tensors has gone
        self.doubts = set()
        self.parameters = {}  # variable -> (flags, category, name, layer, whole name)
        self.update_layers = {}  # variable -> layer
        self.bare = []  # variables without a storage
        self.known_states = {}  # id of an optimizer -> of how many parameters it had a state
        self.layers = {}  # id of a module -> number, and a weak reference
        self.paths = {0: ""}
        self.roots = {}
        self.made = []  # weak references of modules that have no name yet
        self.most_made = MANY_MADE
        self.stack = []
        self.scopes = []  # names (texts) of those that are open
        self.layer = 0
        self.phase = L.FORWARD
        self.phase_place = 0  # the line that called backward, or the step
        self.phase_codes = None
        self.next_variable = self.next_storage = 1
        self.open = self.forwarded = self.stepped = False
        self.begun = False  # a layer has been called, or a step taken: before that there are no iterations
        self.first = 1  # variable of the open iteration
        self.event = 0
        self.n_begun = 0  # iterations
        self.gradients = set()  # variables that backward made in this iteration
        self.as_left = {}  # variable of a gradient that was written to -> what backward had left
        self.owners = {}  # number of a node -> (event, layer, plain name)
        self.last_sequence = sequence() if sequence else 0
        self.slots = {}
        self.node_names = {}
        self.by_hand = False
        self.turns = turns.Turns()
        self.instead = {}  # id of an operator -> what runs it in its place
        self.collectives = collectives.Collectives(self)
        for key, value in (("argv", names.command()), ("cwd", os.getcwd()), ("host", names.host()),
                           ("device", "cpu"), ("version.python", sys.version.split()[0])):
            self.lib.info(self.p, key.encode(), os.fsencode(value))

    # -------------------------------------------------------------------------- said once

    def place(self, file, line, function):
        return self.lib.place(self.p, os.fsencode(file), line, function.encode())

    def source(self, file, text):
        self.lib.source(self.p, os.fsencode(file), text, len(text))

    def text(self, text):
        return self.lib.text(self.p, text.encode(errors="replace")) if text else 0

    def operator(self, func):
        known = names.Operator(func, lambda name, group, arguments: self.lib.kind(
            self.p, name.encode(), group.encode(), arguments.encode()))
        self.operators[id(func)] = known
        known.call = self.collectives.call_of(func)
        if func is torch.ops.aten.add.Tensor:
            self.adding = known.number
        elif func is torch.ops.aten.ones_like.default:
            self.seeding = known.number
        return known

    # ------------------------------------------------------------------------- operators

    def mistake(self, what, error):
        """The program does not see it; what a signal's handler has raised meanwhile is the program's."""
        if names.is_of_handler(error):
            raise error
        self.mistakes += 1
        if self.mistakes == 1:
            self.first_mistake = "%s: %s: %s" % (what, type(error).__name__, error)

    def overflow(self):
        if self.begun:
            self.flush()
        else:
            self.drop_before()

    def attributes(self, known, rest, key):
        """The number of the text of what an operator was given beside tensors; remembered as `key`, unless that
        would keep alive what the program has made, as a storage is."""
        text = self.text(names.attributes(known, rest))
        if all(names.is_plain(value) for _, value in rest):
            if len(known.texts) >= MANY_TEXTS:
                known.texts.clear()  # of an optimizer whose steps are of another size each time
            known.texts[key] = text
        return text

    def twin(self, layer):
        node = current_node()
        if node is None:
            return 0, layer
        number = node._sequence_nr()
        owner = self.owners.get(number)
        if owner is None:
            return 0, layer
        event, layer_then, plain, checked = owner
        if not checked:
            key = (node.name(), plain)
            same = self.node_names.get(key)
            if same is None:
                same = self.node_names[key] = names.is_twin(*key)
            if not same:
                del self.owners[number]
                return 0, layer
            self.owners[number] = (event, layer_then, plain, True)
        return event, layer_then

    def states(self, optimizer):
        """The state that an optimizer has of a parameter belongs to that one's layer."""
        if self.known_states.get(id(optimizer)) == len(optimizer.state):
            return
        self.known_states[id(optimizer)] = len(optimizer.state)
        for parameter, state in optimizer.state.items():
            layer = self.update_layers.get(self.by_id.get(id(parameter)))
            for tensor in state.values() if layer and isinstance(state, dict) else ():
                if isinstance(tensor, torch.Tensor):
                    self.update_layers.setdefault(self.var(tensor), layer)

    def gradients_of(self, written):
        """What backward has made in this iteration and the program changes now, as clipping does:
        [(tensor, variable)]."""
        found = []
        for tensor in written:
            variable = self.var(tensor)
            storage, _ = self.storage(tensor, L.GRADIENTS)
            # by another handle too: 1.13 clips what detach returns
            if variable in self.gradients or storage and any(v in self.gradients for v in storage.variables):
                found.append((tensor, variable))
        return found

    def keep_as_left(self, changed):
        for tensor, before in changed:
            self.as_left[self.var(tensor)] = self.as_left.get(before, before)

    def updates(self, written):
        """The operation that follows writes to parameters: with which gradients."""
        for tensor in written:
            variable = self.by_id.get(id(tensor))
            if variable in self.parameters:
                gradient = self.var(tensor.grad) if tensor.grad is not None else 0
                # as backward left it: what has clipped it since is an update's step
                self.words += (L.GRADIENT, 4, variable, self.as_left.get(gradient, gradient))

    def without_gradient(self, optimizer):
        """What an optimizer holds and had no gradient for is entered too, without one."""
        for group in optimizer.param_groups if self.open else ():
            for tensor in group["params"]:
                variable = self.by_id.get(id(tensor))
                if tensor.requires_grad and tensor.grad is None and variable in self.parameters:
                    self.words += (L.GRADIENT, 4, variable, 0)

    # ------------------------------------------------------------------------ variables

    def give_up(self, cdata, storage):
        """The storage, and the variables on it, will be met anew."""
        self.words += (L.RELEASE, 3, storage.number)
        gone = set(storage.variables)
        for key in [k for k, v in self.by_id.items() if v in gone]:
            self.by_id.pop(key)
        self.remove(cdata)

    # -------------------------------------------------------------------------- modules

    def enter(self, module):
        known = self.layers.get(id(module))
        if known is None or known[1]() is not module:
            if not self.stack and names.is_building(sys._getframe(2)):
                return
            known = self.new_module(module)
        self.stack.append((self.layer, self.phase))
        self.layer = known[0]
        self.phase = L.FORWARD
        self.begun = self.forwarded = True

    def leave(self):
        self.layer, self.phase = self.stack.pop()

    def new_module(self, module):
        if self.stack:  # made while another one runs
            self.register(module, "%s/%s" % (self.paths[self.layer], names.of_class(module)))
        else:
            self.register_made()
            known = self.layers.get(id(module))
            if known is None or known[1]() is not module:
                self.register(module, self.root_name(module))
        return self.layers[id(module)]

    def was_made(self, module):
        self.made.append(weakref.ref(module))
        if len(self.made) >= self.most_made:
            self.made = [ref for ref in self.made if ref() is not None]
            self.most_made = max(MANY_MADE, 2 * len(self.made))

    def register_made(self):
        """Name all that were made and are not within another: what runs later in an iteration has its
        parameters from before it, and what never runs is there."""
        modules = [module for module in (ref() for ref in self.made) if module is not None]
        self.made = []
        inner = {id(child) for module in modules for child in module.modules() if child is not module}
        for module in modules:
            known = self.layers.get(id(module))
            if id(module) not in inner and (known is None or known[1]() is not module):
                self.register(module, self.root_name(module))

    def root_name(self, module):
        name = names.of_class(module)
        n = self.roots[name] = self.roots.get(name, 0) + 1
        return name if n == 1 else "%s%d" % (name, n)

    def register(self, module, path):
        """Give a module, and all that is in it, their paths, and its parameters their names."""
        if self.open and not self.begun:
            self.drop_before()
        for name, child in module.named_modules():
            if id(child) in self.layers and self.layers[id(child)][1]() is child:
                continue
            whole = path + ("/" + name.replace(".", "/") if name else "")
            layer = self.lib.layer(self.p, whole.encode(errors="replace"),
                                   names.of_class(child).encode())
            self.paths[layer] = whole
            self.layers[id(child)] = (layer, weakref.ref(child))
            for own, tensor in child.named_parameters(recurse=False):
                self.own(tensor, own, layer, whole, L.PARAMETER,
                         L.IS_PARAMETER | (L.REQUIRES_GRAD if tensor.requires_grad else 0))
            for own, tensor in child.named_buffers(recurse=False):
                self.own(tensor, own, layer, whole, L.BUFFER, 0)

    def own(self, tensor, name, layer, path, category, flags):
        if type(tensor).__name__.startswith("Uninitialized"):
            return
        if self.by_id.get(id(tensor)) in self.parameters:
            return  # shared: its first name counts
        try:
            cdata = storage_of(tensor)._cdata
        except Exception:
            cdata = 0
        before = self.storages.get(cdata)
        if before is not None and not any(v in self.parameters for v in before.places.values()):
            self.give_up(cdata, before)  # what was recorded as it was made is known better now
        storage, cdata = self.storage(tensor, category)
        whole = "%s/%s" % (path, name) if flags else ""
        number = self.text(whole)
        if self.sums is not None:
            self.sums.names[number] = whole
        self.declare(tensor, storage, cdata, category, flags, self.text(name), layer, number)

    # ------------------------------------------------------------------------ iterations

    def begin(self, start):
        self.own_nodes()  # of what the iteration before has made last, by its numbers
        self.node_twin = 0
        self.words += (L.BEGIN, 5, start, 0, 0)
        for name in self.scopes:
            self.words += (L.SCOPE, 3, name)
        if self.collectives.early:
            self.words += self.collectives.early
            self.collectives.early = []
        self.open = True
        self.n_begun += 1
        self.age += 1
        self.forwarded = bool(self.stack)
        self.stepped = False
        self.first = self.next_variable
        self.event = 0
        self.owners.clear()
        self.gradients.clear()
        self.as_left.clear()

    def drop_before(self):
        """Work before the first iteration would be one, of which all others had their numbers: of it
        remains what is alive, with where it was made."""
        self.n_begun -= self.open
        self.open = False
        self.sweep()
        rows, words, at = [], list(self.words), 0
        while at < len(words):
            rows.append(words[at:at + words[at + 1]])
            at += words[at + 1]
        taken = {row[2] for row in rows if row[0] == L.ALLOC}
        gone = taken.intersection(row[2] for row in rows if row[0] == L.RELEASE)
        places, dead = {}, set()
        for row in rows:
            if row[0] == L.OPERATION:
                for variable in row[13 + row[12]:]:
                    places.setdefault(variable, row[4])
            elif row[0] == L.VARIABLE and row[3] in gone:
                dead.add(row[2])
        self.words.clear()
        for row in rows:
            what, first = row[0], row[2]
            if what == L.VARIABLE and first not in dead:
                row[12] = row[12] or places.get(first, 0)
            elif what == L.FORGET and first in dead or what == L.VARIABLE:
                continue
            elif what in (L.ALLOC, L.RELEASE):
                if first in gone:
                    continue
            elif what == L.WAIT:
                self.collectives.early += collectives.before(row)
                continue
            elif what not in (L.REPORT, L.FORGET):
                continue
            self.words += row
        self.flush()

    def finish(self, outside=False):
        """The iteration ends; all of it goes to the library."""
        if not self.open:
            return
        self.sweep()
        for cdata in list(self.doubts):
            if expired(cdata):
                self.look_at(cdata)
        self.forget_old()
        for _ in self.scopes:
            self.words += (L.SCOPE, 3, 0)
        self.words += (L.END, 4, now(), int(outside))
        self.open = False
        self.flush()

    def open_scope(self, name):
        """What the program runs from here on has a name, whatever iterations end meanwhile."""
        self.scopes.append(self.text(name))
        if self.open:
            self.words += (L.SCOPE, 3, self.scopes[-1])

    def close_scope(self):
        self.scopes.pop()
        if self.open:
            self.words += (L.SCOPE, 3, 0)

    def forget_old(self):
        """Variables that nothing can name any more, as a view of a weight in each iteration is."""
        live = None
        for storage in list(self.storages.values()) + [None]:
            variables = storage.variables if storage is not None else self.bare
            if len(variables) < (2 * len(storage.places) if storage is not None else 0) + MANY_OLD:
                continue
            live = live or set(self.by_id.values())
            kept = live.union(storage.places.values()) if storage is not None else live
            for variable in variables:
                if variable not in kept:
                    self.words += (L.FORGET, 3, variable)
                    self.update_layers.pop(variable, None)
                    self.parameters.pop(variable, None)
            variables[:] = [v for v in variables if v in kept]

    def flush(self):
        row = self.words.take()
        self.node_from = 0
        self.slots.clear()
        status = self.lib.words(self.p, *row.buffer_info())
        if status == L.OK:
            return
        self.refused += 1
        why = self.lib.error(self.p).decode(errors="replace")
        self.first_mistake = self.first_mistake or why
        if status == L.FULL:
            self.on = False
            self.say("recording has stopped: " + why)

    def report(self, key, value):
        on, self.on = self.on, False
        try:
            value = float(value.detach() if isinstance(value, torch.Tensor) else value)
        finally:
            self.on = on
        self.words += (L.REPORT, 4, self.text(str(key)), struct.unpack("q", struct.pack("d", value))[0])

    def name_of(self, parameter):
        known = self.parameters.get(self.by_id.get(id(parameter)))
        return self.sums.names.get(known[4], "") if known else ""

    def sums_of(self, optimizer):
        """What the ranks are compared by; the operators that it takes are not the program's."""
        if self.sums is not None and self.open:
            said = self.collectives.bypassed.of_step(optimizer, self.name_of, self.collectives.own.armed)
            if said:
                self.words += (L.NOTICE, 3, self.text(said))
            self.words += self.unrecorded(self.sums.of_step, optimizer, self.name_of, self.text,
                                          self.collectives.own.take_away)

    def row_of_gradient(self, name, gradient):
        return self.sums.row(L.SUM_GRADIENT, self.text(name), gradient)

    def unrecorded(self, what, *args):
        """Operators that are not the program's."""
        on, self.on = self.on, False
        try:
            return what(*args)
        finally:
            self.on = on

    def backward_begins(self):
        try:
            self.collectives.backward_begins()
        except Exception as own:
            self.mistake("gradients before backward", own)

    def backward_ends(self, error=None):
        try:
            self.collectives.backward_ends(error)
        except Exception as own:
            self.mistake("collectives of backward", own)

    def step_ends(self, optimizer):
        try:
            self.sums_of(optimizer)
        except Exception as error:
            self.mistake("sums of a step", error)
        self.begun = self.stepped = True
        # ranks are compared step by step
        if not self.by_hand and (self.turns.ends(optimizer) or self.sums is not None):
            self.finish()

    # ------------------------------------------------------------------------------- end

    def say(self, line):
        try:
            sys.stderr.write("tapedeck: %s\n" % line)
        except Exception:
            pass

    def close(self, status=0):
        """The tape ends.  In a forked child there is nothing to end."""
        self.on = False
        self.collectives.close()
        p, self.p = self.p, None
        if not p or os.getpid() != self.pid:
            return
        self.p = p
        try:
            # What a failure cut off is the iteration that it was; what is left else is work outside.
            if status == 0 or not self.forwarded:
                self.finish(outside=not self.stepped)
            if self.words:
                self.flush()
        except Exception as error:
            self.mistakes += 1
            self.first_mistake = self.first_mistake or str(error)
        self.p = None
        lost = self.mistakes + self.refused
        if lost == 1:
            self.say("a thing that the program did is not on the tape: %s" % self.first_mistake)
        elif lost > 1:
            self.say("%d things that the program did are not on the tape; the first: %s"
                     % (lost, self.first_mistake))
        for cdata in list(self.storages):
            free_weak_ref(cdata)
        self.storages.clear()
        self.refs.clear()
        self.by_id.clear()
        self.lib.end(p, status & 255)
        self.lib.free(p)
