#!/usr/bin/env python3
"""A slow rank of PyTorch is named: test-slow.py quick|slow TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

"slow": every place, rank and number of ranks, with and without buffers, and healthy runs with the processors busy.
Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one, without gloo in it or without mpirun it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
# Processors that are busy make a sleep longer, never shorter.  Of the others' waiting some is the machine's.
MS, ITERATIONS, LEAST, MOST = 150, 14, 0.6, 2.5
suite = sys.argv[1]
tapedeck, producer, package = map(os.path.abspath, sys.argv[2:5])
python = claims.find_python()
environment = claims.environment(
    package, TAPEDECK_PRODUCER=producer, TAPEDECK_PYTHON=python, HWLOC_COMPONENTS="-gl", OMPI_MCA_btl="self,vader",
    OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm="isolated", OMPI_MCA_plm_rsh_agent="false",
    GLOO_SOCKET_IFNAME="lo")
QUICK = [("loader", 2, 0, "bn"), ("loader", 2, 1, "bn"), ("backward", 2, 1, "no"), ("loader", 4, 3, "bn"),
         ("forward", 4, 0, "no")]
ALL = [(place, n, rank, buffers) for n, place, buffers in itertools.product(
    (2, 4), ("loader", "forward", "backward", "step"), ("bn", "no")) for rank in (0, n - 1)]


def look(folder, place, n, rank, buffers, milliseconds=MS):
    tapes = os.path.join(folder, "ranks")
    shutil.rmtree(tapes, ignore_errors=True)
    with tempfile.NamedTemporaryFile(dir=folder) as store:
        name = store.name + ".store"
    args = [tapedeck, "run", "-q", "-n", str(n), "-o", tapes, "slow.py", name, place, str(rank), str(milliseconds), buffers,
            str(ITERATIONS)]
    run = subprocess.run(args, capture_output=True, text=True, env=environment, cwd=HERE)
    assert run.returncode == 0, (args, run.stdout[-1000:], run.stderr[-1000:])
    said = subprocess.run([tapedeck, "ranks", "--json", tapes], capture_output=True, text=True, env=environment)
    assert said.returncode == 0, said.stdout[-2000:]
    return json.loads(said.stdout)


def straggler(said):
    return next((f for f in said["findings"] if f["cause"] == "straggler"), None)


def named(folder, place, n, rank, buffers):
    """Which rank, how much each of the others waits longer, and that these are who waits."""
    said = look(folder, place, n, rank, buffers)
    found = straggler(said)
    assert found is not None and found["ranks"] == [rank], said
    number, unit = re.search(r"waited ([0-9.]+) (ms|s) an iteration longer", found["sentence"]).groups()
    milliseconds = float(number) * (1000 if unit == "s" else 1)
    assert LEAST * MS < milliseconds < MOST * MS, found
    waited = [r["waited_ns"] for r in said["ranks"]]
    assert min(range(n), key=waited.__getitem__) == rank, said["ranks"]
    most = max(said["ranks"], key=lambda r: r["waited_for_ns"])
    assert most["rank"] == rank and most["waited_for_ns"] > LEAST * MS * 1e6 * (ITERATIONS - 2) * (n - 1), said["ranks"]


@contextlib.contextmanager
def busy():
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def healthy(folder, times, context):
    for i in range(times):
        with context():
            said = look(folder, "none", 2 + 2 * (i % 2), 0, "bn" if i % 4 < 2 else "no", 0)
        assert not said["findings"] or all(f["cause"] == "persistents" for f in said["findings"]), (i, said["findings"])


def main():
    claims.skip_without_ranks(python)
    with tempfile.TemporaryDirectory() as folder:
        for place, n, rank, buffers in QUICK if suite == "quick" else ALL:
            claim("of %d ranks, %s buffers, rank %d that is slow in %s is named, and by how much" % (
                n, "with" if buffers == "bn" else "without", rank, place), named, folder, place, n, rank, buffers)
        times = 2 if suite == "quick" else 20
        claim("nobody is in %d healthy runs" % times, healthy, folder, times, contextlib.nullcontext)
        claim("nor where other work takes the processors", healthy, folder, times, busy)
    claims.end()


main()
