"""What the tests of this folder share: the Python that has PyTorch, and claims as TAP lines.

SPDX-License-Identifier: MIT
"""
import os
import shutil
import subprocess
import sys

_kept = []  # of each claim, whether it holds


def find_python():
    """The one that TD_TEST_TORCH names, else the first of the usual ones; without one the test is skipped."""
    for python in filter(None, (os.environ.get("TD_TEST_TORCH"), sys.executable, "/usr/bin/python3")):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    print("1..0 # SKIP no Python has PyTorch (python3-torch)")
    sys.exit(77)


def skip_without_ranks(python):
    """Ranks want mpirun and gloo: without one of them the test is skipped."""
    if shutil.which("mpirun") is None:
        print("1..0 # SKIP no mpirun here (openmpi-bin)")
        sys.exit(77)
    if subprocess.run([python, "-c", "from torch.distributed import ProcessGroupGloo"],
                      capture_output=True).returncode != 0:
        print("1..0 # SKIP this PyTorch has no gloo")
        sys.exit(77)


def environment(package, **more):
    return dict(os.environ, PYTHONPATH=package, PYTHONWARNINGS="ignore", OMP_NUM_THREADS="1",
                PYTHONDONTWRITEBYTECODE="1", **more)


def claim(text, check, *args, errors=(AssertionError,)):
    """check says nothing, or "SKIP " and why; what it asserts, or one of the errors, is why it does not hold."""
    try:
        problem = check(*args)
    except errors as error:
        problem = "%s: %s" % (type(error).__name__, error)
    skipped = problem is not None and problem.startswith("SKIP ")
    _kept.append(problem is None or skipped)
    print("%s %d - %s%s" % ("ok" if _kept[-1] else "not ok", len(_kept), text, " # " + problem if skipped else ""),
          flush=True)
    if not _kept[-1]:
        print("#   " + str(problem)[:1500].replace("\n", "\n#   "), flush=True)
        # meson keeps TAP lines out of what it prints of a failed test.
        print("%s: %s" % (text, str(problem)[:1500]), file=sys.stderr, flush=True)


def end():
    print("1..%d" % len(_kept))
    sys.exit(0 if all(_kept) else 1)
