#!/usr/bin/env python3
"""symbols.py GOLDEN LIBRARY MAP VERSION HEADER...: what a library exports is what its headers declare.

Every exported symbol begins with td_, has the version since which it is there, by the map, and is declared in a header, every TD_API function is there,
and the list is the golden one: TD_UPDATE_GOLDEN=1 writes it, and a commit that does explains why.
Functions on variables are not on that list: their headers have them, and rows of cases call them.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import subprocess
import sys

from checks import Report

# The headers of operations and of what is composed of them.
FUNCTIONS = {f"tapedeck-{topic}.h" for topic in
             ("arrays", "functions", "losses", "math", "nd", "sequences")}
DECLARATION = re.compile(r"\bTD_API\b[^;{]*?\b(td_\w+)\s*(?:\(|\[|;)", re.S)


def declared_in(headers):
    text = "\n".join(pathlib.Path(header).read_text() for header in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(DECLARATION.findall(text)), set(re.findall(r"\btd_\w+", text))


def blocks(text):
    """[(node, its number, the names that it lists, the node before)] of a version script, oldest first."""
    text = re.sub(r"#.*", "", text)
    return [(node + number, number, re.findall(r"[\w*]+(?=;)", body.split("local:")[0]), before)
            for node, number, body, before in re.findall(r"(\w+_)(\d+\.\d+) \{(.*?)\}\s*([\w.]*);", text, re.S)]


def wrong_versions(versioned, nodes, version):
    """What symbols and the map have that does not fit."""
    current = ".".join(version.split(".")[:2])
    listed = {name: node for node, _, names, _ in nodes for name in names if "*" not in name}
    wrong = [f"{name}: version {node or 'missing'}, by the map {listed[name]}" for name, node in versioned.items()
             if name in listed and node != listed[name]]
    wrong += [f"{name}: version {node or 'missing'} is not in the map" for name, node in versioned.items()
              if node not in {row[0] for row in nodes}]
    wrong += [f"{node}: a pattern stands for the version that is being written, {current}" for node, number, names, _ in nodes
              if any("*" in name for name in names) and number != current]
    return wrong + [f"{row[0]} does not name the version before it" for before, row in zip(nodes, nodes[1:])
                    if row[3] != before[0]]


def main():
    golden, library, script, version = pathlib.Path(sys.argv[1]), *sys.argv[2:5]
    headers = sys.argv[5:]
    nm = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True,
                        check=True).stdout
    exported = dict(line.split()[2].replace("@@", "@").partition("@")[::2] for line in nm.splitlines()
                    if len(line.split()) > 2 and line.split()[1] != "A")  # which are the names of versions
    # Sanitizers add symbols of their own to a shared library.
    versioned = {name: node for name, node in exported.items() if not re.match(r"__(asan|ubsan|odr_asan|lsan)", name)}
    exported = set(versioned)
    declared, words = declared_in(headers)
    functions, _ = declared_in(h for h in headers if pathlib.Path(h).name in FUNCTIONS)

    report = Report()
    name = os.path.basename(library)
    report.claim(f"{name} exports only names of its headers",
                 sorted(n for n in exported if n not in words))
    report.claim(f"{name} exports every function its headers declare",
                 sorted(n for n in declared if n not in exported))
    report.claim(f"{name} has the version of each symbol, as {os.path.basename(script)} says",
                 wrong_versions(versioned, blocks(pathlib.Path(script).read_text()), version))
    if os.environ.get("TD_UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text("".join(f"{n}\n" for n in sorted(exported - functions)))
    known = set(golden.read_text().split()) if golden.exists() else set()
    report.claim(f"{name} exports the golden list",
                 [f"new: {n}" for n in sorted(exported - functions - known)]
                 + [f"gone: {n}" for n in sorted(known - exported)]
                 + [f"of a header of functions: {n}" for n in sorted(known & functions)])
    report.end()


if __name__ == "__main__":
    main()
