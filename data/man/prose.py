#!/usr/bin/env python3
"""prose.py KEY=VALUE... PAGE HEADER...: the man page, in which each @NAME.h:TITLE@ is the prose of that header's comment
under TITLE, so that the format is described in one place.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys
import textwrap


def prose(text, title):
    """The paragraphs below that title of a comment, without the comment's marks."""
    comment = next(c for c in re.findall(r"/\*(.*?)\*/", text, re.S) if c.lstrip().startswith(title))
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.strip().splitlines()[1:]]
    return re.split(r"\n\s*\n", "\n".join(line for line in lines if not line.startswith("==")).strip("\n"))


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def roff(paragraph):
    """A list, a table or a paragraph; one that begins with `Words.` gets that as its heading."""
    if re.match(r" *- ", paragraph):
        items = re.split(r"^ *- ", paragraph, flags=re.M)[1:]
        return "".join(f".IP \\(bu 2\n{escape(' '.join(item.split()))}\n" for item in items)
    if paragraph.startswith("    "):
        rows = re.findall(r"^(\S+)  +(.*(?:\n .*)*)", textwrap.dedent(paragraph), re.M)
        return "".join(f".TP 14\n.B {escape(key)}\n{escape(' '.join(text.split()))}\n" for key, text in rows)
    heading = re.match(r"([A-Z][A-Za-z]*(?: [a-z]+)?)\. +(?=\S)", paragraph)
    head = f".SS {heading.group(1)}\n" if heading else ".PP\n"
    return head + escape(" ".join(paragraph[heading.end() if heading else 0:].split())) + "\n"


def main():
    values = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)
    page, *headers = (pathlib.Path(argument) for argument in sys.argv[1:] if "=" not in argument)
    headers = {header.name: header.read_text(encoding="utf-8") for header in headers}
    page = page.read_text(encoding="utf-8")
    for key, value in values.items():
        page = page.replace(f"@{key}@", value)
    sys.stdout.write(re.sub(r"^@([\w-]+\.h):([^@\n]+)@\n", lambda m: "".join(
        roff(p) for p in prose(headers[m.group(1)], m.group(2))), page, flags=re.M))


if __name__ == "__main__":
    main()
