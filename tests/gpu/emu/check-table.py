#!/usr/bin/env python3
"""check-table.py TABLE: the table beside the images lists kernels, none spills, none uses more shared
memory than a block has without asking.

SPDX-License-Identifier: MIT
"""
import pathlib
import sys

SHARED_BYTES = 48 << 10


def main():
    table = pathlib.Path(sys.argv[1])
    rows = [line.split() for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    bad = [f"{row[0]} spills {row[4]} bytes" for row in rows if int(row[4]) > 0]
    bad += [f"{row[0]} has {row[5]} bytes of shared memory" for row in rows if int(row[5]) > SHARED_BYTES]
    if len({row[0] for row in rows}) != len(rows):
        bad.append("two kernels have one name")
    print(f"{len(rows)} kernels, at most {max(int(row[2]) for row in rows)} registers; {table}")
    for line in bad:
        print("not ok:", line)
    sys.exit(1 if bad or len(rows) < 100 else 0)


if __name__ == "__main__":
    main()
