#!/usr/bin/env python3
"""compile.py OUTPUT LOG SOURCE COMPILER [ARGUMENT ...]: compile in the source's folder, and keep what
the compiler says.

SPDX-License-Identifier: MIT
"""
import pathlib
import subprocess
import sys


def main():
    output, log, source = (pathlib.Path(name).resolve() for name in sys.argv[1:4])
    done = subprocess.run([*sys.argv[4:], "-o", str(output), source.name], cwd=source.parent, text=True,
                          stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
    log.write_text(done.stdout, encoding="utf-8")
    if done.returncode != 0:
        print(done.stdout)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
