#!/usr/bin/env python3
"""rows.py: every row of the list of features that 1.0 must have is shown by a test that there is and that runs.

tests/ui/rows.txt says which. A test of CMocka is registered in a table of its file; a script is named in a
meson.build. A row about the window has one on the window (tests/ui). Where the list itself is beside the tree
(../shared/design/PRODUCT.md), its rows are compared.

    rows.py                what the tree says
    rows.py --self-test    mistakes that are planted are found

SPDX-License-Identifier: MIT
"""
import os
import re
import sys

from checks import ROOT, Report, read

TABLE = "tests/ui/rows.txt"
NUMBERS = [n for n in range(1, 99) if n not in
           (26, 27, 35, 36, 43, 44, 45, 54, 63, 66, 76, 83, 85, 86, 91)]
KINDS = ("window", "other")
DEFINED = re.compile(r"^([a-z]\w*__\w+) \(", re.M)
REGISTERED = re.compile(r"\b(?:cmocka_unit_test\w*|\w*test) \(\s*([a-z]\w*__\w+)")


def rows_of(text):
    """(number, kind, title, tests, what is lacking) of each row, as words."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("+") and found:
            tests, lacks = (line[1:].split("|") + [""])[:2]
            row = found[-1]
            found[-1] = (*row[:3], row[3] + tests.split(), (row[4] + " " + lacks).strip())
            continue
        parts = [part.strip() for part in line.split("|")] + [""] * 5
        found.append((parts[0], parts[1], parts[2], parts[3].split(), parts[4]))
    return found


def tests_of(sources):
    """Of texts by path, the files that define a test, and those that register it. A file that pastes names together
    defines what it registers."""
    defined, registered = {}, {}
    for path, text in sources.items():
        for name in REGISTERED.findall(text):
            registered.setdefault(name, set()).add(path)
            if "##" in text:
                defined.setdefault(name, set()).add(path)
        for name in DEFINED.findall(text):
            defined.setdefault(name, set()).add(path)
    return defined, registered


def wrong_numbers(rows, numbers):
    have = [row[0] for row in rows]
    return ([f"row {n} is missing" for n in numbers if str(n) not in have] +
            [f"row {n} is there twice" for n in sorted(set(have)) if have.count(n) > 1] +
            [f"{n} is no row of the list" for n in have if n not in map(str, numbers)])


def wrong_tests(rows, sources, builds):
    """What is wrong with the tests that rows name."""
    defined, registered = tests_of(sources)
    for number, kind, title, tests, lacks in rows:
        names = [name for name in tests if name != "-"]
        if kind not in KINDS or not title:
            yield f"row {number}: {kind or 'nothing'} is none of {', '.join(KINDS)}, or it has no title"
        if not names and not (tests and lacks):
            yield f"row {number} has no test"
        for name in names:
            if name.endswith(".py"):
                if f"tests/{name}" not in sources or os.path.basename(name) not in builds:
                    yield f"row {number}: there is no script {name} that meson runs"
            elif name not in defined:
                yield f"row {number}: there is no test {name}"
            elif not registered.get(name, set()) & defined[name]:
                yield f"row {number}: {name} is in no table of tests"
        if kind == "window" and names and not any(
                path.startswith("tests/ui/") for name in names for path in registered.get(name, ())):
            yield f"row {number} is about the window, and none of its tests is in tests/ui"


def listed(text):
    """The rows of the list itself that must be there."""
    return [int(n) for n in re.findall(r"^\| (\d+) \|.*\| \*\*M\*\*[^|]*\|$", text, re.M)]


SAMPLE = {
    "tests/ui/test-a.c": "static void\na__is_shown (void **state)\n{\n}\nstatic void\na__is_not_run (void **state)\n{\n}\n"
                         "  ui_test (a__is_shown),\n",
    "tests/tape/test-b.c": "#define B(x) static void b__##x (void **state)\n"
                           "  cmocka_unit_test_setup_teardown (b__is_pasted, td_test_setup,\n",
    "tests/app/c.py": "",
}
SAMPLE_ROWS = """# a comment
1 | window | One | a__is_shown
+ b__is_pasted
2 | window | Two | b__is_pasted
2 | other | Three | a__is_not_run app/c.py app/d.py
4 | other | Four |
5 | other | Five | - | it is not built
6 | other | Six | a__is_nowhere
7 | page | Seven | a__is_shown
"""


def self_test(report):
    rows = rows_of(SAMPLE_ROWS)
    report.claim("rows go on behind a +", [] if rows[0][3] == ["a__is_shown", "b__is_pasted"] else [str(rows[0])])
    wrong = wrong_numbers(rows, [1, 2, 3, 4, 5, 6, 7])
    report.claim("a number that is missing or twice is found",
                 [] if wrong == ["row 3 is missing", "row 2 is there twice"] else wrong)
    wrong = list(wrong_tests(rows, SAMPLE, "files('c.py')"))
    expected = ["row 2 is about the window, and none of its tests is in tests/ui", "row 2: a__is_not_run is in no table of tests",
                "row 2: there is no script app/d.py that meson runs", "row 4 has no test", "row 6: there is no test a__is_nowhere",
                "row 7: page is none of window, other, or it has no title"]
    report.claim("tests that are not there, or do not run, are found", [] if wrong == expected else wrong)
    table = "| 7 | A thing | n | **M** in time |\n| 8 | Other | y | **S** |\n| 9 | More | **M** copy; **S** pipe |\n"
    report.claim("the list's own rows are read", [] if listed(table) == [7, 9] else [str(listed(table))])
    report.end()


def main():
    report = Report()
    if sys.argv[1:] == ["--self-test"]:
        self_test(report)
    rows = rows_of(read(TABLE))
    tests = ROOT / "tests"
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
               for suffix in ("*.c", "*.py") for path in sorted(tests.rglob(suffix))}
    builds = "".join(path.read_text(encoding="utf-8") for path in tests.rglob("meson.build"))
    report.claim(f"{len(NUMBERS)} rows, each once", wrong_numbers(rows, NUMBERS))
    report.claim("every row has tests that there are and that run", wrong_tests(rows, sources, builds))
    shared = ROOT.parent / "shared"
    product = (shared if shared.is_dir() else type(ROOT)(os.environ.get("TAPEDECK_SHARED", "/"))) / "design/PRODUCT.md"
    if product.is_file():
        report.claim("rows are those of the list", wrong_numbers(rows, listed(product.read_text(encoding="utf-8"))))
    else:
        report.claim("rows are those of the list # SKIP no ../shared/design/PRODUCT.md", [])
    for number, _, title, names, lacks in rows:
        if lacks:
            print(f"# row {number}, {title}: {'lacks ' if names != ['-'] else ''}{lacks}")
    report.end()


if __name__ == "__main__":
    main()
