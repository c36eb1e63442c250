#!/usr/bin/env python3
"""module-size.py MODULE: what is installed is small: the module has few bytes.

SPDX-License-Identifier: MIT
"""
import pathlib
import sys

MOST_BYTES = 20_000_000


def main():
    size = pathlib.Path(sys.argv[1]).stat().st_size
    print(f"{size} bytes, of {MOST_BYTES} at most; {sys.argv[1]}")
    sys.exit(size > MOST_BYTES)


if __name__ == "__main__":
    main()
