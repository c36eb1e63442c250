#!/usr/bin/env python3
"""thousand.py DOCUMENT: what recording a thousand ranks would take, by a model of messages (each
costs a latency and a time for each of its bytes) and by the sizes of our records.  The figures of
the document are those of these formulas, or the test fails; --write puts them there.
SPDX-License-Identifier: MIT
"""
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- thousand.py -->\n", "<!-- end -->\n"

# (latency in s, s for a byte).  The first follows from what README.md has measured with 2 ranks: a
# meeting of 384 bytes in 12 us, the sum of 1024 x 1024 floats in 2.7 ms.  The second is assumed.
HERE = (12e-6 - 384 * 2.7e-3 / 2**22, 2.7e-3 / 2**22)
CLUSTER = (2e-6, 1 / 12.5e9)
LOOK_S = 3.0 / 40000   # `tapedeck ranks`: an iteration of a rank, of 10,000 of 4 ranks
EVENT_BYTES = 81       # on the tape: see the document
RANKS = (4, 64, 1000)
ITERATIONS = 10000

# ResNet-18 with momentum: parameters, persistents, states of each parameter, numbers of the
# optimizer, numbers of all parameters, operations in an iteration.
PARAMETERS, PERSISTENTS, STATES, NUMBERS, SIZE, EVENTS = 62, 40, 1, 5, 11689512, 350
BUCKET = 1 << 22


def size_of(header, name):
    """What a header asserts of a struct's size."""
    text = (ROOT / header).read_text(encoding="utf-8")
    return int(re.search(rf"sizeof \({name}\) == (\d+)", text).group(1))


MEET = size_of("engine/ranks/comm.h", "TdMeet")
WAIT = size_of("engine/tape/format/td-tape-ranks.h", "TdTapeCollective")
SUM = size_of("engine/tape/format/td-tape-ranks.h", "TdTapeRankSum")
SUMMARY = size_of("engine/tape/format/td-tape.h", "TdTapeSummary")


def gather(net, n, size):
    """All ranks get `size` bytes of each: doubled in log2 n steps."""
    return math.ceil(math.log2(n)) * net[0] + (n - 1) * size * net[1]


def reduce(net, n, size):
    """The sum of `size` bytes of all: halved, and doubled again."""
    return 2 * math.ceil(math.log2(n)) * net[0] + 2 * (n - 1) / n * size * net[1]


def common():
    """Arrays that all must have in common after an update, whose sums are exchanged."""
    return PARAMETERS + PARAMETERS * STATES + NUMBERS


def ranks_bytes():
    """What being a rank adds to the tape in one iteration."""
    n_sums = 3 * PARAMETERS + PARAMETERS * STATES + PERSISTENTS + NUMBERS
    n_waits = 1 + math.ceil(SIZE / BUCKET)
    return n_sums * SUM + n_waits * WAIT


def tape_bytes():
    return ranks_bytes() + SUMMARY + EVENTS * EVENT_BYTES


def quantity(value, units):
    """Two digits, and the largest unit that is not more."""
    for size, unit in units:
        if value >= size or (size, unit) == units[-1]:
            scaled = value / size
            digits = max(0, 1 - math.floor(math.log10(scaled))) if scaled > 0 else 0
            return f"{scaled:.{min(digits, 2)}f} {unit}" if scaled < 10 else f"{scaled:.0f} {unit}"
    raise AssertionError


def seconds(s):
    return quantity(s, [(3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "us")])


def size(b):
    return quantity(b, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")])


def table():
    rows = [
        ("tape of a rank, an iteration", lambda n: size(tape_bytes())),
        ("of that, since it is a rank", lambda n: size(ranks_bytes())),
        (f"all tapes, {ITERATIONS} iterations", lambda n: size(n * ITERATIONS * tape_bytes())),
        ("a meeting brings each rank", lambda n: size(n * MEET)),
        ("a meeting, assumed cluster", lambda n: seconds(gather(CLUSTER, n, MEET))),
        ("the sum of all gradients there", lambda n: seconds(reduce(CLUSTER, n, 4 * SIZE))),
        ("where sums differ, once: lists of all arrays", lambda n: size(n * common() * 16)),
        ("their exchange there", lambda n: seconds(gather(CLUSTER, n, common() * 16))),
        (f"`tapedeck ranks`, {ITERATIONS} iterations", lambda n: seconds(n * ITERATIONS * LOOK_S)),
        ("cells of the matrix of an iteration",
         lambda n: str(n * (3 * PARAMETERS + PARAMETERS * STATES + PERSISTENTS + NUMBERS))),
    ]
    lines = ["| ranks | " + " | ".join(map(str, RANKS)) + " |", "|---" * (len(RANKS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cell(n) for n in RANKS) + " |" for name, cell in rows]
    lines += ["", f"By the same model a meeting of 4 ranks takes {seconds(gather(HERE, 4, MEET))} on the machine of "
              "`README.md`, where", "45 us were measured: its 2 processors take turns."]
    return "\n".join(lines) + "\n"


def main():
    document = pathlib.Path(sys.argv[1])
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    there, after = rest.split(END)
    if sys.argv[2:] == ["--write"]:
        document.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
        return 0
    same = there == table()
    print("1..1\n" + ("ok" if same else "not ok") + " 1 - the figures come out of the formulas")
    if not same:
        print("# expected:\n" + table())
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
