#!/usr/bin/env python3
"""Run the compiler given after the first argument, and keep what it says in that file.

SPDX-License-Identifier: MIT
"""
import subprocess
import sys

done = subprocess.run(sys.argv[2:], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
with open(sys.argv[1], "w", encoding="utf-8") as log:
    log.write(done.stdout)
if done.returncode != 0:
    print(done.stdout)
sys.exit(done.returncode)
