"""libtdproducer by ctypes: finding it, its calls, and its numbers.

SPDX-License-Identifier: MIT
"""
import ctypes
import glob
import os

# Of td-producer.h.
BEGIN, END, ALLOC, RELEASE, VARIABLE, FORGET, OPERATION, GRADIENT, MEASURED, REPORT, NOTICE, SUM, WAIT, SCOPE = range(1, 15)
SUM_PARAMETER, SUM_PERSISTENT, SUM_STATE, SUM_GRADIENT, SUM_MEAN, SUM_NUMBER = range(6)
FORWARD, BACKWARD, ACCUMULATE, UPDATE = range(4)
(OTHER, PARAMETER, GRADIENTS, ACTIVATION, OPTIMIZER, INPUT, BUFFER) = range(7)
REQUIRES_GRAD, IS_PARAMETER = 1 << 0, 1 << 3
FAILED = 1 << 1
LEVELS = {"graph": 0, "stats": 1, "values": 2}
NO_DTYPE = 8  # one that the tape has no name for
OK, FULL = 0, -4


class Waiting(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("n_members", ctypes.c_uint32),
                ("members", ctypes.POINTER(ctypes.c_int32)), ("comm", ctypes.c_uint64), ("seq", ctypes.c_uint64),
                ("call", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_uint32), ("from_", ctypes.c_int32)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("level", ctypes.c_uint32), ("path", ctypes.c_char_p),
                ("producer", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("program", ctypes.c_char_p), ("budget_bytes", ctypes.c_uint64),
                ("overwrite", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("n_ranks", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


CALLS = {
    "new": (ctypes.c_void_p, [ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_size_t]),
    "free": (None, [ctypes.c_void_p]),
    "error": (ctypes.c_char_p, [ctypes.c_void_p]),
    "text": (ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_char_p]),
    "place": (ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_char_p]),
    "layer": (ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "kind": (ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p]),
    "info": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "source": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
    "end": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "words": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]),
    "live": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
    "gate": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "show": (ctypes.c_int, [ctypes.c_void_p]),
    "notice": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "waiting": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Waiting)]),
    "hang": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_double, ctypes.c_char_p, ctypes.c_size_t]),
    "measure_ahead": (ctypes.c_int64, [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                                       ctypes.c_uint64]),
}


# These wait, or call back; all others keep the interpreter's lock, so that never two of them run at once.
UNLOCKED = {"new", "free", "end", "live", "gate"}


EXTENSION = 4  # what the recorder asks of an extension module: of private.h


class Unusable(Exception):
    """The library is not there, or a tape cannot be made: one line."""


def address_of(call):
    return ctypes.cast(call, ctypes.c_void_p).value


def candidates():
    """Where the library may lie: named by the environment; below the prefix that the package is
    installed under; where the loader looks."""
    named = os.environ.get("TAPEDECK_PRODUCER")
    if named:
        yield named
        return
    prefix = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4))
    for pattern in ("lib/libtdproducer.so.0", "lib/*/libtdproducer.so.0", "lib64/libtdproducer.so.0"):
        yield from sorted(glob.glob(os.path.join(prefix, pattern)))
    yield "libtdproducer.so.0"


def load():
    """The library with its calls declared, as an object with a function for each of CALLS, and `folder`."""
    why = "it was not found"
    for path in candidates():
        # What it needs lies beside it, wherever the loader would look for that.
        beside = os.path.join(os.path.dirname(path), "libtdtape.so.0")
        try:
            if os.path.exists(beside):
                ctypes.CDLL(beside, mode=ctypes.RTLD_GLOBAL)
            library, locked = ctypes.CDLL(path), ctypes.PyDLL(path)
            missing = next((name for name in CALLS if not hasattr(library, "td_producer_" + name)), None)
        except OSError as error:
            why = str(error)
            continue
        if missing is not None:
            why = "%s is older than this package: it has no td_producer_%s" % (path, missing)
            continue
        for name, (result, arguments) in CALLS.items():
            function = getattr(library if name in UNLOCKED else locked, "td_producer_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(library, name, function)
        library.folder = os.path.dirname(path)
        return library
    raise Unusable("libtdproducer cannot be loaded (%s); TAPEDECK_PRODUCER names its file" % why)
