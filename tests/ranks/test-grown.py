#!/usr/bin/env python3
"""Faults in models of real kinds are named, and healthy ones are not:
test-grown.py quick|slow c|torch TAPEDECK PROGRAM PRODUCER-LIBRARY PACKAGE-FOLDER

Programs at random, from a seed that is printed (TD_PLANTED_SEED says which): a GAN with two optimizers and a transformer,
2 to 4 ranks; tests/ranks/grown.c by our own ranks, or tests/torch/grown.py by DistributedDataParallel.  Prints TAP lines;
skipped without mpirun, or PyTorch.

SPDX-License-Identifier: MIT
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

suite, maker = sys.argv[1:3]
tapedeck, program, producer, package = map(os.path.abspath, sys.argv[3:7])
seed = int(os.environ.get("TD_PLANTED_SEED", time.time()))
ours = maker == "c"
# What is found of each fault: causes of which the first finding has one, whether its iteration is the planted one (else
# None, or the first), whether its ranks are those that were planted (else all of them), and which array.
FAULTS = {
    "write": (("parameters",), True, True, True),
    "nan": (("not finite",), True, True, None),
    "rate": (("mismatch",) if ours else ("optimizer numbers",), True, True, False),
    "frozen": (("mismatch",) if ours else ("gradient missing", "optimizer state", "parameters"), True, True, not ours),
    # A tape of PyTorch counts steps: the rank that left one out makes the next with the mean of two backward passes, which
    # is told with what parted by it.
    "skip": (("update counts", "mismatch", "hang") if ours else ("means differ", "update counts", "optimizer numbers",
                                                                 "parameters", "optimizer state"), True, True, False),
    "plain": (("plain optimizer",) if ours else ("optimizer state", "parameters"), False, False, None),
    "unsent": (("parameters",), False, False, None),
    "copies": (("same data",), None, False, False),
}
HEALTHY = ("none", "seed")
ARRAYS = {("gan", "c"): "c1/b", ("transformer", "c"): "query/b", ("gan", "torch"): "0/bias",
          ("transformer", "torch"): "inner/0/bias"}
if ours:
    FAULTS["write"] = (("parameters",), True, True, True)
    FAULTS["first"] = (("parameters",), False, False, None)
    FAULTS["early"] = (("parameters",), False, False, None)
    FAULTS["forgot"] = (("not averaged",), True, False, None)
SAYS = {"first": "it was updated without a mean of the gradients", "early": "as backward came after the mean"}


def environment():
    package_path = dict(TAPEDECK_PRODUCER=producer, HWLOC_COMPONENTS="-gl", OMPI_MCA_btl="self,vader",
                        OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm="isolated",
                        OMPI_MCA_plm_rsh_agent="false", GLOO_SOCKET_IFNAME="lo", OPENBLAS_NUM_THREADS="1")
    return claims.environment(package, **(package_path if ours else dict(package_path, TAPEDECK_PYTHON=python)))


def run(folder, kind, fault, n, rank, iteration, iterations):
    tapes = os.path.join(folder, "ranks")
    shutil.rmtree(tapes, ignore_errors=True)
    store = [] if ours else [os.path.join(folder, "%d.store" % time.monotonic_ns())]
    args = [tapedeck, "run", "-q", "-n", str(n), "--level", "stats", "-o", tapes, program, *store, kind, fault, str(rank),
            str(iteration), str(iterations), str(seed % 10000)]
    ended = subprocess.run(args, capture_output=True, text=True, env=environment(), timeout=300)
    said = subprocess.run([tapedeck, "ranks", "--json", tapes], capture_output=True, text=True, env=environment())
    return ended, json.loads(said.stdout), said.returncode


def healthy(folder, kind, fault, n, iterations):
    ended, said, status = run(folder, kind, fault, n, 0, 0, iterations)
    assert ended.returncode == 0, ended.stderr[-1500:]
    assert status == 0 and not [f for f in said["findings"] if f["cause"] != "persistents"], said["findings"]
    updates = {rank["updates"] for rank in said["ranks"]}
    assert len(updates) == 1 and min(updates) >= iterations, said["ranks"]


def named(folder, kind, fault, n, rank, iteration, iterations):
    causes, exact, alone, array = FAULTS[fault]
    _, said, status = run(folder, kind, fault, n, rank, iteration, iterations)
    found = [f for f in said["findings"] if f["level"] != "note"]
    assert status == 1 and found, said["findings"]
    first = next((f for f in found if f["cause"] in causes), None)
    assert first is not None, found
    if exact:
        assert first["iteration"] in (ITERATION[kind, maker](iteration)), (iteration, found)
    elif exact is False:
        assert first["iteration"] in (0, 1), found
    ranks = first["ranks"]
    if alone and (fault == "nan" or (n > 2 and ranks != list(range(n)))):
        assert ranks == [rank], (rank, found)
    elif alone:  # of two either may be wrong; one of a call that failed on all is named in the sentence
        assert rank in ranks, (rank, found)
        assert n == 2 or "rank %d" % rank in first["sentence"], found
    else:
        assert ranks == list(range(n)), found
    if array:
        assert any(ARRAYS[kind, maker] in (f["array"] or "") for f in found), found
    assert sum(f["cause"] == first["cause"] and f["array"] == first["array"] for f in found) == 1, found  # said once
    if array is None and fault != "plain":
        assert first["array"], found
    assert SAYS.get(fault, "") in first["sentence"], found
    if ours and fault == "write":
        assert "rank %d wrote it at grown.c:" % rank in first["sentence"], found
    assert ours or "td_" not in json.dumps(found), found


# A GAN in PyTorch has two steps in each of its iterations, of which each is one on the tape.
ITERATION = {("gan", "c"): lambda i: [i], ("transformer", "c"): lambda i: [i], ("transformer", "torch"): lambda i: [i],
             ("gan", "torch"): lambda i: [2 * i, 2 * i + 1, 2 * i + 2]}


def main():
    if ours and shutil.which("mpirun") is None:
        print("1..0 # SKIP no mpirun here (openmpi-bin)")
        sys.exit(77)
    print("# TD_PLANTED_SEED=%d" % seed)
    numbers = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(1 if suite == "quick" else 3):
            for kind in ("gan", "transformer"):
                for fault in HEALTHY:
                    n, long = numbers.randint(2, 4), fault == "none" and turn == 0
                    iterations = 300 if long else 20
                    claim("%s: %d ranks, %d iterations, %s: nothing is found" % (kind, n, iterations, fault), healthy, folder, kind,
                          fault, n, iterations)
                for fault in FAULTS:
                    if suite == "quick" and not ours and numbers.random() < 0.5:
                        continue
                    n, iterations = numbers.randint(2, 4), 300 if suite == "slow" and numbers.random() < 0.2 else 20
                    rank, iteration = numbers.randrange(n), numbers.randint(2, iterations - 3)
                    claim("%s: %s of rank %d of %d in iteration %d of %d is named" % (kind, fault, rank, n, iteration, iterations),
                          named, folder, kind, fault, n, rank, iteration, iterations)
    claims.end()


python = None if ours else claims.find_python()
if not ours:
    claims.skip_without_ranks(python)
main()
