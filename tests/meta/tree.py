#!/usr/bin/env python3
"""The tree: what lies at the top, how long files are, how they begin, what they must not name.

SPDX-License-Identifier: MIT
"""
import re

from checks import ROOT, Report, read, tree

TOP = {"meson.build", "meson_options.txt", "app", "engine", "gpu", "viz", "ui", "data", "tests",
       "README.md", "LICENSE", "dev"}
CODE = (".c", ".h", ".cu", ".cuh")
WITH_README = ["app", "engine", "gpu", "viz", "ui", "data", "tests"]
# Words that only the machine of one person would know.
PRIVATE = re.compile(r"/(?:root|work)/[a-z]|/home/[a-z]{2}|/tmp/wt")


def head_problem(name):
    text = read(name)
    comment = re.match(r"/\*(.*?)\*/", text, re.S)
    if not comment:
        return f"{name}: does not begin with a comment"
    if "SPDX-License-Identifier: MIT" not in comment.group(1):
        return f"{name}: no SPDX line in the first comment"
    if len(comment.group(1).split()) < 8:
        return f"{name}: the first comment does not say what lives here"
    return None


def main():
    names = tree()
    code = [name for name in names if name.endswith(CODE)]
    report = Report()

    top = {name.split("/")[0] for name in names}
    report.claim("the first level holds only what belongs there",
                 sorted(name for name in top if name not in TOP and not name.startswith(".")))
    report.claim("every folder of the first level says what it is",
                 [f"{name}/README.md is missing" for name in WITH_README
                  if not (ROOT / name / "README.md").is_file()])
    report.claim("no source file is over 800 lines",
                 [f"{name}: {lines} lines" for name in code
                  if (lines := read(name).count("\n")) > 800])
    report.claim("every source file begins with what lives here and its licence",
                 filter(None, map(head_problem, code)))
    report.claim("headers guard themselves with #pragma once",
                 [name for name in code
                  if name.endswith((".h", ".cuh")) and "#pragma once" not in read(name)])
    report.claim("scripts carry the licence line",
                 [name for name in names
                  if (name.endswith((".py", ".sh")) or name in ("dev", ".ci/run"))
                  and "SPDX-License-Identifier: MIT" not in read(name)])
    report.claim("no file names a path of one machine",
                 [f"{name}: {match.group(0)}" for name in names
                  if not name.endswith((".png", ".tdtape", ".npz", ".npy", ".gz"))
                  and name != "tests/meta/tree.py" and (match := PRIVATE.search(read(name)))])
    report.end()


if __name__ == "__main__":
    main()
