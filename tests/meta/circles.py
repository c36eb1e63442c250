#!/usr/bin/env python3
"""circles.py BUILD-ROOT OBJECT-FOLDER...: who needs whose symbols in viz and ui, by nm.

No circle of files goes over more than one folder, and in ui there is none at all: what a file needs
lies below it, and who stands higher fills a table or listens to a signal.
circles.py --self-test CC ...: circles that were planted are found.
SPDX-License-Identifier: MIT
"""
import pathlib
import sys
import tempfile

from checks import ROOT, Report
from edges import circles, edges_of, plant, symbols, wide_circles
from houses import inside

FEWEST = 180  # objects of viz and ui that were built


def narrow_circles(edges, folder):
    """Circles that are all in `folder`, with the edges that make them."""
    problems = []
    for circle in circles(edges):
        members = set(circle)
        if all(inside(name, folder) for name in circle):
            problems.append(f"a circle of {len(circle)} files:")
            problems += [f"  {a} needs {', '.join(sorted(found))} of {b}"
                         for (a, b), found in sorted(edges.items()) if {a, b} <= members]
    return problems


def check(build, folders, root=ROOT):
    """Claims with their problems, and how many files there are."""
    defines, needs = symbols(build, folders, root)
    edges = edges_of(defines, needs)
    return [("no circle goes over more than one folder", wide_circles(edges)),
            ("no circle of files is in ui", narrow_circles(edges, "ui"))], len({*defines, *needs})


def two(a, b):
    """Two files that need each other."""
    return {a: "void td_b (void); void td_a (void) { td_b (); }",
            b: "void td_a (void); void td_b (void) { td_a (); }"}


# A circle, and the claims that it breaks.
PLANTED = [(two("viz/graph/a.c", "viz/tape/b.c"), [True, False]),
           (two("viz/graph/a.c", "viz/graph/b.c"), [False, False]),
           (two("ui/pages/a.c", "ui/widgets/b.c"), [True, True]),
           (two("ui/pages/a.c", "ui/pages/b.c"), [False, True]),
           ({"ui/pages/a.c": "void td_b (void); void td_a (void) { td_b (); }",
             "ui/pages/b.c": "void td_b (void) {}"}, [False, False])]


def self_test(cc):
    report = Report()
    for files, broken in PLANTED:
        with tempfile.TemporaryDirectory() as at:
            root = pathlib.Path(at)
            objects = plant(root, cc, files)
            found = [bool(problems) for _, problems in check(str(root / "build"), [objects], root)[0]]
        report.claim(f"{' and '.join(files)}: {broken}", [] if found == broken else [f"{found}"])
    report.end()


def main():
    if sys.argv[1] == "--self-test":
        self_test(sys.argv[2:])
    claims, n = check(sys.argv[1], sys.argv[2:])
    report = Report()
    report.claim(f"the objects are there: {n}",
                 [] if n >= FEWEST else [f"only {n} of them in {' '.join(sys.argv[2:])}"])
    for text, problems in claims:
        report.claim(text, problems)
    report.end()


if __name__ == "__main__":
    main()
