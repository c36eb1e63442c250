#!/usr/bin/env python3
"""What recording costs: test-cost.py BENCHMARK PRODUCER-LIBRARY PACKAGE-FOLDER EXTENSION-MODULE.

The bounds are of a machine on which a mode that does nothing costs 5 us an operation: 12 at level graph, 25 at level
stats.  Elsewhere they are as many times more as that mode costs more in the same run.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

EMPTY, GRAPH, STATS = 5, 12, 25
benchmark, producer, package, extension = map(os.path.abspath, sys.argv[1:5])
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PRODUCER=producer, TAPEDECK_EXTENSION=extension)


def at_most(costs, level, most):
    times = costs[level + " by the extension"] / costs["an empty mode"]
    print("# %s: %.2f times the empty mode, %.1f us" % (level, times, costs[level + " by the extension"]))
    assert times < most / EMPTY, costs


def below_profiler(costs, version):
    """2.x has its own profiler collect in C++ and show nothing until it is asked."""
    if not version.startswith("1."):
        return "SKIP PyTorch " + version
    assert costs["stats by the extension"] < costs["torch.profiler with its stop"], costs
    return None


def main():
    result = subprocess.run([python, benchmark, "--json"], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
    costs = json.loads(result.stdout)
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout
    claim("level graph costs at most %d us where a mode that does nothing costs %d" % (GRAPH, EMPTY),
          at_most, costs, "graph", GRAPH)
    claim("level stats at most %d" % STATS, at_most, costs, "stats", STATS)
    claim("and less than PyTorch's profiler with its stop", below_profiler, costs, version.strip())
    claims.end()


main()
