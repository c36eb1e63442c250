#!/usr/bin/env python3
"""c-kernels.py OUTPUT FILE.c ...: the functions of these files, each with the comment above it, as
texts of a table in C (c-out.h), in the order in which they may call each other.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys

NAME = re.compile(r"^(?:(\w+) \(|\} (\w+);|static \w+ (\w+);)", re.M)


def blocks(text):
    """Each from its comment, which begins a line, to the next; the file's head is none."""
    body = text[text.index("#include"):].split("\n", 1)[1]
    for block in re.split(r"^(?=/\* )", body, flags=re.M):
        if match := NAME.search(block):
            yield next(name for name in match.groups() if name), block.strip() + "\n"


def quoted(text):
    return "\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in text.splitlines())


def main():
    rows = [row for name in sys.argv[2:] for row in blocks(pathlib.Path(name).read_text(encoding="utf-8"))]
    lines = ["/* The text of c-kernels/, written by c-kernels.py.", " * SPDX-License-Identifier: MIT */",
             '#include "train/serial/c-out.h"', "", "const TdCKernel td__c_kernels[] = {"]
    lines += [f'  {{ "{name}",\n{quoted(text)} }},' for name, text in rows]
    lines += ["};", f"const int td__c_n_kernels = {len(rows)};", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
