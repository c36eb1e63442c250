#!/usr/bin/env python3
"""eval-values.py TAPEDECK: what functions give by `tapedeck eval` is what NumPy says.

Every function of tests/meta/features.txt has a case here; gradients of first and second order are
checked against differences where there are any.
SPDX-License-Identifier: MIT
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "meta"))
# pylint: disable=wrong-import-position
from numpy_here import np  # noqa: E402
from checks import Report  # noqa: E402
import eval_cases_arrays  # noqa: E402
import eval_cases_layers  # noqa: E402
import eval_cases_losses  # noqa: E402
import eval_cases_math  # noqa: E402

TABLES = (eval_cases_math, eval_cases_arrays, eval_cases_layers, eval_cases_losses)


def run(program, case, folder):
    """Outputs of a call, or a text that says what went wrong."""
    command = [program, "eval", case.name]
    for i, array in enumerate(case.ins):
        path = os.path.join(folder, f"in{i}.npy")
        np.save(path, array)
        command += ["--in", path]
    for name, value in case.attrs.items():
        command += ["--attr", f"{name}={value}"]
    made = os.path.join(folder, "made")
    command += ["-o", made] + (["--check"] if case.check else [])
    child = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                           timeout=120)
    if child.returncode != 0:
        return f"status {child.returncode}: {child.stderr.strip()}"
    outs = [np.load(os.path.join(made, f"out{k}.npy")) for k in range(len(os.listdir(made)))]
    return outs


def problem_of(program, case):
    with tempfile.TemporaryDirectory() as folder:
        got = run(program, case, folder)
    return got if isinstance(got, str) else differs(got, case.outs)


def differs(got, want):
    if callable(want):
        try:
            want(got)
        except AssertionError as failure:
            return f"its judge refuses {[g.shape for g in got]}: {failure}"
        return None
    if len(got) != len(want):
        return f"{len(want)} outputs expected, got {len(got)}"
    for k, (a, b) in enumerate(zip(got, want)):
        b = np.asarray(b)
        if a.shape != b.shape:
            return f"out{k} has shape {a.shape}, {b.shape} expected"
        if not np.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True):
            return f"out{k} differs by {np.abs(a - b).max():.3g}"
    return None


def main():
    program, only = sys.argv[1], sys.argv[2:]
    cases = [case for table in TABLES for case in table.CASES]
    rows = (line.split() for line in (TESTS / "meta/features.txt").read_text().splitlines())
    functions = [row[2] for row in rows if row[:1] == ["function"]]
    rows = (line.split() for line in (TESTS / "meta/features-missing.txt").read_text().splitlines())
    missing = {row[1] for row in rows if row[:1] == ["function"]}
    report = Report()
    report.claim("every function has a case",
                 sorted(set(functions) - {case.name for case in cases}))
    cases = [case for case in cases if not only or case.name in only]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda case: problem_of(program, case), cases))
    for name in dict.fromkeys(case.name for case in cases):
        problems = [f"{case.attrs}: {problem}" for case, problem in zip(cases, found)
                    if case.name == name and problem]
        if name in missing and problems:
            print(f"# missing, as tests/meta/features-missing.txt has it: {name}: {problems}")
            continue
        if name in missing:
            problems = ["it is on tests/meta/features-missing.txt"]
        report.claim(f"{name} gives what NumPy says", problems)
    report.end()


if __name__ == "__main__":
    main()
