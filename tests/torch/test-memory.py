#!/usr/bin/env python3
"""What the recorder keeps in memory does not grow: test-memory.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
# Bytes of memory an operation.  Each text of attributes that is new is kept, once: Adam has one in an iteration, the
# size of its step.
MOST = 4
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PRODUCER=producer, TAPEDECK_PYTHON=python)


def growth(first, last, *command, **more):
    """Between two iterations: bytes of the program and of who started it; and how many operations it had."""
    result = subprocess.run([*command, "memory.py", "plain" if command[0] == tapedeck else "mode", str(first), str(last)],
                            capture_output=True, text=True, cwd=HERE, env={**environment, **more})
    assert result.returncode == 0 and "not on the tape" not in result.stderr, result.stderr[-2000:]
    rows = [list(map(int, line.split())) for line in result.stdout.splitlines()]
    assert [row[0] for row in rows] == [first, last], result.stdout
    return [after - before for before, after in zip(*rows)][1:]


def flat(folder, own, operations, first, last, way):
    """own, operations: of an iteration, without the recorder."""
    tape, n = os.path.join(folder, "memory.tdtape"), last - first
    recorded, supervisor, _ = growth(first, last, tapedeck, "run", "-f", "-q", "--level", "stats", "-o", tape, **way)
    os.remove(tape)
    print("# %d operations: the program grew by %d bytes, of which PyTorch's are %d; the supervisor by %d" % (
        n * operations, recorded, n * own, supervisor))
    assert recorded - n * own < MOST * n * operations, (recorded, n * own, MOST * n * operations)
    assert supervisor < 100000, supervisor


def main():
    own, _, operations = (number / 1000 for number in growth(500, 1500, python))
    assert operations > 40, operations
    with tempfile.TemporaryDirectory() as folder:
        claim("from the 2,000th to the 10,000th iteration it keeps less than %d bytes an operation" % MOST,
              flat, folder, own, operations, 2000, 10000, {})
        if "TAPEDECK_EXTENSION" not in os.environ:
            claim("without the extension module, too", flat, folder, own, operations, 1000, 3000, {"TAPEDECK_EXTENSION": ""})
    claims.end()


main()
