#!/usr/bin/env python3
"""api.py DOXYGEN VERSION OUT HEADER...: the documentation of the public headers as HTML, by Doxygen. Ends in 1 where a public
function has no comment, or Doxygen does not understand one. `api.py --filter HEADER` is how Doxygen reads a header.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import subprocess
import sys

DECLARATION = re.compile(r"TD_API[^;{]*?\b(td_\w+)\s*\(")
# The words that begin what a comment has to say (STYLE), and stars that mean nothing but themselves.
MARK = re.compile(r"\*(Shapes|Units|Owner|Errors|Sync|Source)\*")
STAR = re.compile(r"(?<=[\w(] )\*(?=[\[\w])|(?<=\w )\*(?= \w)")
SETTINGS = """
PROJECT_NAME = Tapedeck
PROJECT_NUMBER = {version}
PROJECT_BRIEF = "Debugger for neural networks: C API"
OUTPUT_DIRECTORY = {out}
INPUT = {headers}
INPUT_FILTER = "{python} {script} --filter"
OPTIMIZE_OUTPUT_FOR_C = YES
JAVADOC_AUTOBRIEF = YES
TYPEDEF_HIDES_STRUCT = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = TD_API= TD_BEGIN_DECLS= TD_END_DECLS= TD_TAPE_BEGIN_C= TD_TAPE_END_C=
HIDE_UNDOC_RELATIONS = YES
GENERATE_LATEX = NO
GENERATE_HTML = YES
HTML_TIMESTAMP = NO
DISABLE_INDEX = NO
GENERATE_TREEVIEW = YES
FULL_PATH_NAMES = NO
HAVE_DOT = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = YES
WARN_NO_PARAMDOC = NO
"""


def reads(text):
    """A header as Doxygen is to see it: its head describes the file, and a comment above several declarations in a row is
    of each of them, up to a blank line. Of the forms of a function, td_elu (x) with all defaults, td_elu_ with a pointer to options and td_elu_at,
    which the macro td_elu calls with the place of the call, the first stands for all."""
    text = re.sub(r"/\*(.*?)\*/", lambda m: "/** @file\n *" + m.group(1).replace("SPDX-License-Identifier: MIT", "") + "*/",
                  text, count=1, flags=re.S)
    out, comment, said, known = [], "", False, set()
    for part in re.findall(r"/\*.*?\*/[ \t]*\n?|TD_API\b[^;{]*;[ \t]*\n?|[^\n]*\n|[^\n]+", text, re.S):
        declared = DECLARATION.match(part)
        if declared:
            name = declared.group(1)
            if name.startswith("td__"):
                continue
            if name.endswith("_options"):
                part = "/** The defaults of these options. */\n" + part
            plain = re.sub(r"_(?:at)?$", "", name)
            if name != plain and (plain in known or re.search(rf"TD_API[^;{{]*\b{plain} \(|#define {plain}\(", text)):
                continue
            known.add(name)
            said = True
            out.append(comment + part)
        elif part.startswith("/**") and not part.startswith(("/** @file", "/**<")):
            comment, said = STAR.sub(r"\*", MARK.sub(r"<b>\1</b>", part)), False
        else:
            if not part.strip():
                comment = ""
            elif comment and not said and part.startswith(("typedef", "enum", "struct", "#define")):
                out.append(comment)
                said = True
            out.append(part)
    return "".join(out)


def main():
    if sys.argv[1] == "--filter":
        sys.stdout.write(reads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")))
        return
    doxygen, version, out, *headers = sys.argv[1:]
    settings = SETTINGS.format(version=version, out=out, headers=" ".join(f'"{header}"' for header in headers),
                               python=sys.executable, script=pathlib.Path(__file__).resolve())
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    child = subprocess.run([doxygen, "-"], input=settings, capture_output=True, text=True)
    # Fields and macros say what they are by their names, or stand below a comment that does.
    wrong = [line for line in child.stderr.splitlines() if "(function)" in line or "is not documented" not in line]
    print(f"{out}/html/index.html", *wrong, sep="\n")
    sys.exit(1 if child.returncode or wrong else 0)


if __name__ == "__main__":
    main()
