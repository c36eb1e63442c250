#!/usr/bin/env python3
"""po.py: what the window's templates say can be translated, and translators get all of it.

SPDX-License-Identifier: MIT
"""
import ast
import re
import xml.etree.ElementTree as ElementTree

import spoken
from checks import ROOT, Report, read

DOMAIN = "tapedeck"
# What people read or hear.
SPOKEN = {"label", "title", "subtitle", "tooltip-text", "description", "placeholder-text", "heading", "body", "text"}


SAMPLE = '''
  td__window_toast (self, n ? _ ("Some") : "None at all"); /* td__window_toast (self, "a comment"); */
  gtk_stack_add_titled (stack, child, "debug", "Debug");
  td__window_toast (self, text_of ("not shown"));
  gtk_label_set_text (label, "One line, (and "
                             "another)");
  gtk_label_set_text (label, "—");
  g_strdup_printf ("%s-%u.png", name, n); g_strdup_printf ("Iteration %" G_GINT64_FORMAT, n);
  g_strdup_printf ("Saved %s", name);
  gtk_accessible_update_property (view, GTK_ACCESSIBLE_PROPERTY_LABEL, "Outline of the graph", -1);
  add_factf (self, "Time", "%.3f ms", ms);
  add_factf (self, _ ("Time"), "not timed at all by %s", device); g_strdup ("Nothing to compare"); g_strdup ("td-dense");
#define STEPPING "Stepping"
#define ROWS { "Up Down", "To the row above" }, \\
    { "Return", N_ ("Open it") }
#define CACHE_FILE "list.txt"
static const char *const step_keys[] = { "Title", "Text" };
static const Key keys[] = {
  { "win.step-over", "Step over layer", STEPPING, "<Control>F7 KP_Add", "n" },
  { "win.fit", N_ ("Fit the graph"), "Left Right", make ("A call"), .page = "td-page" }, { "open", "_Open…" },
};
  class->name = "curves"; class->title = "Curves";
'''
MISSED = ['"None at all"', '"Debug"', '"One line, (and "\n                             "another)"', '"Saved %s"', '"Outline of the graph"',
          '"not timed at all by %s"', '"Nothing to compare"', '"Stepping"', '"To the row above"', '"Step over layer"', '"_Open…"',
          '"Curves"']


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
    sources, of_code = [], []
    for path in sorted((ROOT / "ui").rglob("*.c")):
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        of_code += [f"{name}:{text.count(chr(10), 0, first) + 1}: {text[first:end]}"
                    for first, end in spoken.unmarked(text)]
        said = spoken.marked(text)
        marked |= said
        if said:
            sources.append(name)
    pot = msgids(read("data/po/tapedeck.pot"))
    report = Report()
    report.claim("every word of the templates can be translated", unmarked)
    report.claim("every word that calls of the window's code show can be translated", of_code)
    report.claim("a word that is not marked is found", [] if spoken.unmarked(SAMPLE) == [
        (SAMPLE.index(text), SAMPLE.index(text) + len(text)) for text in MISSED] else [
            repr(SAMPLE[first:end]) for first, end in spoken.unmarked(SAMPLE)])
    report.claim("nothing empty is translated, which would show the file's head",
                 [repr(text) for text in marked if not (text or "").strip()])
    report.claim("templates look for translations in those of the program", elsewhere)
    report.claim("translators are told of all templates and all code that says something",
                 sorted(set(templates + sources) ^ set(read("data/po/POTFILES").split())))
    report.claim("tapedeck.pot has what they say (meson compile tapedeck-pot)",
                 [f"missing: {text}" for text in sorted(marked - pot)] + [f"gone: {text}" for text in sorted(pot - marked)])
    report.end()


if __name__ == "__main__":
    main()
