#!/usr/bin/env python3
"""po.py: what the window's templates say can be translated, and translators get all of it.

SPDX-License-Identifier: MIT
"""
import ast
import re
import xml.etree.ElementTree as ElementTree

from checks import ROOT, Report, read

DOMAIN = "tapedeck"
# What people read or hear.
SPOKEN = {"label", "title", "subtitle", "tooltip-text", "description", "placeholder-text", "heading", "body", "text"}


def says(element):
    """Its words, if people get to see them: no pictures of one letter, and nothing that is computed."""
    text = (element.text or "").strip()
    read_by_people = element.tag == "item" or (element.tag in ("property", "attribute", "relation")
                                               and element.get("name") in SPOKEN)
    return text if read_by_people and re.search(r"[A-Za-z]{2}", text) else None


def msgids(pot):
    found = re.findall(r'^msgid ((?:".*"\n)+)', pot, re.M)
    return {"".join(ast.literal_eval(line) for line in lines.splitlines()) for lines in found} - {""}


def main():
    templates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "ui").rglob("*.ui"))
    unmarked, marked, elsewhere = [], set(), []
    for name in templates:
        root = ElementTree.parse(ROOT / name).getroot()
        if root.get("domain") != DOMAIN:
            elsewhere.append(name)
        for element in root.iter():
            text = says(element)
            if element.get("translatable") == "yes":
                marked.add(element.text)
            elif text:
                unmarked.append(f"{name}: {text}")
    pot = msgids(read("data/po/tapedeck.pot"))
    report = Report()
    report.claim("every word of the templates can be translated", unmarked)
    report.claim("nothing empty is translated, which would show the file's head",
                 [repr(text) for text in marked if not (text or "").strip()])
    report.claim("templates look for translations in those of the program", elsewhere)
    report.claim("translators are told of all templates",
                 sorted(set(templates) ^ set(read("data/po/POTFILES").split())))
    report.claim("tapedeck.pot has what they say (meson compile tapedeck-pot)",
                 [f"missing: {text}" for text in sorted(marked - pot)] + [f"gone: {text}" for text in sorted(pot - marked)])
    report.end()


if __name__ == "__main__":
    main()
