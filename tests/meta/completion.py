#!/usr/bin/env python3
"""completion.py TAPEDECK: bash, zsh and fish, asked themselves, offer the same commands, options and values of
options, which the man page and --help have. A shell that is not installed is left out, and said.

SPDX-License-Identifier: MIT
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from checks import ROOT, Report
from man import differences, man_commands, said

FOLDER = ROOT / "data" / "completion"
FILE = "a file"  # what stands for all files: the only one there is

# Of operations and models bash has no other files.
ANY_FILE = re.compile("tapedeck eval ")

# Each prints "= LINE" and then what it offers for that line, a word a line.
BASH = """. "$0/tapedeck"
for line; do
  printf '= %s\\n' "$line"
  IFS=' ' read -r -a COMP_WORDS <<< "$line"
  case $line in *' ') COMP_WORDS+=('') ;; esac
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _tapedeck
  printf '%s\\n' "${COMPREPLY[@]}"
done"""
# Outside of its line editor, with what puts words on the screen printing them.
ZSH = """compadd () { while [[ $# -gt 0 && $1 != -- ]]; do shift; done; shift; print -rl -- "$@" }
_files () { print -r -- 'a file' }
_describe () { print -rl -- ${${(P)@[-1]}%%:*} }
for line; do
  print -r -- "= $line"
  words=("${(@s/ /)line}")
  CURRENT=$#words
  source $0/_tapedeck
done"""
FISH = """source $argv[1]/tapedeck.fish
for line in $argv[2..-1]
    echo "= $line"
    complete -C $line | string replace -r '\\t.*' '' | string unescape
end"""
SHELLS = {"bash": ["bash", "-c", BASH], "zsh": ["zsh", "-fc", ZSH], "fish": ["fish", "--no-config", "-c", FISH]}


def ask(shell, lines, folder, environment):
    """What it offers for each line that is typed."""
    child = subprocess.run([*SHELLS[shell], FOLDER, *lines], capture_output=True, text=True, cwd=folder,
                           env=environment, stdin=subprocess.DEVNULL)
    answers, words = {}, set()
    for line in child.stdout.splitlines():
        if line.startswith("= "):
            words = answers[line[2:]] = set()
        elif line:
            words.add(line)
    assert list(answers) == lines, child.stderr
    return {line: {word for word in words if word == FILE or word.startswith(line.split(" ")[-1])}
            for line, words in answers.items()}


def type_into_zsh(folder, environment, typed, until):
    """What an interactive zsh shows when that is typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**environment, "TERM": "dumb", "PS1": "> "})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    shown, end = "", time.monotonic() + 20
    os.write(terminal, f"fpath=({FOLDER} $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\n".encode())
    for wait, send in ("ready\r", typed), (until, None):
        while wait not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    break
        if send:
            os.write(terminal, send.encode())
    os.close(terminal)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return re.sub(" \b|\a", "", shown)  # blanks that were taken back


def main():
    program = sys.argv[1]
    manual = man_commands()
    report = Report()
    if said(program, "show", "--help")[0] == 127:
        print("built without viz, whose commands the man page has: skipped")
        sys.exit(77)
    here = [shell for shell in SHELLS if shutil.which(shell)]
    for shell in set(SHELLS) - set(here):
        print(f"# {shell} is not installed: what it offers is not looked at")
    values = [f"tapedeck {command} {option} " for command, options in manual.items()
              for option in [*sorted(options), "-o", "-f", *(["-n"] if command == "run" else [])]]
    lines = ["tapedeck ", "tapedeck -", *(f"tapedeck {command} " for command in manual),
             *(f"tapedeck {command} -" for command in manual), *values]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as bin_folder:
        # Operations of `tapedeck eval` are asked of the program: of this one they are none.
        with open(os.path.join(bin_folder, "tapedeck"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
        open(os.path.join(folder, FILE), "w", encoding="utf-8").close()
        environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": bin_folder, "LC_ALL": "C"}
        answers = {shell: ask(shell, lines, folder, environment) for shell in here}
        if "zsh" in here:
            shown = type_into_zsh(folder, environment, "tapedeck exp\t--form\tperf\t", "perfetto")
            report.claim("an interactive zsh finds its file and completes",
                         [] if "tapedeck export --format perfetto" in shown else [repr(shown)])
    for shell in here:
        report.claim(f"{shell} offers the commands of the man page, and files",
                     differences(set(manual) | {FILE}, answers[shell]["tapedeck "]))
        for command, options in manual.items():
            offered = {word for word in answers[shell][f"tapedeck {command} -"] if word.startswith("--")}
            report.claim(f"{shell} offers the options of {command} that the man page has",
                         differences(options, offered - {"--help"}))
        report.claim(f"{shell} offers what bash offers", [
            f"{line!r}: {problem}" for line in lines if not ANY_FILE.fullmatch(line)
            for problem in differences(answers["bash"][line], answers[shell][line])])
    for command in manual:
        text = said(program, command, "--help")[1]
        report.claim(f"{command} --help has the values that are offered", [
            f"{line!r}: {word}" for line in values if line.startswith(f"tapedeck {command} ")
            for word in answers["bash"][line] - {FILE} if word.split(":")[0] not in text])
    report.end()


if __name__ == "__main__":
    main()
