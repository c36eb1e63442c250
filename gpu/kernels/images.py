#!/usr/bin/env python3
"""images.py IMAGES.c TABLE NAME.fatbin NAME.log ...: a C file that holds the images, and a table
of what ptxas said of each kernel: registers, stack, spills, shared memory.

SPDX-License-Identifier: MIT
"""
import hashlib
import pathlib
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def kernels(log):
    """Rows of one log: name, registers, stack, bytes spilled, shared memory."""
    rows, name, stack = [], None, (0, 0, 0)
    for line in log.read_text(encoding="utf-8").splitlines():
        if match := ENTRY.search(line):
            name, stack = match.group(1), (0, 0, 0)
        elif match := STACK.search(line):
            stack = tuple(int(n) for n in match.groups())
        elif (match := USED.search(line)) and name:
            shared = SHARED.search(line)
            rows.append((name, int(match.group(1)), stack[0], stack[1] + stack[2],
                         int(shared.group(1)) if shared else 0))
            name = None
    return rows


def main():
    source, table = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    images = [pathlib.Path(name).resolve() for name in sys.argv[3:] if name.endswith(".fatbin")]
    lines = ["/* The kernels of the CUDA module, compiled; written by images.py.",
             " * SPDX-License-Identifier: MIT */", '#include "kernels.h"', ""]
    for i, image in enumerate(images):
        lines += [f"/* {hashlib.sha256(image.read_bytes()).hexdigest()} */",
                  f'__asm__ (".section .rodata\\n.balign 64\\n.hidden td_image_{i}\\n.globl td_image_{i}\\n"',
                  f'         "td_image_{i}:\\n.incbin \\"{image}\\"\\n.previous\\n");',
                  f"extern const char td_image_{i}[];"]
    lines += ["", "const TdCudaImage td_cuda_images[] = {"]
    lines += [f'  {{ "{image.stem}", td_image_{i}, {image.stat().st_size} }},'
              for i, image in enumerate(images)]
    lines += ["  { 0 },", "};", ""]
    source.write_text("\n".join(lines), encoding="utf-8")

    rows = [f"{'kernel':44} {'image':14} {'registers':>9} {'stack':>6} {'spilled':>7} {'shared':>6}"]
    for image in images:
        rows += [f"{name:44} {image.stem:14} {registers:9} {stack:6} {spilled:7} {shared:6}"
                 for name, registers, stack, spilled, shared in kernels(image.with_suffix(".log"))]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
