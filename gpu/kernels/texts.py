#!/usr/bin/env python3
"""texts.py OUTPUT.c DEPFILE --folder DIR ... --fused FILE ... --counting FILE ...: what kernels that are
compiled at run time include, as strings of C. Of --fused the files that are named; of --counting also
all that they include from the folders. Comments are left out, so that rewording one does not make
compiled kernels on users' disks stale; lines keep their numbers.

SPDX-License-Identifier: MIT
"""
import argparse
import pathlib
import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def with_included(paths, folders):
    """The files, and all of ours that they include: name in an #include line -> path."""
    found, queue = {}, [(path.name, path) for path in paths]
    while queue:
        name, path = queue.pop(0)
        if name in found:
            continue
        found[name] = path
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            here = [folder / included for folder in folders if (folder / included).is_file()]
            if not here:
                raise SystemExit(f"texts.py: {path} includes {included}, which is in none of the folders")
            queue.append((included, here[0]))
    return found


def table(name, files):
    lines = []
    for i, path in enumerate(files.values()):
        text = COMMENT.sub(lambda c: " " + "\n" * c.group().count("\n"), path.read_text(encoding="utf-8"))
        data = text.encode() + b"\0"
        lines.append(f"static const char {name}_{i}[] = {{")
        lines += ["  " + " ".join(f"{byte}," for byte in data[k:k + 24]) for k in range(0, len(data), 24)]
        lines.append("};")
    lines.append(f"const TdCudaText td_{name}_texts[] = {{")
    lines += [f'  {{ "{file}", {name}_{i} }},' for i, file in enumerate(files)]
    return lines + ["  { NULL, NULL },", "};", ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("depfile", type=pathlib.Path)
    for name in ("folder", "fused", "counting"):
        parser.add_argument(f"--{name}", type=pathlib.Path, nargs="+", required=True)
    arguments = parser.parse_args()

    fused = {path.name: path for path in arguments.fused}
    counting = with_included(arguments.counting, arguments.folder)
    lines = ["/* Written by texts.py. */", "#include <stddef.h>", "", '#include "kernels/texts.h"', ""]
    lines += table("fused", fused) + table("counting", counting)
    arguments.output.write_text("\n".join(lines), encoding="utf-8")
    read = " ".join(str(path) for path in [*fused.values(), *counting.values()])
    arguments.depfile.write_text(f"{arguments.output}: {read}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
