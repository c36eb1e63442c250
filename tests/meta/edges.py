#!/usr/bin/env python3
"""edges.py BUILD-ROOT OBJECT-FOLDER...: who needs whose symbols, by nm over the engine's objects.

Houses and rooms (houses.py) need only what lies below them, start.c is needed by nobody, no circle
of files goes over more than one folder, and no header names what a higher house defines.
edges.py --self-test CC ...: edges that were planted are found.
SPDX-License-Identifier: MIT
"""
import collections
import os
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile

from checks import ROOT, Report
from houses import HOUSES, ROOMS, START, allowed, inside, place

DEFINED = set("TDRBCGSVW")
FEWEST = 300  # objects of an engine that was built


def source_of(build, folder, object_name, root):
    """engine/compute/core/apply.c of engine/libtapedeck.so.0.1.0.p/compute_core_apply.c.o: no file
    or folder of ours has a '_' in its name. None: the source is gone, the object was left over."""
    target = pathlib.PurePosixPath(os.path.relpath(os.path.dirname(folder), build))
    name = str(target / object_name[:-len(".o")].replace("_", "/"))
    return name if (root / name).is_file() else None


def symbols(build, folders, root):
    """By source: what it defines for others, and what it needs from others."""
    defines, needs = collections.defaultdict(set), collections.defaultdict(set)
    for folder in folders:
        names = {entry: source_of(build, folder, entry, root)
                 for entry in sorted(os.listdir(folder)) if entry.endswith(".o")}
        objects = [entry for entry, name in names.items() if name is not None]
        for line in subprocess.run(["nm", "-A", *objects], capture_output=True, check=True, text=True,
                                   cwd=folder).stdout.splitlines() if objects else []:
            entry, rest = line.split(":", 1)
            kind, symbol = rest.split()[-2:]
            if kind in DEFINED:
                defines[names[entry]].add(symbol)
            elif kind == "U":
                needs[names[entry]].add(symbol)
    return defines, needs


def edges_of(defines, needs):
    """{(file, file it needs): symbols}"""
    home = {symbol: name for name, found in defines.items() for symbol in found}
    edges = collections.defaultdict(set)
    for name, wanted in needs.items():
        for symbol in wanted:
            if symbol in home and home[symbol] != name:
                edges[name, home[symbol]].add(symbol)
    return edges


def upward(edges, table):
    return [f"{a} needs {', '.join(sorted(found))} of {b}" for (a, b), found in sorted(edges.items())
            if not allowed(a, b, table)]


def circles(edges):
    """Strongly connected components of more than one file (Tarjan 1972, without recursion)."""
    below = collections.defaultdict(list)
    for a, b in sorted(edges):
        below[a].append(b)
    index, low, stack, found = {}, {}, [], []
    for root in sorted(below):
        if root in index:
            continue
        work = [(root, iter(below[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                work.append((child, iter(below[child])))
            elif child in stack:
                low[node] = min(low[node], index[child])
    return found


def wide_circles(edges):
    """Circles over more than one folder, with the edges that lead from folder to folder."""
    problems = []
    for circle in circles(edges):
        members = set(circle)
        if len({posixpath.dirname(name) for name in circle}) < 2:
            continue
        problems.append(f"a circle of {len(circle)} files:")
        problems += [f"  {a} needs {', '.join(sorted(found))} of {b}"
                     for (a, b), found in sorted(edges.items())
                     if {a, b} <= members and posixpath.dirname(a) != posixpath.dirname(b)]
    return problems


def code_of(text):
    """A header without comments, strings and what the preprocessor takes."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", " ", text, flags=re.M)


def headers_that_look_up(root, defines):
    """Headers that declare what a higher house, or room, defines."""
    home = {symbol: name for name, found in defines.items() for symbol in found}
    problems = []
    for house in HOUSES:
        for path in sorted((root / house).rglob("*.h")):
            name = path.relative_to(root).as_posix()
            for symbol in sorted(set(re.findall(r"\w+", code_of(path.read_text())))):
                other = home.get(symbol)
                if other is not None and (other == START or not all(
                        allowed(name, other, table) for table in (HOUSES, ROOMS))):
                    problems.append(f"{name} declares {symbol}, which {other} defines")
    return problems


def check(build, folders, root=ROOT):
    """Claims with their problems, and how many files and edges there are."""
    defines, needs = symbols(build, folders, root)
    edges = edges_of(defines, needs)
    return [("a house needs nothing of a higher one", upward(edges, HOUSES)),
            ("nor does a room of compute", upward(edges, ROOMS)),
            ("nobody needs start.c", [f"{a} needs {', '.join(sorted(found))} of {b}"
                                      for (a, b), found in sorted(edges.items()) if b == START]),
            ("no circle goes over more than one folder", wide_circles(edges)),
            ("no header declares what a higher house defines", headers_that_look_up(root, defines)),
            ("every file lies in a house", [name for name in sorted({*defines, *needs})
                                            if name != START and not place(name, HOUSES)
                                            and inside(name, "engine")])], len({*defines, *needs})


# Each claim with a small engine that breaks it, and what must be said of it.
PLANTED = [
    ("a house needs nothing of a higher one",
     {"engine/compute/core/low.c": "void td__high (void); void td__low (void) { td__high (); }",
      "engine/static/high.c": "void td__high (void) {}"},
     "engine/compute/core/low.c needs td__high of engine/static/high.c"),
    ("a house needs nothing of a higher one",  # beside each other
     {"engine/record/agent/ask.c": "extern int td__asked; int td__ask (void) { return td__asked; }",
      "engine/static/asked.c": "int td__asked = 1;"},
     "engine/record/agent/ask.c needs td__asked of engine/static/asked.c"),
    ("nor does a room of compute",
     {"engine/compute/core/low.c": "void td__op (void); void td__low (void) { td__op (); }",
      "engine/compute/ops/op.c": "void td__op (void) {}"},
     "engine/compute/core/low.c needs td__op of engine/compute/ops/op.c"),
    ("nobody needs start.c",
     {"engine/train/loop/end.c": "int td_finish (void); int td__end (void) { return td_finish (); }",
      "engine/start.c": "int td_finish (void) { return 0; }"},
     "engine/train/loop/end.c needs td_finish of engine/start.c"),
    ("no circle goes over more than one folder",
     {"engine/train/links/a.c": "void td__b (void); void td__a (void) { td__b (); }",
      "engine/train/hooks/b.c": "void td__c (void); void td__b (void) { td__c (); }",
      "engine/train/hooks/c-d.c": "void td__a (void); void td__c (void) { td__a (); }"},
     "  engine/train/hooks/c-d.c needs td__a of engine/train/links/a.c"),
    ("no header declares what a higher house defines",
     {"engine/compute/core/low.h": "/* td__says (): */ void td__high (void);\n#define SAYS td__says",
      "engine/train/loop/high.c": "void td__high (void) {}\nvoid td__says (void) {}"},
     "engine/compute/core/low.h declares td__high, which engine/train/loop/high.c defines"),
]


def plant(root, cc, files):
    """Write and compile files of one target below root. Returns where their objects are."""
    target = next(iter(files)).split("/")[0]
    objects = root / "build" / target / "target.p"
    objects.mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        if name.endswith(".c"):
            to = objects / (name[len(target) + 1:].replace("/", "_") + ".o")
            subprocess.run(cc + ["-c", path, "-o", to], check=True)
    return str(objects)


def self_test(cc):
    report = Report()
    for claim, files, problem in PLANTED:
        with tempfile.TemporaryDirectory() as at:
            root = pathlib.Path(at)
            objects = plant(root, cc, files)
            # What is left of a file that is gone counts no more.
            to = os.path.join(objects, "compute_core_gone.c.o")
            subprocess.run(cc + ["-x", "c", "-c", "-", "-o", to], check=True,
                           input=b"void td__high (void); void td__gone (void) { td__high (); }")
            found = dict(check(str(root / "build"), [objects], root)[0])
        others = [text for name, rest in found.items() if name != claim for text in rest
                  if "gone" in text]
        report.claim(f"{claim}: {problem.strip()}",
                     ([] if problem in found[claim] else [f"not found: {problem}", *found[claim]])
                     + others)
    edges = {("engine/static/up.c", "engine/compute/core/low.c"): {"td__low"},
             ("engine/start.c", "engine/static/up.c"): {"td__up"}}
    report.claim("an edge downwards is none", upward(edges, HOUSES) + wide_circles(edges))
    report.end()


def main():
    if sys.argv[1] == "--self-test":
        self_test(sys.argv[2:])
    claims, n = check(sys.argv[1], sys.argv[2:])
    report = Report()
    report.claim(f"the engine's objects are there: {n}",
                 [] if n >= FEWEST else [f"only {n} of them in {' '.join(sys.argv[2:])}"])
    for text, problems in claims:
        report.claim(text, problems)
    report.end()


if __name__ == "__main__":
    main()
