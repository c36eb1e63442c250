"""NumPy for the tests that need it, as `np`: this Python's, else that of the system's, which then
runs the same test again.  Where neither has it, the test is skipped.

SPDX-License-Identifier: MIT
"""
import os
import sys

try:
    import numpy as np
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("NumPy is not there, skipped")
    sys.exit(77)

__all__ = ["np"]
