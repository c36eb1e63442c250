#!/usr/bin/env python3
"""texts.py OUTPUT.c FILE ...: what kernels made at run time include, as strings of C; FILE-NAME.x is
td_file_name_x.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys


def main():
    lines = ["/* Written by texts.py. */", '#include "kernels/texts.h"', ""]
    for name in sys.argv[2:]:
        path = pathlib.Path(name)
        lines.append(f"const char td_{re.sub('[-.]', '_', path.name)}[] = {{")
        data = path.read_bytes() + b"\0"
        lines += ["  " + " ".join(f"{byte}," for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
        lines += ["};", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
