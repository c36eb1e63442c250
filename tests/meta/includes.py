#!/usr/bin/env python3
"""Who may include whom: downwards only, by the table of houses.py.

SPDX-License-Identifier: MIT
"""
import posixpath
import re

from checks import Report, read, tree
from houses import BASE, HOUSES, INCLUDES, ROOMS, allowed

# What users see includes nothing of ours but what they see.
INTERNAL = {"data/examples": [], "engine": [], "engine/public": []}

# System headers that a layer must not see, so that it builds where they are not.
FOREIGN = [
    ("engine/", r"gtk/|adwaita|glib|gio/|cairo|pango|graphviz|cuda"),
    ("viz/", r"gtk/|adwaita|gtksourceview|cuda"),
    ("app/main", r"gtk/|adwaita|glib|gio/|cairo|pango|graphviz"),
    ("data/examples/", r"gtk/|glib|cairo"),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def row_of(name):
    folder = posixpath.dirname(name)
    while folder and folder not in INCLUDES:
        folder = posixpath.dirname(folder)
    return folder


def resolve(name, included, headers):
    """The file of the tree that an #include means, or None for one that the build makes."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), included))
    if beside in headers:
        return beside
    layer = name.split("/")[0]
    found = [path for path in headers if path.endswith("/" + posixpath.normpath(included))]
    found.sort(key=lambda path: (path.split("/")[0] != layer, len(path)))
    return found[0] if found else None


def main():
    names = [name for name in tree() if name.endswith((".c", ".h", ".cu", ".cuh"))]
    headers = {name for name in names if name.endswith((".h", ".cuh", ".inc", ".def"))}
    headers |= {name for name in tree() if name.endswith((".inc", ".def"))}
    # A cured program is the one with the mistake, with a word defined before it.
    headers |= {name for name in names if name.startswith("data/examples/clinic/ranks/")}
    problems = {row: [] for row in INCLUDES}
    unknown, foreign = [], []

    for name in names:
        row = row_of(name)
        if not row:
            unknown.append(f"{name}: its folder has no row in the table")
            continue
        for quoted, system in INCLUDE.findall(read(name)):
            if system:
                foreign += [f"{name}: <{system}>" for layer, pattern in FOREIGN
                            if name.startswith(layer) and re.match(pattern, system)]
                continue
            target = resolve(name, quoted, headers)
            if target is None:
                if not quoted.startswith("td-resources"):
                    unknown.append(f'{name}: "{quoted}" is no file of the tree')
            elif row_of(target) != row and not any(target == rule or (rule.endswith("/") or not rule)
                                                   and target.startswith(rule)
                                                   for rule in INCLUDES[row] + INTERNAL.get(row, BASE)):
                problems[row].append(f"{name} includes {target}")

    report = Report()
    for row, found in problems.items():
        report.claim(f"{row} looks only downwards", found)
    report.claim("every included file is known", unknown)
    report.claim("no row allows more than the houses do",
                 [f"{row} may include {rule}, {'house' if table is HOUSES else 'room'}s above it"
                  for table in (HOUSES, ROOMS) for row, rules in INCLUDES.items() for rule in rules
                  if not allowed(row + "/x.c", rule.rstrip("/"), table)])
    report.claim("no layer sees a system library above it", foreign)
    report.end()


if __name__ == "__main__":
    main()
