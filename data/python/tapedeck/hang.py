"""A rank that waits, as the others of a run that `tapedeck run -n` has started see it, and what is done about one that does
not come: where each is goes to standard error and onto the tapes, and then all are ended or left, as `--on-hang` says.

SPDX-License-Identifier: MIT
"""
import ctypes
import os
import sys

from . import library as L
from .facts import now

TEXT = 1600
LATE = 1.0  # seconds: a look that comes later than this is of a process that was stopped itself


class Hang:
    """Of a recorder's collectives."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.on = "TAPEDECK_RANKS_FILE" in os.environ and os.environ.get("TAPEDECK_HANG_AFTER", "0") != "0"
        self.waits = False
        self.looked = 0

    def enters(self, call, place, comm, seq, ranks, source=-1):
        """The program waits in a call of these ranks, or for one of them."""
        if not self.on:
            return
        file, line = self.recorder.places.texts.get(place, ("", 0))
        members = (ctypes.c_int32 * len(ranks))(*ranks)
        waiting = L.Waiting(n_members=len(ranks), members=members, comm=comm, seq=seq, call=call.encode()[:39],
                            file=file.encode()[-43:], line=line, from_=source)
        waiting.size = ctypes.sizeof(waiting)
        self.on = self.recorder.lib.waiting(self.recorder.p, ctypes.byref(waiting)) == L.OK
        self.waits = self.on

    def leaves(self):
        if self.waits:
            self.waits = False
            self.recorder.lib.waiting(self.recorder.p, None)

    def look(self):
        """On a thread of its own, while the program waits or runs."""
        r, at = self.recorder, now()
        passed, self.looked = min((at - (self.looked or at)) / 1e9, LATE), at
        if not self.on or not r.p or not r.on:
            return
        text = ctypes.create_string_buffer(TEXT)
        ends = r.lib.hang(r.p, passed, text, len(text))
        if text.value:
            r.lib.notice(r.p, text.value)
            r.lib.show(r.p)
        if ends:
            try:
                sys.stdout.flush()
            finally:
                os._exit(1)  # which ends the tape, too

