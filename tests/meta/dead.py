#!/usr/bin/env python3
"""No function that other files may call is there for nothing: something in the tree names it.

Words of the code, not symbols of objects: a call within the own file counts, and so does what is
not built here. What does not count is a comment, a string, a prototype, and the function itself.
dead.py --self-test: functions that were planted are found, and what is used is not.
SPDX-License-Identifier: MIT
"""
import collections
import re
import sys

from checks import Report, read, tree

PRODUCT = ("app/", "engine/", "gpu/", "ui/", "viz/")
CODE = (".c", ".h", ".cu", ".cuh", ".def", ".map")
FEWEST = 2000  # functions of a tree that was read whole
EXPORTED = "tests/golden/symbols/"  # models call these

# Style has it that a function's name begins a line, below its type; a name in capitals is a macro.
DEFINITION = re.compile(r"^(?!typedef\b|(?:\w+ )*(?:static|INLINE)\b)[A-Za-z_][\w *]*\n"
                        r"\(?([A-Za-z_]*[a-z]\w*)\)? \([^;{}]*\)\n\{.*?^\}", re.M | re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
CLEANUP = re.compile(r"^G_DEFINE_AUTOPTR_CLEANUP_FUNC[^\n]*", re.M)


def code_of(text):
    """Without comments and strings."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', " ", text, flags=re.S)


def defined(code):
    """{function: its whole text} of what other files may call."""
    return {m[1]: m[0] for m in DEFINITION.finditer(code)}


def words(text):
    return collections.Counter(re.findall(r"\w+", text))


def named_in_header(code):
    """What a header does more than declare: macros, bodies, tables, cleanups."""
    kept = DIRECTIVE.findall(code) + CLEANUP.findall(code)
    rest = DIRECTIVE.sub(" ", code)
    kept += re.findall(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", rest)
    return "\n".join(kept)


def dead(files):
    """Functions of the product that nothing names, and how many functions there are."""
    functions, used, exported = {}, collections.Counter(), {"main"}
    for name, text in files.items():
        if name.startswith(EXPORTED):
            exported |= set(words(text))
            continue
        code = code_of(text)
        used.update(words(named_in_header(code) if name.endswith((".h", ".cuh")) else code))
        if name.startswith(PRODUCT) and name.endswith((".c", ".cu")):
            for function, body in defined(code).items():
                functions.setdefault(function, []).append((name, body))
    problems = []
    for function, places in sorted(functions.items()):
        own = sum(words(body)[function] for name, body in places)
        if used[function] - own <= 0 and function not in exported:
            problems += [f"{name}: nothing names {function}" for name, body in places]
    return problems, len(functions)


# A tree with what counts and what does not. What is dead says so in its name.
PLANTED = {
    "viz/a.h": "/** td_dead_said() and td_dead_one() are told of. */\nvoid td_dead_one (int n);\n"
               "char *td_dead_said (void);\nvoid td_called (void);\nvoid td_thing_free (void *x);\n"
               "G_DEFINE_AUTOPTR_CLEANUP_FUNC (Thing, td_thing_free)\n"
               "#define td_wrapped(x) \\\n  td_wrapped_ (x)\n"
               "static inline void\nin_line (void)\n{\n  td_in_line ();\n}\n",
    "viz/a.c": '#include "a.h"\n\nvoid\ntd_dead_one (int n)\n{\n  if (n)\n    td_dead_one (n - 1);\n}\n\n'
               'char *\ntd_dead_said (void)\n{\n  return text ("td_dead_said"); /* td_dead_said */\n}\n\n'
               "void\ntd_called (void)\n{\n}\n\nvoid\ntd_thing_free (void *x)\n{\n}\n\n"
               "void\ntd_wrapped_ (int x)\n{\n}\n\nvoid\ntd_in_line (void)\n{\n}\n\n"
               "void\ntd_tested (void)\n{\n}\n\nTdThing *\ntd_exported (int a,\n             int b)\n{\n}\n\n"
               "static void\nunused_static (void)\n{\n}\n\nvoid\ntd_in_table (void)\n{\n  td_called ();\n}\n\n"
               "static const Verb verbs[] = { { td_in_table } };\n",
    "tests/viz/test-a.c": "int\nmain (void)\n{\n  td_tested ();\n}\n\nvoid\nalone_in_a_test (void)\n{\n}\n",
    "tests/golden/symbols/a.txt": "td_exported\n",
}


def self_test():
    report = Report()
    problems, n = dead(PLANTED)
    report.claim("what nothing names is found, and only that",
                 [] if problems == ["viz/a.c: nothing names td_dead_one",
                                    "viz/a.c: nothing names td_dead_said"] else problems or ["none"])
    report.claim("every function is read once", [] if n == 9 else [f"{n} of 9"])
    for name in ("td_called ();", "td_thing_free)", "td_wrapped_ (x)", "td_in_line ();",
                 "{ td_in_table }", "td_tested ();", "td_exported\n"):
        fewer = {file: text.replace(name, "") for file, text in PLANTED.items()}
        report.claim(f"without {name.strip()} it is dead",
                     [] if len(dead(fewer)[0]) == 3 else dead(fewer)[0])
    report.end()


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    report = Report()
    files = {name: read(name) for name in tree() if name.endswith(CODE) or name.startswith(EXPORTED)}
    problems, n = dead(files)
    report.claim(f"the functions of the tree were read: {n}",
                 [] if n >= FEWEST else [f"only {n} of them"])
    report.claim("something names every function that other files may call", problems)
    report.end()


if __name__ == "__main__":
    main()
