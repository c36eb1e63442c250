"""Names of what a program runs: operators and their arguments, places in its source, layers.

SPDX-License-Identifier: MIT
"""
import os
import signal
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
MAKERS = tuple(os.path.join(TORCH, "nn", "utils", file) for file in ("parametriz", "spectral_norm.", "weight_norm."))
PLAIN = (int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
LIBRARY = (HERE, TORCH, "<frozen", "<string>", os.path.dirname(os.__file__) + os.sep)


class Operator:
    """What is known of an operator: its number, and which of its arguments it writes to."""

    __slots__ = ("number", "name", "plain", "arguments", "writes", "kept", "filled", "clears",
                 "texts", "function", "written", "call")

    def __init__(self, function, number_of):
        schema = function._schema
        self.function = function  # kept: it is known by its address
        self.name = str(function).split(".")[1] if "." in str(function) else str(function)
        self.plain = self.name.replace("_", "").lower()
        self.arguments = [argument.name for argument in schema.arguments]
        self.writes = frozenset(i for i, argument in enumerate(schema.arguments)
                                if argument.alias_info is not None and argument.alias_info.is_write)
        self.written = frozenset(self.arguments[i] for i in self.writes)
        self.kept = str(function).split(".")[0] != "profiler"
        # What is merely taken has no numbers yet.
        self.filled = not self.plain.startswith(("empty", "newempty", "resize"))
        self.clears = "zero" in self.plain or self.plain.startswith("fill")
        self.texts = {}
        self.call = None  # what runs it in its place
        self.number = number_of(self.name, str(function).split(".")[0], ", ".join(
            name for name, argument in zip(self.arguments, schema.arguments)
            if not str(argument.type).startswith(("Tensor", "Optional[Tensor]", "List[Tensor]"))))


def short(value):
    """A value of an attribute: without blanks, which part attributes."""
    if isinstance(value, (list, tuple)):
        return ",".join(short(v) for v in value[:16]) + (",..." if len(value) > 16 else "")
    text = str(value)
    if " object at 0x" in text:  # where it lies is another place in each process
        text = type(value).__name__
    text = text[6:] if text.startswith("torch.") else text
    return "".join(text.split())[:80] or "''"


def is_plain(value):
    """Whether it is a number or a name, or a row of them, and holds nothing of the program's."""
    return isinstance(value, PLAIN) or isinstance(value, (tuple, list)) and all(map(is_plain, value))


def attributes(operator, rest):
    """'stride=2,2 padding=1,1' of [(place or name, value)]."""
    parts = []
    for at, value in rest:
        name = at if isinstance(at, str) else (
            operator.arguments[at] if at < len(operator.arguments) else "argument")
        parts.append("%s=%s" % (name, short(value)))
    return " ".join(parts)


def of_class(module):
    """What a module is called that has no name in another: its class, which type () may have made without one."""
    return type(module).__name__ or "Module"


def is_twin(node, plain):
    """Whether a node of autograd is by its name the backward of an operator: what the numbers say
    is taken only where the names agree."""
    name = node.rsplit("::", 1)[-1].split("Backward")[0].replace("_", "").lower()
    return bool(name) and (plain.startswith(name) or name.startswith(plain))


def is_building(frame):
    """Whether a module is being made, or given a parametrization, by this frame or one that called it: what
    PyTorch calls of its layers meanwhile is no forward pass, and they may have no place in their model yet."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(MAKERS):
            return True
        if code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), torch.nn.Module):
            return True
        frame = frame.f_back
    return False


def is_of_handler(error):
    """Whether it was raised in a handler of a signal: they run between any two steps of Python."""
    codes = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler):
            handler = getattr(handler, "func", handler)  # of functools.partial
            codes.add(getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None))
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None


class Codes(dict):
    """Which functions are of some kind: asked of a code by its address, and remembered."""

    def __init__(self, is_one):
        super().__init__()
        self.is_one = is_one
        self.kept = []  # an address is not used again

    def ask(self, code):
        self.kept.append(code)
        answer = self[id(code)] = bool(self.is_one(code))
        return answer

    def __contains__(self, code):
        known = self.get(id(code))
        return known if known is not None else self.ask(code)


def is_own(code):
    """Whether a function is the program's."""
    name = code.co_filename
    return not name.startswith(LIBRARY) and (
        os.sep + "site-packages" + os.sep not in name
        and os.sep + "dist-packages" + os.sep not in name)


class Places:
    """Places in the program's source: of the innermost frame that is the program's own."""

    def __init__(self, number_of, source):
        self.number_of = number_of
        self.source = source
        self.codes = Codes(is_own)
        self.places = {}  # (address of a code, instruction) -> number
        self.files = set()
        self.texts = {}  # number -> (file, line)

    def here(self, frame):
        """The place that a frame is at, or that of who called it; 0: all of them are of libraries."""
        codes = self.codes
        while frame is not None:
            code = frame.f_code
            if code in codes:
                place = self.places.get((id(code), frame.f_lasti))
                return place if place is not None else self.new(frame, code)
            frame = frame.f_back
        return 0

    def where(self, frame):
        """The same as a text, "train.py:88"."""
        while frame is not None and frame.f_code not in self.codes:
            frame = frame.f_back
        return "?" if frame is None else "%s:%d" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno or 0)

    def new(self, frame, code):
        name = code.co_filename
        if name not in self.files:
            self.files.add(name)
            try:
                with open(name, "rb") as file:
                    self.source(name, file.read())
            except OSError:
                pass  # typed in, or gone: the place alone is known
        place = self.number_of(name, frame.f_lineno or 0, code.co_name)
        self.texts[place] = os.path.basename(name), frame.f_lineno or 0
        self.places[(id(code), frame.f_lasti)] = place
        return place


def host():
    return os.uname().nodename


def command():
    return " ".join(sys.argv)
