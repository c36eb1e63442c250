#!/usr/bin/env python3
"""What a C program that td_static_save wrote takes beside our replay of the same function:

    tests/bench/going-out.py BUILD [PROGRAM NAME=VALUE ...]

One thread, processor time, the least of several calls; with a BLAS, with the compiler's own loops,
and how long the file is. The programs are L01 and L03 (tests/models/life); the goal is 1.5 times.
Prints a JSON object for each function.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAMS = [["l01-resnet18", "width=16"], ["l03-gpt", "layers=4"]]
CALLS = 20
GOAL = 1.5
BLAS = ["-DWITH_BLAS", "-I/usr/include/x86_64-linux-gnu/openblas-pthread", "-lopenblas"]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "TAPEDECK_THREADS": "1", "OMP_NUM_THREADS": "1"}
MAIN = """#include "%(name)s.h"
#include <stdio.h>
#include <time.h>
int
main (void)
{
%(arrays)s
  double least = 1e30;
%(reads)s
  for (int i = 0; i < %(calls)d; i++)
    {
      clock_t begin = clock ();
      double t;
      if (%(function)s (%(arguments)s) != 0)
        return 1;
      t = (double)(clock () - begin) / CLOCKS_PER_SEC;
      least = t < least ? t : least;
    }
  printf ("%%.0f\\n", 1e6 * least);
  return 0;
}
"""


def program_of(folder, name):
    """A main that reads what the call took from files and says how long it takes, of the header."""
    with open(f"{folder}/{name}.h", encoding="utf-8") as f:
        header = f.read()
    arrays, reads, arguments = [], [], []
    for what, shape, dtype in re.findall(r"^ \*   ((?:in|out)put\d+) \((.*)\) (\w+)$", header, re.M):
        n = 1
        for size in re.findall(r"\d+", shape):
            n *= int(size)
        ctype = {"f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t", "i32": "int32_t",
                 "i64": "int64_t"}.get(dtype, "uint8_t")
        arrays.append(f"  static {ctype} {what}[{n}];")
        arguments.append(what)
        if what.startswith("in"):
            reads.append(f"""  {{
    FILE *f = fopen ("{folder}/{name}.in{what[5:]}.npy", "rb");
    if (f == NULL || fseek (f, -(long)sizeof {what}, SEEK_END) != 0 || fread ({what}, sizeof {what}, 1, f) != 1)
      return 1;
    fclose (f);
  }}""")
    function = re.search(r"(\w+_run) \(", header).group(1)
    return MAIN % {"name": name, "arrays": "\n".join(arrays), "reads": "\n".join(reads), "calls": CALLS,
                   "function": function, "arguments": ", ".join(arguments)}


def time_of(folder, name, options):
    with open(f"{folder}/main.c", "w", encoding="utf-8") as f:
        f.write(program_of(folder, name))
    subprocess.run(["cc", "-std=c99", "-O3", "-march=native", f"-I{folder}", "-o", f"{folder}/program",
                    f"{folder}/main.c", f"{folder}/{name}.c", *options, "-lm"], check=True)
    return float(subprocess.run([f"{folder}/program"], check=True, capture_output=True, text=True).stdout)


def measure(build, words, folder):
    said = subprocess.run([f"{build}/tests/life/{words[0]}", *words[1:], "iterations=1", "static=1", f"time={CALLS}",
                           f"export={folder}"], check=True, capture_output=True, text=True).stdout
    for block in said.split("function ")[1:]:
        name = os.path.basename(block.split("\n", 1)[0])
        ours, status = float(re.search(r"^replay (\d+)$", block, re.M).group(1)), re.search(r"^c (.*)$", block, re.M).group(1)
        row = {"workload": f"{words[0]} {name}", "threads": 1, "replay_us": ours}
        if status != "OK":
            row["refused"] = status
        else:
            row["blas_us"], row["loops_us"] = time_of(folder, name, BLAS), time_of(folder, name, [])
            row |= {"value": round(row["blas_us"] / ours, 2), "goal": GOAL,
                    "bytes_c": os.path.getsize(f"{folder}/{name}.c"), "bytes_program": os.path.getsize(f"{folder}/program")}
        print(json.dumps(row), flush=True)


def main():
    os.environ.update(ONE_THREAD)
    for words in [sys.argv[2:]] if len(sys.argv) > 2 else PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            measure(sys.argv[1], words, folder)


if __name__ == "__main__":
    main()
