#!/usr/bin/env python3
"""symbols.py GOLDEN LIBRARY HEADER...: what a library exports is what its headers declare.

Every exported symbol begins with td_ and is declared in a header, every TD_API function is there,
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


def main():
    golden, library, headers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    nm = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                        check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in nm.splitlines() if len(line.split()) > 2
                and line.split()[1] != "A"}  # which are the names of versions
    # Sanitizers add symbols of their own to a shared library.
    exported = {name for name in exported if not re.match(r"__(asan|ubsan|odr_asan|lsan)", name)}
    declared, words = declared_in(headers)
    functions, _ = declared_in(h for h in headers if pathlib.Path(h).name in FUNCTIONS)

    report = Report()
    name = os.path.basename(library)
    report.claim(f"{name} exports only names of its headers",
                 sorted(n for n in exported if n not in words))
    report.claim(f"{name} exports every function its headers declare",
                 sorted(n for n in declared if n not in exported))
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
