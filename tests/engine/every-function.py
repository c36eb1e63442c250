#!/usr/bin/env python3
"""every-function.py GOLDEN HEADER...: a C table of all functions that a library exports.

Each row calls one function with what a TdEveryValues says: handles, lists, texts and numbers, so that
a test can call all of them with the same mistake.  What is on the golden list of symbols and is
no function of a header ends this with an error.
SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys

# Members of TdEveryValues, by the type that a parameter points to.
HANDLES = {"TdVar": "var", "TdLink": "link", "TdOpt": "opt", "TdOptHook": "opt_hook",
           "TdDataset": "dataset", "TdIter": "iter", "TdDevice": "device", "TdScope": "scope",
           "TdObservation": "observation", "TdUpdater": "updater", "TdTrainer": "trainer",
           "TdTrigger": "trigger", "TdExtension": "extension", "TdWalkerAlias": "alias",
           "TdStatic": "static_", "TdHook": "hook", "TdSite": "site",
           "TdComm": "comm"}
# What only the engine hands out: a program that has one got it from where it may use it.
ENGINES = {"TdOpCall", "TdBackward", "TdSerializer"}
NUMBERS = {"int", "int64_t", "size_t", "unsigned", "uint32_t", "uint64_t", "double", "float"}
# Data, no functions.
DATA = {"td_op_no_gradient"}


def without_comments(text):
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S),
                  flags=re.M)


def split(arguments):
    """At commas outside of brackets."""
    depth, parts = 0, [""]
    for c in arguments:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip() not in ("", "void", "...")]


def type_and_name(argument):
    if "(*" in argument:
        return "function", re.search(r"\(\*\s*(?:const )?(\w*)", argument).group(1)
    array, constant = "[" in argument, "const" in argument
    argument = re.sub(r"\[.*?\]", "", argument).replace("const ", "").strip()
    m = re.match(r"(.*?)(\w+)$", argument)
    kind, name = (m.group(1), m.group(2)) if m and m.group(1).strip() else (argument, "")
    kind = re.sub(r"\s*\*(?:const)?\s*", "*", kind).strip() + ("*" if array else "")
    if kind == "char*" and not constant:
        kind = "room*"
    return re.sub(r"\bstruct ", "", kind).strip(), name


def value_of(kind):
    stars, base = kind.count("*"), kind.rstrip("*").strip()
    if kind == "function" or base in ENGINES:
        return "NULL"
    if base in HANDLES and stars == 1:
        return f"(void *)v->{HANDLES[base]}"
    if base in HANDLES and stars == 2:
        return f"(void *)v->{HANDLES[base]}s"
    if base == "char" and stars == 1:
        return "(char *)v->text"
    if stars > 0:
        return "v->list"
    if kind in NUMBERS:
        return f"({kind})v->number"
    if base == "TdShape":
        return "v->shape"
    if base == "TdStatus":
        return "TD_ERR_ARG"
    return f"({kind}){{ 0 }}"


def takes_list(arguments):
    """A pointer to several things, and right behind it how many."""
    for (kind, _), (behind, name) in zip(arguments, arguments[1:]):
        several = kind.endswith("**") or (kind.endswith("*") and kind.rstrip("*") not in HANDLES
                                          and kind != "char*" and kind != "void*")
        if several and behind in ("int", "int64_t", "size_t") and re.match(r"n(_|$)", name):
            return True
    return False


def main():
    golden = set(pathlib.Path(sys.argv[1]).read_text().split())
    text = "".join(without_comments(pathlib.Path(h).read_text()) for h in sys.argv[2:])
    rows, returned = {}, {}
    for m in re.finditer(r"\bTD_API\b([^;{]*?)\b(td_\w+)\s*\(([^;]*?)\)\s*"
                         r"(?:__attribute__[^;]*)?;", text, re.S):
        rows[m.group(2)] = [type_and_name(a) for a in split(" ".join(m.group(3).split()))]
        returned[m.group(2)] = m.group(1).strip()
    missing = sorted(golden - set(rows) - DATA)
    if missing:
        sys.exit("every-function.py: not understood: " + " ".join(missing))
    print('#define TD_NO_SITES\n#include "every-function.h"\n')
    for name, arguments in sorted(rows.items()):
        values = ", ".join('"l"' if given == "format" else value_of(kind)
                           for kind, given in arguments)
        call = f"({name}) ({values});"
        status = returned[name] == "TdStatus"
        print(f"static int\ncall_{name} (const TdEveryValues *v)\n{{\n  (void)v;\n"
              + (f"  return (int){call}\n" if status else f"  (void){call}\n  return TD_EVERY_STATUS;\n")
              + "}\n")
    print("const TdEveryFunction td_every_function[] = {")
    for name, arguments in sorted(rows.items()):
        print(f'  {{ "{name}", call_{name}, {str(takes_list(arguments)).lower()} }},')
    print(f"}};\nconst int td_every_n = {len(rows)};")


if __name__ == "__main__":
    main()
