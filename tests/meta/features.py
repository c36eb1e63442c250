#!/usr/bin/env python3
"""features.py: every feature of features.txt has a test, except those of features-missing.txt.

A function has a case in tests/app/eval_cases_*.py, which holds it to NumPy and to differences, and
nothing else keeps its name in that test. A link names its tests, FILE:FUNCTION, in features.txt, and
so do iterators, datasets, triggers and extensions. So may a row of the inventory; without them it is the first word, or one of those joined by _, of a
test's name: DY02 is shown by dy02_dy04_ex02__another_branch_is_another_graph. A missing feature that has a test is an
error as well: that list only becomes shorter.
SPDX-License-Identifier: MIT
"""
import re

from checks import ROOT, Report, read

# What the inventory counts.
COUNTS = {("function", "must"): 64, ("function", "should"): 61, ("link", "must"): 13,
          ("link", "should"): 27, ("row", "must"): 48, ("row", "static"): 81,
          ("iterator", "must"): 3, ("dataset", "must"): 8, ("trigger", "must"): 8,
          ("extension", "must"): 22}
TEST = re.compile(r"^([a-z]\w*__\w+) \(", re.M)


def rows(name):
    for line in read(name).splitlines():
        words = line.split()
        if words and words[0] != "#":
            yield words


def shown(kind, name, tests, defined, cases, ids):
    """Whether a feature has the test that it should have."""
    if kind == "function":
        return name in cases
    if kind == "row" and not tests:
        return name.lower() in ids
    return bool(tests) and all(test in defined for test in tests)


def main():
    defined, ids = set(), set()
    for path in sorted((ROOT / "tests").rglob("*.c")):
        for test in TEST.findall(path.read_text(encoding="utf-8")):
            defined.add(f"{path.name}:{test}")
            ids.update(test.split("__")[0].split("_"))
    cases = set(re.findall(r'\bcase\(\s*"(\w+)"', "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests/app").glob("eval_cases_*.py"))))
    # Names that a loop fills in.
    cases |= {"sum", "mean", "max", "min", "prod", "n_step_lstm", "n_step_bilstm", "n_step_gru",
              "n_step_rnn"}
    features = list(rows("tests/meta/features.txt"))
    missing = {(kind, name) for kind, name in rows("tests/meta/features-missing.txt")}
    report = Report()
    counts = {}
    for kind, level, name, *tests in features:
        counts[kind, level] = counts.get((kind, level), 0) + 1
    report.claim("features are as many as in the inventory",
                 [f"{key}: {counts.get(key, 0)}, {n} expected" for key, n in COUNTS.items()
                  if counts.get(key, 0) != n] +
                 [f"listed twice: {row[:3]}" for row in features
                  if sum(row[2] == other[2] and row[0] == other[0] for other in features) > 1])
    known = {(kind, name) for kind, level, name, *tests in features}
    report.claim("what is missing is a feature", [f"{kind} {name}" for kind, name in missing
                                                  if (kind, name) not in known])
    for (kind, level), n in COUNTS.items():
        there = [(name, shown(kind, name, tests, defined, cases, ids))
                 for k, l, name, *tests in features if (k, l) == (kind, level)]
        gone = [name for name, ok in there if (kind, name) in missing]
        report.claim(f"{kind}s ({level}): {n - len(gone)} of {n} have a test",
                     [f"{name} has none" for name, ok in there
                      if not ok and (kind, name) not in missing] +
                     [f"{name} has one: take it off features-missing.txt" for name, ok in there
                      if ok and (kind, name) in missing and kind != "function"])
        if gone:
            print(f"# missing: {' '.join(gone)}")
    report.end()


if __name__ == "__main__":
    main()
