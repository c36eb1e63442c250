#!/usr/bin/env python3
"""man.py TAPEDECK: man pages, completion of bash and --help tell of the same commands and options, each in one place.

SPDX-License-Identifier: MIT
"""
import re
import subprocess
import sys

from checks import ROOT, Report, read

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def said(*command):
    child = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return child.returncode, child.stdout


def plain(path):
    """A page without fonts and marked hyphens."""
    return re.sub(r"\\f[A-Z]", "", read(path)).replace("\\-", "-")


def man_pages():
    """Pages of commands of their own, by command."""
    return {path.stem.removeprefix("tapedeck-"): plain(path.relative_to(ROOT))
            for path in sorted((ROOT / "data/man").glob("tapedeck-*.1"))}


def in_overview():
    """What tapedeck(1) says about the commands that have no page, by command."""
    commands = plain("data/man/tapedeck.1").split(".SH COMMANDS")[1].split(".SH OPTIONS")[0]
    sections = re.split(r"^\.SS tapedeck (\w+)", commands, flags=re.M)
    return dict(zip(sections[1::2], sections[2::2]))


def man_commands():
    """Options that the man pages list, by command."""
    described = {name: text.split(".SH DESCRIPTION")[1].split(".SH EXAMPLES")[0] for name, text in man_pages().items()}
    return {name: set(OPTION.findall(re.sub(r"tapedeck \w+ -.*", "", body))) - {"--help"}
            for name, body in {**described, **in_overview()}.items()}


def statuses(text):
    """Exit codes that a page or a help lists."""
    if ".SH EXIT STATUS" in text:
        listed = text.split(".SH EXIT STATUS")[1].split(".SH ")[0]
        return set(re.findall(r"^\.BR? (\d+)", listed, re.M))
    listed = re.split(r"[Ee]xit status:", text)
    return set(re.findall(r"(?:^|[;,])\s*(\d)\b", listed[1])) if len(listed) > 1 else set()


def pages_agree(program, pages, overview_help):
    """What a page of a command has that --help, the overview or another page does not say."""
    wrong = []
    overview = plain("data/man/tapedeck.1")
    for name, text in pages.items():
        summary = re.search(rf"^tapedeck-{name} - (.*)$", text, re.M).group(1)
        row = re.search(rf"^  {name} .*$", overview_help, re.M)
        if not row or not row.group(0).endswith(" " + summary):
            wrong.append(f"{name}: not in --help: {summary}")
        if f".BR tapedeck-{name} (1)\n{summary}\n" not in overview:
            wrong.append(f"{name}: not in tapedeck(1): {summary}")
        told = said(program, name, "--help")[1]
        if f"The man page is tapedeck-{name}(1)." not in told:
            wrong.append(f"{name}: --help does not name its page")
        # 127 is the shell's, and that of a build without the command.
        if statuses(told) and statuses(told) != statuses(text) - {"127"}:
            wrong.append(f"{name}: exit status {sorted(statuses(told))} and {sorted(statuses(text))}")
    return wrong


def repeated(texts):
    """Sentences that two places of the manual have."""
    seen, twice = {}, []
    for page, text in texts.items():
        text = re.sub(r"^\.[BIR]{1,2} ", "", text, flags=re.M)  # in another font; other requests end a sentence
        for sentence in re.split(r"(?<=[.;:])\s|^[.'].*$", text, flags=re.M):
            sentence = " ".join(sentence.split())
            if len(sentence) > 60 and sentence in seen:
                twice.append(f"{page} and {seen[sentence]}: {sentence}")
            seen[sentence] = page
    return twice


def dead_references(texts):
    """Pages that are named and that there are not."""
    there = {f"tapedeck-{name}(1)" for name in texts} | {"tapedeck(1)", "tapedeck-tape(5)"}
    return [f"{page}: {name}" for page, text in texts.items()
            for name in re.findall(r"\btapedeck(?:-\w+)? ?\(\d\)", text) if name.replace(" ", "") not in there]


def completion(word, before="", typed="--"):
    """What bash offers after `tapedeck WORD BEFORE TYPED`."""
    words = f"(tapedeck {word} {before} \"{typed}\")" if word else f"(tapedeck \"{typed}\")"
    cword = (3 if before else 2) if word else 1
    script = (f". data/completion/tapedeck; COMP_WORDS={words}; COMP_CWORD={cword}; "
              "_tapedeck; printf '%s\\n' \"${COMPREPLY[@]}\"")
    child = subprocess.run(["bash", "-c", script], capture_output=True, text=True,
                           cwd=ROOT)
    return set(child.stdout.split())


def differences(a, b):
    return [f"only the first: {x}" for x in sorted(a - b)] + \
           [f"only the second: {x}" for x in sorted(b - a)]


def untrue(name, text, manual, views, headers):
    """What a topic of the manual says that is not so."""
    text = re.sub(r"\n +(?=[a-z])", " ", text)  # a command in a paragraph may be two lines
    wrong = []
    for line in re.findall(r"^    (tapedeck .*)$|`(tapedeck[^`]*)`", text, flags=re.M):
        words = "".join(line).split()
        command = words[1] if len(words) > 1 else ""
        if words[0] == "tapedeck" and command not in manual and "." not in command:
            wrong.append(f"{name}: no such command: {' '.join(words)}")
        for option in set(OPTION.findall(" ".join(words))) - manual.get(command, set()):
            wrong.append(f"{name}: {command} has no {option}")
        if "--view" in words and words[words.index("--view") + 1] not in views:
            wrong.append(f"{name}: no such view: {' '.join(words)}")
    return wrong + [f"{name}: no such function: {function}" for function in re.findall(r"`(td_\w+)`", text)
                    if not re.search(rf"\b{function}\b", headers)]


def main():
    program = sys.argv[1]
    manual = man_commands()
    pages = man_pages()
    texts = {**pages, "overview": plain("data/man/tapedeck.1"), "tape": plain("data/man/tapedeck-tape.5.in")}
    report = Report()
    if said(program, "show", "--help")[0] == 127:
        print("built without viz, whose commands the man page has: skipped")
        sys.exit(77)
    status, overview = said(program, "--help")
    report.claim("--help ends in 0 and fits on a screen",
                 [] if status == 0 and 5 < overview.count("\n") <= 50 else [str(status), overview])
    listed = set(re.findall(r"^ *(?:tapedeck )?(run|info|show|diff|leaks|ranks|eval|recompute|weights|serve|cat|export|import|check)\b",
                            overview, re.M))
    report.claim("man page and --help list the same commands", differences(set(manual), listed))
    report.claim("a command is described in one place, and every page is one of a command", [
        name for name in set(pages) | set(in_overview())
        if (name in pages) == (name in in_overview()) or name not in listed])
    report.claim("pages of commands agree with --help and the overview, in summary and exit status",
                 pages_agree(program, pages, overview))
    report.claim("no sentence is said twice", repeated(texts))
    report.claim("the pages that are named are there", dead_references(texts))
    for command, options in manual.items():
        status, text = said(program, command, "--help")
        found = set(OPTION.findall(text)) - {"--help"}
        report.claim(f"man page and `{command} --help` list the same options",
                     ([f"status {status}"] if status else []) + differences(options, found))
        offered = {word for word in completion(command) if word.startswith("--")} - {"--help"}
        report.claim(f"man page and completion list the same options of {command}",
                     differences(options, offered))
    views = set(re.findall(r'^  \{ "([a-z-]+)", "[a-z ]*", (?:NULL|[a-z_]+_print),',
                           read("app/viz-show.c"), re.M))
    report.claim("completion offers the views that there are",
                 differences(views, completion("show", "--view", "")))
    page = read("data/man/tapedeck-show.1").split("Draw or print one view:")[1].split("Of an ONNX")[0]
    report.claim("the man page lists the views that there are",
                 differences(views, set(re.findall(r"^\.BR? ([a-z-]+)", page, re.M))))
    headers = "".join(read(path.relative_to(ROOT)) for path in sorted((ROOT / "engine").glob("public/*.h")))
    headers += read("engine/tapedeck.h")
    report.claim("the window's manual names commands, options, views and functions that there are",
                 [wrong for path in sorted((ROOT / "ui/help").glob("*.md"))
                  for wrong in untrue(path.name, path.read_text(encoding="utf-8"), manual, views, headers)])
    report.end()


if __name__ == "__main__":
    main()
