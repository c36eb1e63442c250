#!/usr/bin/env python3
"""Every operation of engine/ops/ops.def has a row in tests/engine/op-cases.c or op-cases-layers.c.

SPDX-License-Identifier: MIT
"""
import re
import sys

from checks import ROOT, Report, read


def main():
    table = "engine/ops/ops.def"
    cases = ["tests/engine/op-cases.c", "tests/engine/op-cases-layers.c"]
    if not all((ROOT / name).exists() for name in [table] + cases):
        print(f"{table} or {' or '.join(cases)} is not there, skipped")
        sys.exit(77)
    rows = re.sub(r"/\*.*?\*/", "", read(table), flags=re.S)
    ops = re.findall(r"^\s*TD_OP\w*\s*\(\s*\"?(\w+)", rows, re.M)
    tested = set(re.findall(r"\w+", "".join(read(name) for name in cases)))
    report = Report()
    report.claim("ops.def lists operations", [] if len(ops) > 20 else [f"only {len(ops)} found"])
    report.claim("no operation is listed twice", sorted({op for op in ops if ops.count(op) > 1}))
    report.claim("every operation has a row of cases",
                 [op for op in ops if op not in tested])
    report.end()


if __name__ == "__main__":
    main()
