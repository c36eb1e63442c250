#!/usr/bin/env python3
"""Every operation of engine/compute/ops/ops.def has a row in a table tests/engine/op-cases-*.c.

Rows are read as the compiler reads them: the macros of a file are expanded, and what counts is the
first field of each initializer of a table, never a word of a comment, a call or an error's text.
SPDX-License-Identifier: MIT
"""
import re
import sys

from checks import ROOT, Report, read

TABLE = re.compile(r"^const OpCase op_cases_\w+\[\] = \{\n(.*?)^\};", re.S | re.M)
MACRO = re.compile(r"^#define (\w+)\(([^)]*)\)[ \t]*(.*)$", re.M)
PLAIN = re.compile(r"^#define (\w+)[ \t]+(.*)$", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def pieces(text):
    """What commas part, outside of brackets and strings."""
    depth, piece = 0, ""
    for token in re.findall(r'"(?:\\.|[^"\\])*"|.', text, re.S):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(token, 0)
        if token == "," and depth == 0:
            yield piece.strip()
            piece = ""
        else:
            piece += token
    if piece.strip():
        yield piece.strip()


def expanded(body, parameters, values):
    values = dict(zip(parameters, values))
    body = re.sub(r"(?<!#)#\s*(\w+)", lambda m: f'"{values[m[1]]}"' if m[1] in values else m[0], body)
    body = re.sub(r'"(?:\\.|[^"\\])*"|\b[A-Za-z_]\w*\b',
                  lambda m: values.get(m[0], m[0]), body)
    return re.sub(r"\s*##\s*", "", body)


def names_of(rows, macros, plain):
    """The operations that rows name in their first field."""
    for row in pieces(rows):
        call = re.match(r"(\w+)\s*\((.*)\)$", row, re.S)
        if call and call[1] in macros:
            parameters, body = macros[call[1]]
            yield from names_of(expanded(body, parameters, list(pieces(call[2]))), macros, plain)
        elif row.startswith("{"):
            field = re.sub(r"^\.op\s*=\s*", "", next(pieces(row[1:-1]), ""))
            yield "".join(re.findall(r'"([^"]*)"', plain.get(field, field)))


def rows_of(text):
    """The operations that have a row in this file."""
    text = COMMENT.sub("", text).replace("\\\n", " ")
    macros = {name: ([p.strip() for p in parameters.split(",")], body)
              for name, parameters, body in MACRO.findall(text)}
    plain = dict(PLAIN.findall(text))
    tables = (re.sub(r"^#.*$", "", table, flags=re.M) for table in TABLE.findall(text))
    return {name for table in tables for name in names_of(table, macros, plain)}


# What the reader must take for a row, and what not.
SAMPLE = '''
#define NAME "einsum"
#define ROW(op_name, ...) { op_name, "", __VA_ARGS__ }
#define PAIR(cls, n) \\
  ROW (#cls, n), \\
  { .op = #cls "_grad", n }
/* cosh */
const OpCase op_cases_sample[] = {
  PAIR (tanh, .call = call_sinh), /* cos */
  ROW (NAME, "sin"),
};
const OpError op_errors_sample[] = {
  { "exp", call_log },
};
'''


def main():
    table = "engine/compute/ops/ops.def"
    cases = sorted(path.relative_to(ROOT) for path in ROOT.glob("tests/engine/op-cases-*.c"))
    if not (ROOT / table).exists() or not cases:
        print(f"{table} or tests/engine/op-cases-*.c is not there, skipped")
        sys.exit(77)
    rows = COMMENT.sub("", read(table))
    ops = re.findall(r"^\s*TD_OP\w*\s*\(\s*\"?(\w+)", rows, re.M)
    tested = set().union(*(rows_of(read(str(name))) for name in cases))
    report = Report()
    report.claim("a word in a comment, a call or an error is no row",
                 sorted(rows_of(SAMPLE) ^ {"tanh", "tanh_grad", "einsum"}))
    report.claim("ops.def lists operations", [] if len(ops) > 20 else [f"only {len(ops)} found"])
    report.claim("no operation is listed twice", sorted({op for op in ops if ops.count(op) > 1}))
    report.claim("every operation has a row of cases",
                 [op for op in ops if op not in tested])
    report.end()


if __name__ == "__main__":
    main()
