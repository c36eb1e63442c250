#!/usr/bin/env python3
"""summary.py BUILD-ROOT NAME...: add up the tests of several builds and say so in one last line.

Counted are CMocka test functions, TAP lines, and each other meson test as one. A test that died
without a result, and a build that failed, each count as one failure. Named are those that were
skipped, those that passed only when they ran alone, and last those that failed, and what took the
time: who keeps the end of a long output only has what matters.
SPDX-License-Identifier: MIT
"""
import json
import pathlib
import re
import sys

LONGEST = 6  # tests
ORDER = ("skipped", "alone", "failed")
CMOCKA = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (?!\d+ test\(s\))(.+)$", re.M)
CMOCKA_SUM = re.compile(r"^\[ *(PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)", re.M)
TAP = re.compile(r"^(not ok|ok)\b(?: \d+)?(?: - )?([^#\n]*)(# *SKIP.*)?$", re.M | re.I)
KINDS = {"OK": "passed", "PASSED": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
# meson's own words, for tests that say nothing about their parts
RESULTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def parts(test):
    """The (kind, name) pairs of one meson test."""
    short = test["name"].split(" / ")[-1]
    out, err = test.get("stdout") or "", test.get("stderr") or ""
    found = []
    if CMOCKA_SUM.search(err) or CMOCKA_SUM.search(out):
        seen = dict((name, KINDS[word]) for word, name in CMOCKA.findall(out + "\n" + err))
        found = [(kind, f"{short}: {name}") for name, kind in seen.items()]
        counted = sum(int(n) for _, n in CMOCKA_SUM.findall(out + "\n" + err))
        # One name in two groups of a binary: take CMocka's own sums.
        if counted > len(found):
            found += [("passed", short)] * (counted - len(found))
    elif re.search(r"^1\.\.\d+", out, re.M):
        for word, name, skip in TAP.findall(out):
            kind = "skipped" if skip else "passed" if word.lower() == "ok" else "failed"
            found.append((kind, f"{short}: {name.strip()}"))
    whole = RESULTS.get(test["result"], "failed")
    if not found or (whole == "failed" and not any(kind == "failed" for kind, _ in found)):
        found.append((whole, f"{short} ({test['result'].lower()})"))
    return found


def times(root):
    """What stage.py has noted: seconds of "NAME build" and "NAME tests"."""
    try:
        return json.loads((root / "times.json").read_text())
    except (OSError, ValueError):
        return {}


def took(known, name, tests):
    """A line on what a build took, and on which of its tests took longest; None: it has no tests."""
    longest = sorted(tests, key=lambda test: -test.get("duration", 0))[:LONGEST]
    if not longest:
        return None
    steps = ", ".join(f"{what} {round(known[f'{name} {what}'])} s" for what in ("build", "tests")
                      if f"{name} {what}" in known)
    return f"  {name:8} {steps}; longest: " + ", ".join(
        f"{test['name'].split(' / ')[-1]} {round(test.get('duration', 0))} s" for test in longest)


def main():
    root = pathlib.Path(sys.argv[1])
    known, durations = times(root), []
    total = {"passed": 0, "failed": 0, "skipped": 0}
    notes = []
    for name in sys.argv[2:]:
        here = dict.fromkeys(total, 0)
        log = root / name / "meson-logs" / "testlog.json"
        found = []
        failed = root / f"{name}.failed"
        if failed.exists():
            found.append(("failed", failed.read_text().strip()))
        elif log.exists():
            tests = list(map(json.loads, log.read_text(errors="replace").splitlines()))
            durations.append(took(known, name, tests))
            for test in tests:
                found += parts(test)
                if test.get("alone"):
                    notes.append(("alone", f"  alone   {name}  {test['name'].split(' / ')[-1]} "
                                           "failed beside others and passed alone"))
        for kind, what in found:
            here[kind] += 1
            if kind != "passed":
                notes.append((kind, f"  {kind}  {name}  {what}"))
        for kind, n in here.items():
            total[kind] += n
        print(f"  {name:8} {here['passed']:6} passed {here['failed']:4} failed "
              f"{here['skipped']:4} skipped" + ("" if found else "  (built, no tests asked)"))
    for _, note in sorted(notes, key=lambda note: (ORDER.index(note[0]), note[1])):
        print(note)
    for line in filter(None, durations):
        print(line)
    print("counted: CMocka functions, TAP lines and other meson tests, in every build")
    print(", ".join(f"{n} {kind}" for kind, n in total.items()))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
