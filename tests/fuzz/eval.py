#!/usr/bin/env python3
"""eval.py TAPEDECK [CALLS [SEED]]: calls of `tapedeck eval` that mean nothing.

Any operation on any arrays with any attributes ends with status 0, 1 or 2, and unless it is 0 with
one line that begins with "tapedeck: ".
SPDX-License-Identifier: MIT
"""
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "meta"))
# pylint: disable=wrong-import-position
from numpy_here import np  # noqa: E402

VALUES = ["0", "1", "-1", "2", "3", "99999999999", "-2147483648", "1,2", "0,0,0,0", "None", "true",
          "1e300", "nan", "-0.5", "1,1,1,1,1,1,1,1,1", "::-1", "...", "mean", "sum", "no", "L2", "",
          "ij,jk->ik", "tanh", "float16", "i4", "2,2", "constant", "sigmoid", "1:2,0", "((("]
ARRAYS = {
    "scalar": np.array(1.5), "line": np.arange(3.0), "matrix": np.arange(6.0).reshape(2, 3),
    "images": np.arange(48.0).reshape(2, 2, 3, 4), "empty": np.zeros((0, 3)),
    "labels": np.array([0, 1], np.int32), "far": np.array([[0, 5], [-7, 1]], np.int64),
    "half": np.ones((2, 3), np.float16), "bytes": np.ones((2, 2), np.uint8),
}
LINE = re.compile(r"(\w+) \(([^;)]*)(?:; ([^)]*))?\)")


def operations(program):
    """Name, number of operands or 0 for any, and (attribute, has a default)."""
    listed = subprocess.run([program, "eval", "--list"], capture_output=True, text=True, check=True)
    for name, operands, attrs in (match.groups() for match in
                                  map(LINE.match, listed.stdout.splitlines()) if match):
        yield (name, 0 if "..." in operands else len(operands.split(", ")) if operands else 0,
               [(attr.split("=")[0], "=" in attr) for attr in (attrs or "").split(", ") if attr])


def call(program, known, seed):
    rand = random.Random(seed)
    name, n, attrs = rand.choice(known)
    usual = rand.choice(sorted(ARRAYS))
    command = [program, "eval", name]
    for _ in range(n or rand.choice([1, 2, 3, 6])):
        command += ["--in", (usual if rand.random() < 0.6 else rand.choice(sorted(ARRAYS))) + ".npy"]
    for attr, has_default in attrs:
        if not has_default or rand.random() < 0.5:
            command += ["--attr", f"{attr}={rand.choice(VALUES)}"]
    command += ["--gy", "line.npy"] if rand.random() < 0.3 else []
    command += ["--check"] if rand.random() < 0.3 else []
    return command


def trouble(command, folder):
    child = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120,
                           errors="replace", stdin=subprocess.DEVNULL)
    if child.returncode in (1, 2):
        fine = child.stderr.startswith("tapedeck: ") and child.stderr.count("\n") == 1
    else:
        fine = child.returncode == 0 and child.stderr == ""
    return None if fine else f"{' '.join(command[1:])}: status {child.returncode}: {child.stderr}"


def main():
    program = os.path.abspath(sys.argv[1])
    n, seed = (int(text) for text in (sys.argv[2:] + ["300", "1"][len(sys.argv) - 2:]))
    known = list(operations(program))
    with tempfile.TemporaryDirectory() as folder:
        for name, array in ARRAYS.items():
            np.save(f"{folder}/{name}.npy", array)
        commands = [call(program, known, seed * 1000003 + i) for i in range(n)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [text for text in pool.map(lambda c: trouble(c, folder), commands) if text]
    print(f"{n} calls of {len(known)} operations from seed {seed}")
    for text in found:
        print(text)
    sys.exit(1 if found or len(known) < 100 else 0)


if __name__ == "__main__":
    main()
