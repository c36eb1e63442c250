#!/usr/bin/env python3
"""onnx-list.py TAPEDECK: engine/train/onnx/OPERATORS.md is what `tapedeck eval --list-onnx` says.

With the onnx package (TD_TEST_PYTHON names a Python that has it) the operators that are not there
are held against its own list, and TD_UPDATE_GOLDEN=1 writes the file.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import subprocess
import sys

try:
    from onnx import defs
except ImportError:
    other = os.environ.get("TD_TEST_PYTHON", "")
    if other and os.path.exists(other) and os.environ.get("TD_TEST_AGAIN") is None:
        os.environ["TD_TEST_AGAIN"] = "1"
        os.execv(other, [other, *sys.argv])
    defs = None

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from checks import Report  # noqa: E402

LIST = ROOT / "engine/train/onnx/OPERATORS.md"
LAST = 21
HEAD = """# Operators of ONNX

What `td_onnx_load` reads of the standard domain up to opset 21. A row is a range of opsets; *partly* says what is left
out, and a file that asks for it is refused with a line that names the node. `tests/app/onnx-list.py` keeps this list.

| operator | opsets | read |
|---|---|---|
"""


def rows_of(said):
    """Name, opsets, what is said of it."""
    return [re.match(r"(\S+) +(\d+-\d+)  (.*)", line).groups() for line in said.splitlines()]


def text_of(rows, missing):
    lines = [f"| {name} | {opsets} | {what} |" for name, opsets, what in sorted(rows)]
    return HEAD + "\n".join(lines) + "\n\nNot read: " + ", ".join(missing) + ".\n"


def all_operators():
    return {s.name for s in defs.get_all_schemas_with_history()
            if s.domain == "" and s.since_version <= LAST and not s.deprecated}


def main():
    said = subprocess.run([sys.argv[1], "eval", "--list-onnx"], capture_output=True, text=True, check=True)
    rows, report = rows_of(said.stdout), Report()
    known = {name for name, _, _ in rows}
    if defs is not None:
        missing = sorted(all_operators() - known)
        if os.environ.get("TD_UPDATE_GOLDEN"):
            LIST.write_text(text_of(rows, missing))
        report.claim("every operator that is read is one of ONNX's", sorted(known - all_operators()))
    text = LIST.read_text()
    listed = re.search(r"^Not read: (.*)\.$", text, re.M).group(1).split(", ")
    report.claim("OPERATORS.md says what the program says", [] if text == text_of(rows, listed) else
                 ["differs: TD_UPDATE_GOLDEN=1"])
    if defs is not None:
        report.claim("what is not read is all of the rest", [] if listed == missing else
                     sorted(set(listed) ^ set(missing)))
    report.end()


if __name__ == "__main__":
    main()
