#!/usr/bin/env python3
"""no-optimizer.py TAPEDECK MODEL: gradients of a program without an optimizer are those that it has.

What the view says is compared with what the program printed; where the graph does not say which
variable is the gradient, as of a parameter of two operations or of gradients that are never
cleared, the view has none, and never another's.
SPDX-License-Identifier: MIT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "meta"))
from checks import Report  # noqa: E402  # pylint: disable=wrong-import-position

# By kind, parameters that have a norm in the view, and in which iterations.
KNOWN = {"layers": {"l1/W": 4, "l1/b": 4, "l2/W": 4, "l2/b": 4},
         "pictures": {"conv/W": 4, "conv/b": 4, "bn/gamma": 4, "bn/beta": 4, "last/W": 4, "last/b": 4},
         "words": {"words/W": 4, "l2/W": 4, "l2/b": 4},
         "through": {},
         "twice": {"l2/W": 4, "l2/b": 4},
         "kept": {"l1/W": 1, "l1/b": 1, "l2/W": 1, "l2/b": 1}}


def run(*command):
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    return child.returncode, child.stdout, child.stderr


def printed(out):
    """(iteration, parameter) -> norm, of those that have a gradient."""
    norms = {}
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdigit() and words[2] != "none":
            norms[int(words[0]), words[1].removeprefix("net/").lstrip("/")] = float(words[2])
    return norms


def look(tapedeck, model, kind, folder):
    """What is wrong, by lines."""
    tape = f"{folder}/{kind}.tdtape"
    status, out, err = run(tapedeck, "run", "--quiet", "-o", tape, "--level", "stats", model, kind)
    if status != 0:
        return [f"{kind}: status {status}: {err[:300]}"]
    norms = printed(out)
    status, out, err = run(tapedeck, "show", tape, "--view", "gradients", "--format", "json")
    if status != 0:
        return [f"{kind}: status {status}: {err[:300]}"]
    wrong, known = [], {}
    for row in json.loads(out)["parameters"]:
        name = row["path"].removeprefix("net/")
        for i, shown in enumerate(row["l2"]):
            if shown is None:
                continue
            known[name] = known.get(name, 0) + 1
            true = norms.get((i, name))
            if true is None or abs(shown - true) > 1e-4 * true + 1e-7:
                wrong.append(f"{kind}: {name} in iteration {i}: {shown}, the program has {true}")
        if name in known and int(row["id"], 16) == 0:
            wrong.append(f"{kind}: {name} cannot be selected: it has no id")
    if known != KNOWN[kind]:
        wrong.append(f"{kind}: norms of {known}, {KNOWN[kind]} expected")
    return wrong


def main():
    tapedeck, model = sys.argv[1:]
    report = Report()
    if run(tapedeck, "show", "--help")[0] == 127:
        print("built without viz: skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for kind in KNOWN:
            report.claim(f"gradients without an optimizer: {kind}", look(tapedeck, model, kind, folder))
    report.end()


if __name__ == "__main__":
    main()
