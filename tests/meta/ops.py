#!/usr/bin/env python3
"""Every operation of engine/ops/ops.def has a row in a table tests/engine/op-cases-*.c.

SPDX-License-Identifier: MIT
"""
import re
import sys

from checks import ROOT, Report, read


def main():
    table = "engine/ops/ops.def"
    cases = sorted(path.relative_to(ROOT) for path in ROOT.glob("tests/engine/op-cases-*.c"))
    if not (ROOT / table).exists() or not cases:
        print(f"{table} or tests/engine/op-cases-*.c is not there, skipped")
        sys.exit(77)
    rows = re.sub(r"/\*.*?\*/", "", read(table), flags=re.S)
    ops = re.findall(r"^\s*TD_OP\w*\s*\(\s*\"?(\w+)", rows, re.M)
    tested = set(re.findall(r"\w+", "".join(read(str(name)) for name in cases)))
    report = Report()
    report.claim("ops.def lists operations", [] if len(ops) > 20 else [f"only {len(ops)} found"])
    report.claim("no operation is listed twice", sorted({op for op in ops if ops.count(op) > 1}))
    report.claim("every operation has a row of cases",
                 [op for op in ops if op not in tested])
    report.end()


if __name__ == "__main__":
    main()
