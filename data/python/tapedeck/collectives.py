"""Collectives of torch.distributed: in which of them this rank is, with what, from when to when.

Those that the program calls pass methods of their process group, and of the work that these return: both are wrapped.
Those that PyTorch makes by itself, in C++, as DistributedDataParallel does, pass the mode as operators of c10d.  When
these have come is seen by what runs next on what they brought, and in backward by the engine's own call-backs.

Nothing here keeps a tensor, a work or a process group.  What cannot be known is said as not known.

SPDX-License-Identifier: MIT
"""
import functools
import hashlib
import os
import sys
import threading
import weakref
from threading import get_ident

import torch

from . import library as L
from .before_mean import BeforeMean
from .bypassed import Bypassed
from .facts import DTYPES, now
from .hang import Hang

MEET, BCAST, SUM, GATHER, EXCHANGE, SEND, RECEIVE = range(7)  # TdTapeWait
BEFORE, FAILED, WHOLE, BEHIND = 1 << 0, 1 << 2, 1 << 3, 1 << 4  # TD_TAPE_COLLECTIVE_...
AT_FLAGS = 13  # of a row
SHADOW = "join: "  # before the name of a call that stands for one of another name
MANY_EARLY = 4096
LOOK = 0.2  # seconds between two looks at what is waited for
LONG = 1.0  # seconds: what is waited for that long is to be on the tape whatever comes
SHARE = 30  # of the time between two of them, what it takes to show where the rank is
NEVER = 1 << 62

# Methods of a process group: as torch.distributed calls it, which argument is this rank's part, and whether there
# is a root, or a rank that it is sent to.
METHODS = {
    "allreduce": ("all_reduce", SUM, 0, False),
    "allreduce_coalesced": ("all_reduce_coalesced", SUM, 0, False),
    "broadcast": ("broadcast", BCAST, 0, True),
    "reduce": ("reduce", SUM, 0, True),
    "allgather": ("all_gather", GATHER, 1, False),
    "_allgather_base": ("all_gather_into_tensor", GATHER, 1, False),
    "allgather_coalesced": ("all_gather_coalesced", GATHER, 1, False),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor", GATHER, 1, False),
    "gather": ("gather", GATHER, 1, True),
    "scatter": ("scatter", BCAST, 0, True),
    "reduce_scatter": ("reduce_scatter", SUM, 1, False),
    "_reduce_scatter_base": ("reduce_scatter_tensor", SUM, 1, False),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor", SUM, 1, False),
    "alltoall": ("all_to_all", EXCHANGE, 1, False),
    "alltoall_base": ("all_to_all_single", EXCHANGE, 1, False),
    # as later versions of PyTorch call them
    "all_gather_single": ("all_gather_into_tensor", GATHER, 1, False),
    "all_gather_single_coalesced": ("all_gather_into_tensor", GATHER, 1, False),
    "gather_single": ("gather", GATHER, 1, True),
    "reduce_scatter_single": ("reduce_scatter_tensor", SUM, 1, False),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor", SUM, 1, False),
    "all_to_all_single": ("all_to_all_single", EXCHANGE, 1, False),
    "barrier": ("barrier", MEET, None, False),
    "monitored_barrier": ("monitored_barrier", MEET, None, False),
    "send": ("send", SEND, 0, True),
    "recv": ("recv", RECEIVE, 0, True),
    "recv_anysource": ("recv", RECEIVE, 0, False),
}
# Operators of c10d by which PyTorch makes them itself: the method, and which argument the root is.
OPERATORS = {
    "allreduce_": ("allreduce", None), "allreduce_coalesced_": ("allreduce_coalesced", None),
    "broadcast_": ("broadcast", 2), "allgather_": ("allgather", None), "_allgather_base_": ("_allgather_base", None),
    "reduce_": ("reduce", 3), "barrier": ("barrier", None),
    "reduce_scatter_": ("reduce_scatter", None), "_reduce_scatter_base_": ("_reduce_scatter_base", None),
    "alltoall_": ("alltoall", None), "alltoall_base_": ("alltoall_base", None),
}
# Functions of PyTorch that do it in C++ and return when all has come; the first argument is the process group.
INSIDE = {"_verify_params_across_processes": "DDP verify parameters", "_broadcast_coalesced": "DDP broadcast parameters"}
# What an error of a wait says where it did not end, because others did not come or are gone; else the call failed.
NOT_COME = ("timed out", "timeout", "connection closed", "connection reset", "broken pipe", "socket closed", "eof")


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for v in value for tensor in tensors_of(v)]
    return []


class Group:
    """A process group: what ranks know it by, and how often it was called."""

    __slots__ = ("comm", "size", "rank", "ranks", "flags", "seq", "letters")

    def __init__(self, name, ranks, rank, n_ranks):
        text = "%s %s" % (name, " ".join(map(str, ranks)))
        self.comm = int.from_bytes(hashlib.sha1(text.encode()).digest()[:8], "big") >> 1 | 1
        self.size, self.rank, self.ranks = len(ranks), rank, ranks
        self.flags = WHOLE if self.size == n_ranks else 0
        self.seq = 0
        self.letters = {}  # (kind, peer) -> how many

    def number(self, wait, peer):
        """Of a call that begins; letters are counted by pair and direction."""
        if wait not in (SEND, RECEIVE):
            self.seq += 1
            return self.seq
        if peer < 0:
            return 0  # nobody knows yet who sends
        self.letters[wait, peer] = self.letters.get((wait, peer), 0) + 1
        return self.letters[wait, peer]


class Call:
    """A collective that has begun and has not been seen to end."""

    __slots__ = ("group", "seq", "wait", "bytes", "dtype", "name", "label", "place", "peer", "start", "caller", "storages",
                 "after", "seen", "before", "said")

    def row(self, start, end, flags=0, size=None):
        return (L.WAIT, 15, self.wait, self.group.comm, self.seq, self.bytes if size is None else size, start, end,
                self.name, self.place, self.group.rank, self.group.size, self.peer, self.group.flags | flags, self.dtype)


class Collectives:
    """Of a recorder.  `waiting`: since when the program has been waiting, 0: it is not."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.c10d = None
        self.groups = {}  # what ranks know of one -> Group
        self.works = {}  # id of a work -> (weak reference, its Call)
        self.early = []  # rows of what happened while no iteration was open
        self.inside = 0  # a method of a process group: its operators are its own
        self.context = []  # (process group, name) of functions of PyTorch that make some
        self.pending = []  # calls that PyTorch made and waits for
        self.forwarded = {}  # process groups of the DDPs whose forward has run
        self.bucket = 0  # of this backward
        self.in_backward = False
        self.own = BeforeMean(recorder.row_of_gradient) if recorder.sums is not None else None
        self.bypassed = Bypassed()
        self.joined = False  # this rank has no more examples, and makes the calls of those that have
        self.n_shadowed = 0  # of their forwards, by this rank
        self.unknown = False  # it has been said that a process group is not known
        self.last_end = 0  # of the operator that ran last, while there are pending ones
        self.waiting = self.shown = 0
        self.last_shown = self.showing = 0  # when, and for how long
        self.hang = Hang(recorder)
        self.watch = None
        self.stop = threading.Event()

    # ---------------------------------------------------------------------------- wrapping

    def install(self, put):
        """Wrap what is there; put (owner, name, value) sets it, and back when recording ends."""
        if not torch.distributed.is_available():
            return
        import torch.distributed.distributed_c10d as c10d
        import torch.nn.parallel.distributed as parallel
        self.c10d = c10d
        base = c10d.ProcessGroup
        for owner in [base] + base.__subclasses__():
            for name in METHODS:
                if name in owner.__dict__:
                    put(owner, name, self.method(name, owner.__dict__[name]))
        work = torch._C._distributed_c10d.Work
        put(work, "wait", self.wait_of(work.wait))
        put(work, "is_completed", self.is_completed_of(work.is_completed))
        for name, text in INSIDE.items():
            if hasattr(torch.distributed, name):
                put(torch.distributed, name, self.function(getattr(torch.distributed, name), text))
        ddp = parallel.DistributedDataParallel
        put(ddp, "forward", self.forward_of(ddp.forward))
        put(ddp, "__init__", self.making(ddp.__init__))
        self.install_join(put)
        put(torch.distributed, "init_process_group", self.initialising(c10d.init_process_group))
        put(c10d, "init_process_group", torch.distributed.init_process_group)
        if torch.distributed.is_initialized():
            self.begin()

    def begin(self):
        """Ranks have met: from now on operators of c10d are looked at."""
        instead = self.recorder.instead
        if not instead:
            for name in OPERATORS:
                packet = getattr(torch.ops.c10d, name, None)
                if packet is not None:
                    instead[id(packet.default)] = self.operator(packet.default, name)

    def call_of(self, func):
        """What runs an operator of c10d; None: the operator itself."""
        name = str(func).split(".")
        return self.operator(func, name[1]) if name[0] == "c10d" and name[1] in OPERATORS else None

    def listens(self):
        return self.recorder.on and not self.inside and get_ident() == self.recorder.thread

    def initialising(self, init):
        def init_process_group(*args, **kwargs):
            try:
                self.meets(sys._getframe(1))
                result = init(*args, **kwargs)
            finally:
                self.goes_on()
            try:
                self.begin()
            except Exception as error:
                self.recorder.mistake("init_process_group", error)
            return result

        init_process_group.__doc__ = init.__doc__
        return init_process_group

    def meets(self, frame):
        """Ranks find each other: a call of all of them, before there is a group."""
        r = self.recorder
        if self.listens() and r.sums is not None:
            self.hang.enters("init_process_group", r.places.here(frame), 0, 0, range(r.sums.n_ranks))
            self.looks()

    # -------------------------------------------------------------------------------- join

    def install_join(self, put):
        """With uneven inputs a rank that is done shadows the calls of the others, by other names."""
        try:
            from torch.distributed.algorithms.join import Join
            put(Join, "__exit__", self.leaving(Join.__exit__))
            put(Join, "_get_num_nonjoined_procs", self.asking(Join._get_num_nonjoined_procs))
        except (ImportError, AttributeError):
            pass  # of a PyTorch that has none, or another one

    def leaving(self, leave):
        def recorded(join, *args):
            if not self.listens():
                return leave(join, *args)
            r, before = self.recorder, self.n_shadowed
            self.joined = joins = args[0] is None and join._enable
            try:
                return leave(join, *args)
            finally:
                self.joined = False
                if self.n_shadowed > before:
                    r.lib.info(r.p, b"joined", b"%d" % self.n_shadowed)
                if joins and r.sums is not None:
                    r.sums.counts_steps = False
                if joins and not r.by_hand:
                    r.finish()  # what comes next is of another epoch, on all ranks

        recorded.__doc__ = leave.__doc__
        return recorded

    def asking(self, ask):
        def recorded(join):
            n = ask(join)
            if self.joined and self.listens():
                self.joined = n > 0
                self.n_shadowed += n > 0
            return n

        return recorded

    # ------------------------------------------------------------------------ what is said

    def say(self, row):
        r = self.recorder
        if r.open:
            r.words += row
        elif len(self.early) < MANY_EARLY * len(row):
            self.early += before(row)

    def group_of(self, group):
        """What is known of a process group; None: it is none of torch.distributed's."""
        world = getattr(self.c10d, "_world", None)
        names = world.pg_names if world is not None else self.c10d._pg_names
        members = (world.pg_group_ranks if world is not None else self.c10d._pg_group_ranks).get(group)
        if group not in names or not members:
            return None
        ranks = tuple(sorted(members, key=members.get))
        known = self.groups.get((names[group], ranks))
        if known is None:
            known = Group(names[group], ranks, group.rank(), torch.distributed.get_world_size())
            self.groups[names[group], ranks] = known
            self.recorder.lib.info(self.recorder.p, ("group.%016x" % known.comm).encode(),
                                   ("%s: ranks %s" % (names[group], ", ".join(map(str, ranks)))).encode())
        return known

    def new(self, group, name, wait, part, peer, place):
        call = Call()
        tensors = tensors_of(part)
        call.group, call.wait, call.peer = group, wait, peer
        call.bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        call.dtype = DTYPES.get(tensors[0].dtype, L.NO_DTYPE) if tensors else L.NO_DTYPE
        call.label = SHADOW + name if self.joined else name
        call.name = self.recorder.text(call.label)
        call.place = place
        call.seq = group.number(wait, peer)
        call.storages, call.caller, call.said = (), None, False
        call.after, call.seen, call.before = 0, 0, 0
        call.start = now()
        return call

    def begins(self, call):
        """The program is going to wait: what has happened is said, in case that it never returns."""
        r = self.recorder
        if r.open and r.begun:
            self.look(r.words)
            r.flush()
        self.waiting = now()
        if call.wait != SEND:
            source = call.group.ranks[call.peer] if call.wait == RECEIVE and call.peer >= 0 else -1
            self.hang.enters(call.label, call.place, call.group.comm, call.seq, call.group.ranks, source)
        self.looks()

    def goes_on(self):
        self.waiting = 0
        self.hang.leaves()

    def looks(self):
        if self.watch is None:
            self.watch = threading.Thread(target=self.look_after, name="tapedeck", daemon=True)
            self.watch.start()

    def show(self):
        """Where the rank is comes to the tape at once, for a call of which the process dies; not where that takes
        more than a share of the program's time."""
        start = now()
        if start - self.last_shown > SHARE * self.showing and self.recorder.on:
            self.recorder.lib.show(self.recorder.p)
            self.last_shown = now()
            self.showing = self.last_shown - start

    def look_after(self):
        """On a thread of its own: what waits for long is written to the tape.  The library's calls hold the
        interpreter's lock, so that never two of them run at once."""
        r = self.recorder
        while not self.stop.wait(LOOK):
            self.hang.look()
            since = self.waiting
            if since and since != self.shown and now() - since > LONG * 1e9 and r.p and r.on:
                self.shown = since
                r.lib.show(r.p)

    def close(self):
        """No thread of ours is left."""
        self.goes_on()
        self.stop.set()
        if self.watch is not None and self.watch is not threading.current_thread():
            self.watch.join(2 * LONG)

    def error(self, call, error, start, flags=0, size=None):
        """A wait has ended with an error: others did not come, or the call failed."""
        text = "%s: %s" % (type(error).__name__, str(error).split("\n")[0][:300])
        if not any(word in text.lower() for word in NOT_COME):
            self.say(call.row(start, now(), flags | FAILED, size))
        if self.recorder.open:
            self.recorder.words += (L.NOTICE, 3, self.recorder.text(text))

    # -------------------------------------------------------------- what the program calls

    def method(self, method, run):
        name, wait, part, has_peer = METHODS[method]
        name = "dist." + name

        def recorded(group, *args, **kwargs):
            call = None
            if self.listens():
                try:
                    call = self.enter(group, name, wait, part, has_peer, args, kwargs, sys._getframe(1))
                except Exception as error:
                    self.recorder.mistake(name, error)
            self.inside += 1
            try:
                work = run(group, *args, **kwargs)
            except BaseException as error:
                if call is not None:
                    self.goes_on()
                    self.not_begun(call, error)
                raise
            finally:
                self.inside -= 1
            if call is not None:
                try:
                    self.entered(call, work)
                except Exception as error:
                    self.recorder.mistake(name, error)
            return work

        recorded.__name__ = method
        recorded.__doc__ = run.__doc__
        return recorded

    def enter(self, group, name, wait, part, has_peer, args, kwargs, frame):
        known = self.group_of(group)
        if known is None:
            return None
        self.begin()
        given = args + tuple(kwargs.values())
        peer = -1
        if has_peer:
            options = next((v for v in given if hasattr(v, "rootRank")), None)
            peer = options.rootRank if options is not None else next(v for v in given if isinstance(v, int))
        call = self.new(known, name, wait, given[part] if part is not None and len(given) > part else None, peer,
                        self.recorder.places.here(frame))
        call.caller = (id(frame), frame.f_code)
        if wait in (SUM, GATHER):
            self.bypassed.n_brought += call.bytes
            self.brings(call)
        if known.size > 1 and wait not in (SEND, RECEIVE) and is_waited_for(frame) and self.recorder.open:
            call.said = True  # before it is made: a process may die of it
            self.say(call.row(call.start, 0))
            self.begins(call)
            self.goes_on()
            self.show()
        if name == "dist.monitored_barrier":  # it returns when all have come
            self.say(call.row(call.start, 0))
            self.begins(call)
        return call

    def brings(self, call):
        if self.recorder.sums is not None:
            self.recorder.sums.brings(call.bytes, self.recorder.phase == L.BACKWARD)

    def not_begun(self, call, error):
        """The method itself has failed: nobody was waited for, unless it is one that waits in itself."""
        if call.wait == MEET and self.recorder.text("dist.monitored_barrier") == call.name:
            self.error(call, error, call.start)
        elif call.wait not in (SEND, RECEIVE) and call.group.seq == call.seq:
            call.group.seq -= 1
            if call.said:
                self.say(call.row(call.start, now(), 0, 0))

    def entered(self, call, work):
        if work is None:
            self.goes_on()
            self.say(call.row(call.start, now()))
            return
        key = id(work)

        def gone(_):
            known = self.works.pop(key, None)
            if known is not None and self.listens():  # nobody waited for it
                self.say(call.row(call.start, 0, BEHIND))

        self.works[key] = (weakref.ref(work, gone), call)

    def take(self, work):
        known = self.works.get(id(work))
        if known is None or known[0]() is not work:
            return None
        del self.works[id(work)]
        return known[1]

    def wait_of(self, wait):
        def recorded(work, *args, **kwargs):
            call = self.take(work) if self.works and self.listens() else None
            if call is None:
                return wait(work, *args, **kwargs)
            start = now()
            try:
                frame = sys._getframe(1)
                # in the same call of one of torch.distributed's functions: nothing else ran meanwhile
                behind = not call.said and (
                    call.caller != (id(frame), frame.f_code) or not is_of_distributed(frame.f_code))
                start = start if behind else call.start
                if behind:
                    self.say(call.row(call.start, 0, BEHIND))
                if not call.said:
                    self.say(call.row(start, 0, 0, 0 if behind else None))
                self.begins(call)
            except Exception as error:
                self.recorder.mistake("a wait", error)
                return wait(work, *args, **kwargs)
            try:
                result = wait(work, *args, **kwargs)
            except BaseException as error:
                self.goes_on()
                self.error(call, error, start, 0, 0 if behind else None)
                raise
            self.goes_on()
            try:
                end = now()
                if call.wait == RECEIVE and call.peer < 0:
                    call.peer = work._source_rank()
                    call.seq = call.group.number(RECEIVE, call.peer)
                if behind:
                    self.say(call.row(call.start, end, BEHIND))
                self.say(call.row(start, end, 0, 0 if behind else None))
            except Exception as error:
                self.recorder.mistake("a wait", error)
            return result

        recorded.__name__ = "wait"
        recorded.__doc__ = wait.__doc__
        return recorded

    def is_completed_of(self, ask):
        def recorded(work, *args, **kwargs):
            come = ask(work, *args, **kwargs)
            if come and self.works and self.listens():
                call = self.take(work)
                if call is not None:
                    self.say(call.row(call.start, now(), BEHIND))
            return come

        recorded.__name__ = "is_completed"
        recorded.__doc__ = ask.__doc__
        return recorded

    # ------------------------------------------------------------------- what PyTorch makes

    def function(self, run, name):
        """One of C++ that makes some and returns when they have come."""
        def recorded(group, *args, **kwargs):
            if not self.listens():
                return run(group, *args, **kwargs)
            forward = bool(self.context) and name == INSIDE["_broadcast_coalesced"]
            return self.within(group, "DDP broadcast buffers" if forward else name, run, group, *args, **kwargs)

        return recorded

    def forward_of(self, forward):
        def recorded(ddp, *args, **kwargs):
            if not self.listens():
                return forward(ddp, *args, **kwargs)
            if torch.is_grad_enabled():
                known = self.group_of(ddp.process_group)
                self.forwarded[known.comm if known else 0] = known
                if self.own is not None:
                    self.recorder.sums.averages = True  # in its backward, seen or not
                    self.own.saw(ddp)
                    self.bypassed.runs(ddp, self.recorder.places, sys._getframe(1))
            self.bypassed.inside += 1
            try:
                return self.within(ddp.process_group, "DDP broadcast buckets", forward, ddp, *args, **kwargs)
            finally:
                self.bypassed.inside -= 1

        recorded.__doc__ = forward.__doc__
        return recorded

    def making(self, make):
        """A model whose module may be called before it is."""
        @functools.wraps(make)
        def recorded(ddp, *args, **kwargs):
            make(ddp, *args, **kwargs)
            if self.listens():
                self.bypassed.knows(ddp)

        return recorded

    def within(self, group, name, run, *args, **kwargs):
        n = len(self.pending)
        self.context.append((group, name))
        try:
            return run(*args, **kwargs)
        except BaseException as error:
            for call in self.pending[n:]:
                self.error(call, error, call.start)
            del self.pending[n:]
            raise
        finally:
            self.context.pop()
            self.goes_on()
            try:
                self.come(n, now())
            except Exception as error:
                self.recorder.mistake(name, error)

    def come(self, n, end):
        """All pending ones from n on have come by now, each when what it brought was used first."""
        calls = self.pending[n:]
        if not calls:
            return
        self.look(self.recorder.words)
        del self.pending[n:]
        for call in calls:
            self.say(call.row(call.start, call.seen or end))

    def operator(self, func, name):
        """What runs an operator of c10d: it says first what it is going to do."""
        method, root = OPERATORS[name]
        run = getattr(func, "_op", func)

        def recorded(*args, **kwargs):
            call = None
            if self.listens():
                try:
                    call = self.made(method, args[root] if root is not None else -1, args)
                except Exception as error:
                    self.recorder.mistake("c10d." + name, error)
            buckets = self.buckets_of(call, method, args)
            if buckets:
                self.gradients(BeforeMean.before, buckets)
            try:
                result = run(*args, **kwargs)
            except BaseException as error:
                if call in self.pending:
                    self.pending.remove(call)
                    self.error(call, error, call.start, 0 if self.context else BEHIND)
                raise
            return result

        return recorded

    def buckets_of(self, call, method, args):
        """Gradients that DistributedDataParallel is going to sum; whether parameters were used it sums, too."""
        if call is None or self.own is None or method != "allreduce" or self.context or not self.in_backward:
            return []
        return [tensor for tensor in tensors_of(args[0]) if tensor.dtype.is_floating_point]

    def gradients(self, look, *args):
        try:
            averaged = self.recorder.unrecorded(look, self.own, *args, self.recorder.name_of)
            self.bypassed.are_averaged(averaged)
        except Exception as error:
            self.recorder.mistake("gradients before the mean", error)

    def known_group(self, args):
        """Of an operator: exactly, or None."""
        names = self.c10d._world.pg_names if hasattr(self.c10d, "_world") else self.c10d._pg_names
        unbox = getattr(self.c10d.ProcessGroup, "unbox", None)
        for value in args if unbox is not None else ():
            if isinstance(value, torch.ScriptObject):
                try:
                    return self.group_of(unbox(value))
                except Exception:
                    continue
        if len(names) == 1:
            return self.group_of(next(iter(names)))
        if self.context:
            return self.group_of(self.context[-1][0])
        return next(iter(self.forwarded.values())) if len(self.forwarded) == 1 else None

    def made(self, method, peer, args):
        """PyTorch makes one by itself."""
        r = self.recorder
        group = self.known_group(args)
        if group is None:
            if not self.unknown:
                self.unknown = True
                r.words += (L.NOTICE, 3, r.text("of a collective that PyTorch makes by itself the process group is not "
                                                "known: there are several"))
            return None
        name, wait, part, _ = METHODS[method]
        tensors = args[part] if part is not None else ()
        backward = r.phase == L.BACKWARD and not self.context
        name = self.name_of(name, tensors_of(tensors), backward)
        call = self.new(group, name, wait, tensors, peer, r.phase_place if backward else r.places.here(sys._getframe(2)))
        taken = []
        for tensor in tensors_of(args):
            storage, _ = r.storage(tensor, L.GRADIENTS if backward else L.INPUT)
            if storage is not None:
                taken.append(storage)
        call.storages = tuple(taken)
        call.after = NEVER if backward else call.start
        if wait in (SUM, GATHER):
            self.brings(call)
        self.say(call.row(call.start, 0, 0 if self.context else BEHIND))
        if self.context:
            self.begins(call)
        elif not backward:
            return call  # nobody says when it has come
        self.pending.append(call)
        if backward:
            self.watch_backward()
        return call

    def name_of(self, name, tensors, backward):
        if self.context:
            return self.context[-1][1]
        if not backward:
            return "c10d." + name
        if tensors and not tensors[0].dtype.is_floating_point and not tensors[0].dtype.is_complex:
            return "DDP %s unused" % name  # which parameters no rank has used
        self.bucket += 1
        return "DDP %s bucket %d" % (name, self.bucket - 1)

    # ---------------------------------------------------------------------------- backward

    def watch_backward(self):
        """Of the calls after backward the reducer's waits for its buckets; one of ours comes before, and one after."""
        if self.in_backward:
            return
        self.in_backward = True
        try:
            torch.autograd.Variable._execution_engine.queue_callback(self.before_waits)
        except RuntimeError:
            pass  # the engine does not run: the end of backward is all that is known

    def before_waits(self):
        try:
            calls = [call for call in self.pending if call.after == NEVER]
            if not calls:
                return
            torch.autograd.Variable._execution_engine.queue_callback(self.after_waits)
            if self.own is not None:
                self.gradients(BeforeMean.ends)
            start = now()
            self.say(calls[0].row(start, 0, 0, 0))
            self.begins(calls[0])
            self.last_end = start
            for call in calls:
                call.after = start
        except Exception as error:
            self.recorder.mistake("the end of backward", error)

    def after_waits(self):
        try:
            self.goes_on()
            self.buckets_come(now())
        except Exception as error:
            self.recorder.mistake("the end of backward", error)

    def buckets_come(self, end):
        """Each has come when the reducer has used it; before that, from the operator before on, it was waited for."""
        self.look(self.recorder.words)
        first = True
        calls = [call for call in self.pending if 0 < call.after < NEVER]
        self.pending = [call for call in self.pending if call not in calls]
        for call in calls:
            self.say(call.row(call.start, call.seen or end, BEHIND))
            if first:
                self.say(call.row(call.after, call.seen or end, 0, 0))
            elif call.seen:
                self.say(call.row(call.before, call.seen, 0, 0))
            first = False

    def backward_begins(self):
        if self.own is not None:
            self.own.begins()
            self.bypassed.backward = True

    def backward_ends(self, error=None):
        """What the engine has not called back for."""
        if not self.in_backward and not self.pending:
            return
        self.in_backward, self.bucket = False, 0
        self.goes_on()
        calls, self.pending = [call for call in self.pending if call.after], []
        end = now()
        for call in calls:
            if error is None:
                self.say(call.row(call.start, end, BEHIND))
        waited = next((call for call in calls if call.after < NEVER), None)
        if error is not None and waited is not None:
            self.error(waited, error, waited.after, 0, 0)

    def look(self, words):
        """What has run since: which of the pending ones has been used."""
        calls = [call for call in self.pending if call.after < NEVER and not call.seen]
        if not calls:
            return
        words, at = list(words), 0
        while at < len(words):
            if words[at] == L.OPERATION:
                start, end, used = words[at + 10], words[at + 11], words[at + 13:at + words[at + 1]]
                for call in calls:
                    if not call.seen and start >= call.after and any(
                            v in storage.variables for storage in call.storages for v in used):
                        call.seen, call.before = start, max(self.last_end, call.after)
                self.last_end = end
            at += words[at + 1]


def before(row):
    """A row of what happened before the iteration that it is going to be in."""
    row = list(row)
    row[AT_FLAGS] |= BEFORE
    return row


def is_waited_for(frame):
    """One of torch.distributed's functions makes it and waits for it itself."""
    return is_of_distributed(frame.f_code) and frame.f_locals.get("async_op") is False


def is_of_distributed(code):
    return code.co_filename.endswith(os.path.join("torch", "distributed", "distributed_c10d.py"))
