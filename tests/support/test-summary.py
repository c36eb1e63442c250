#!/usr/bin/env python3
"""summary.py counts what it says it counts: every kind of failure reaches the last line.

SPDX-License-Identifier: MIT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

CMOCKA_GOOD = ("[==========] Running 3 test(s).\n[ RUN      ] a__b\n[       OK ] a__b\n"
               "[       OK ] a__c\n[  SKIPPED ] a__needs_data\n[==========] 3 test(s) run.\n")
CMOCKA_GOOD_ERR = ("[  PASSED  ] 2 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n"
                   "[  SKIPPED ] a__needs_data\n\n 1 SKIPPED TEST(S)\n")
CMOCKA_BAD = "[       OK ] a__b\n[  FAILED  ] a c with words\n"
CMOCKA_BAD_ERR = ("[  PASSED  ] 1 test(s).\n[  FAILED  ] 1 test(s), listed below:\n"
                  "[  FAILED  ] a c with words\n\n 1 FAILED TEST(S)\n")

# What a build logged -> the last line expected of it.
CASES = [
    ("CMocka's functions are counted one by one",
     [("t", "OK", CMOCKA_GOOD, CMOCKA_GOOD_ERR)], "2 passed, 0 failed, 1 skipped"),
    ("a failed function is one failure",
     [("t", "FAIL", CMOCKA_BAD, CMOCKA_BAD_ERR)], "1 passed, 1 failed, 0 skipped"),
    ("a binary that died before its end is a failure",
     [("t", "FAIL", "[       OK ] a__b\n", "")], "0 passed, 1 failed, 0 skipped"),
    ("a leak found after the tests passed is a failure",
     [("t", "FAIL", CMOCKA_GOOD, CMOCKA_GOOD_ERR + "LeakSanitizer")],
     "2 passed, 1 failed, 1 skipped"),
    ("a time-out is a failure", [("t", "TIMEOUT", "", "")], "0 passed, 1 failed, 0 skipped"),
    ("TAP lines are counted one by one",
     [("t", "FAIL", "ok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no tool\n1..3\n", "")],
     "1 passed, 1 failed, 1 skipped"),
    ("a test without parts is one", [("t", "OK", "hello\n", "")], "1 passed, 0 failed, 0 skipped"),
    ("status 77 is a skip", [("t", "SKIP", "no tool\n", "")], "0 passed, 0 failed, 1 skipped"),
    ("a failed build is a failure", None, "0 passed, 1 failed, 0 skipped"),
]


def run(tests):
    with tempfile.TemporaryDirectory() as root:
        logs = pathlib.Path(root) / "gcc" / "meson-logs"
        logs.mkdir(parents=True)
        if tests is None:
            (pathlib.Path(root) / "gcc.failed").write_text("the build\n")
        else:
            (logs / "testlog.json").write_text("".join(
                json.dumps({"name": name, "result": result, "stdout": out, "stderr": err,
                            "duration": 2.4 + 60 * n}) + "\n"
                for n, (name, result, out, err) in enumerate(tests)))
            (pathlib.Path(root) / "times.json").write_text('{"gcc build": 311.7, "gcc tests": 900}')
        script = pathlib.Path(__file__).with_name("summary.py")
        return subprocess.run([sys.executable, script, root, "gcc"], capture_output=True, text=True)


def main():
    bad = 0
    for n, (claim, tests, expected) in enumerate(CASES, 1):
        child = run(tests)
        last = child.stdout.splitlines()[-1]
        failures = 0 if " 0 failed" in expected else 1
        good = last == expected and child.returncode == failures
        print(f"{'ok' if good else 'not ok'} {n} - {claim}")
        if not good:
            print(f"#   expected {expected!r} and status {failures}, got:")
            print(f"#   {child.stdout}{child.stderr} {child.returncode}")
            bad = 1
    # The end of the output is what is kept of a long one: failures stand after what was skipped.
    child = run([("t", "OK", CMOCKA_GOOD, CMOCKA_GOOD_ERR),
                 ("a", "FAIL", CMOCKA_BAD, CMOCKA_BAD_ERR)])
    named = [line.split()[0] for line in child.stdout.splitlines() if line.startswith("  ")][1:]
    good = named == ["skipped", "failed", "gcc"]
    print(f"{'ok' if good else 'not ok'} {len(CASES) + 1} - what failed is named last")
    timed = "gcc      build 312 s, tests 900 s; longest: a 62 s, t 2 s\n" in child.stdout
    print(f"{'ok' if timed else 'not ok'} {len(CASES) + 2} - what took the time is told")
    if not good or not timed:
        print(f"#   {child.stdout}")
        bad = 1
    print(f"1..{len(CASES) + 2}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
