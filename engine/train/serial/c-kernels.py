#!/usr/bin/env python3
"""c-kernels.py OUTPUT FILE.c ...: the functions of these files, each with the comment above it, as
texts of a table in C (c-out.h), in the order in which they may call each other.

Behind a function of float comes the same of double, under its name with _f64, and, if it rounds on
the way (ROUND), the same for half precision, with _f16 and _bf16; c-kernels/c-kernels.h says more.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys

NAME = re.compile(r"^(?:(\w+) \(|\} (\w+);|static \w+ (\w+);)", re.M)
COMMENT = re.compile(r"(/\*.*?\*/)", re.S)
# Words of float, and what they are of double.
OF_DOUBLE = {"float": "double", "cblas_sgemm": "cblas_dgemm"} | {
    name + "f": name for name in ["exp", "expm1", "fabs", "fmax", "fmin", "log", "log1p", "pow", "sqrt", "tanh"]}
# The end of a constant: the 0 of 1.0f, the 8 of 1e-8f.
CONSTANT = re.compile(r"(?<!0[xX])\b(\d+)f\b")


def blocks(text):
    """Each from its comment, which begins a line, to the next; the file's head is none."""
    body = text[text.index("#include"):].split("\n", 1)[1]
    for block in re.split(r"^(?=/\* )", body, flags=re.M):
        if match := NAME.search(block):
            yield next(name for name in match.groups() if name), block.strip() + "\n"


def has(text, word):
    return re.search(rf"\b{word}\b", COMMENT.sub("", text)) is not None


def exchanged(text, words):
    """Text with words exchanged outside its comments."""
    parts = COMMENT.split(text)
    return "".join(part if part.startswith("/*") else re.sub(r"\w+", lambda m: words.get(m[0], m[0]), part)
                   for part in parts)


def of_all_types(rows):
    """The rows, each before its other types."""
    halves = {name for name, text in rows if "f16" in name or "bits" in name}
    numbers = [name for name, text in rows if has(text, "float") and name not in halves]
    rounding = [name for name, text in rows if has(text, "ROUND")]
    of_double = OF_DOUBLE | {name: name + "_f64" for name in numbers}
    for name, text in rows:
        plain = text.replace("ROUND (", "(")
        yield name, plain
        if name in numbers:
            yield name + "_f64", CONSTANT.sub(r"\1", exchanged(plain, of_double))
        for half in ["f16", "bf16"] if name in rounding else []:
            words = {other: f"{other}_{half}" for other in rounding} | {"ROUND": "round_" + half}
            yield f"{name}_{half}", exchanged(text, words)


def quoted(text):
    return "\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in text.splitlines())


def main():
    rows = [row for name in sys.argv[2:] for row in blocks(pathlib.Path(name).read_text(encoding="utf-8"))]
    rows = list(of_all_types(rows))
    lines = ["/* The text of c-kernels/, written by c-kernels.py.", " * SPDX-License-Identifier: MIT */",
             '#include "train/serial/c-out.h"', "", "const TdCKernel td__c_kernels[] = {"]
    lines += [f'  {{ "{name}",\n{quoted(text)} }},' for name, text in rows]
    lines += ["};", f"const int td__c_n_kernels = {len(rows)};", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
