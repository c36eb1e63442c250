"""What the checks of this folder share: the files of the tree, and a report in TAP.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tree():
    """Paths of the project's files below ROOT, as strings with '/'."""
    try:
        out = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                              "--exclude-standard"], capture_output=True, check=True).stdout
        names = [name for name in os.fsdecode(out).split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        # A tarball: everything but what builds leave behind.
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith((".build", "build", ".git/"))]
    return sorted(name for name in names if (ROOT / name).is_file())


def read(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


class Report:
    """One TAP line a claim, with the reasons of a failure after it."""

    def __init__(self):
        self.n = 0
        self.failed = False

    def claim(self, text, problems):
        self.n += 1
        problems = list(problems)
        print(f"{'not ok' if problems else 'ok'} {self.n} - {text}")
        for problem in problems:
            print(f"#   {problem}")
        self.failed = self.failed or bool(problems)

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.failed else 0)
