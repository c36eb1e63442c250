#!/usr/bin/env python3
"""man.py TAPEDECK: man page, bash completion and --help tell of the same commands and options.

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


def man_commands():
    """Options that the man page lists, by command."""
    text = re.sub(r"\\f[A-Z]", "", read("data/tapedeck.1")).replace("\\-", "-")
    commands = text.split(".SH COMMANDS")[1].split(".SH OPTIONS")[0]
    sections = re.split(r"^\.SS tapedeck (\w+)", commands, flags=re.M)
    return {name: set(OPTION.findall(body)) - {"--help"}
            for name, body in zip(sections[1::2], sections[2::2])}


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
    page = read("data/tapedeck.1").split("Draw or print one view:")[1].split("The view\n")[0]
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
