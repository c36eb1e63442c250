#!/usr/bin/env python3
"""The files that the READMEs of engine name are there.

What stands between backquotes and looks like a path (it ends in '/', or in a suffix that files of
the tree have) is looked for beside the README and from the root on. walks.py --self-test: a name
that is wrong is found.
SPDX-License-Identifier: MIT
"""
import posixpath
import re
import sys

from checks import ROOT, Report, read, tree

FRONT = "engine/README.md"
SUFFIXES = (".c", ".h", ".def", ".md", ".py", ".build", ".cu", ".ui")
# Folders whose files are named without them, as in an #include.
SHORT = ("engine/public", "engine/compute", "engine/compute/core")
HOUSES = ("base", "tape", "compute", "static", "train", "record")


def paths_in(text):
    """Paths between backquotes; `trace.h`, `.c` stands for trace.h and trace.c."""
    found, last = [], ""
    for span in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"\.\w+", span):
            span = posixpath.splitext(last)[0] + span
        if re.fullmatch(r"[\w./*-]+", span) and (span.endswith("/") or span.endswith(SUFFIXES)):
            found.append(span)
            last = span
    return found


def missing(readme, text):
    def there(span):
        for base in (posixpath.dirname(readme), "", *SHORT):
            if any((ROOT / base).glob(span.rstrip("/"))):
                return True
        return False
    return [f"{readme} names {span}" for span in paths_in(text) if not there(span)]


def main():
    report = Report()
    if sys.argv[1:] == ["--self-test"]:
        text = "`compute/ops/relu.c`, `.h`; `nowhere/`, `static/trace.h`, `.c` and `td_relu (x)`"
        report.claim("what is not there is found",
                     [] if missing(FRONT, text) == [f"{FRONT} names compute/ops/relu.h",
                                                    f"{FRONT} names nowhere/"]
                     else missing(FRONT, text))
        report.end()
    text = read(FRONT)
    walks = re.findall(r"^\*\*.*?(?=^\*\*|\Z)", text.split("## Four walks")[1], re.M | re.S)
    report.claim("there are four walks of at least six steps",
                 [walk.splitlines()[0] for walk in walks
                  if len(re.findall(r"^\d+\. `", walk, re.M)) < 6]
                 + ([] if len(walks) == 4 else [f"{len(walks)} walks"]))
    report.claim("every house has a README",
                 [house for house in HOUSES if not (ROOT / "engine" / house / "README.md").exists()])
    for name in tree():
        if name.startswith("engine/") and name.endswith("README.md"):
            report.claim(f"what {name} names is there", missing(name, read(name)))
    report.end()


if __name__ == "__main__":
    main()
