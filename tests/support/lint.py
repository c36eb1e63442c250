#!/usr/bin/env python3
"""lint.py BUILD [FOLDER|FILE ...]: clang-tidy over the C files of engine/ and viz/, or of those named.

A file without findings is noted in BUILD/lint with a hash of all that it was made of: itself, the
headers of the tree that it includes, its command, .clang-tidy.  While that stays the same it is not
looked at again, so a run that is broken off goes on where it was.
SPDX-License-Identifier: MIT
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FINDING = re.compile(r": (?:error|warning): ")
# What a compile command says about its object, which is not made here.
OBJECT = re.compile(r"-M[DMPFQ]+|-[co]")

contents = {}


def content(path):
    """The hash of one file; files change little while this runs."""
    if path not in contents:
        try:
            contents[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        except OSError:
            contents[path] = "none"
    return contents[path]


class Lint:
    def __init__(self, build):
        self.build = build
        self.notes = build / "lint"
        self.notes.mkdir(exist_ok=True)
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
        self.rules = version + content(ROOT / ".clang-tidy")
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            name = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            self.commands.setdefault(name, dict(entry, file=name))
        # A file that several programs are made of is looked at once.
        (self.notes / "compile_commands.json").write_text(json.dumps(list(self.commands.values())), encoding="utf-8")

    def note(self, name):
        return self.notes / (name.replace("/", "-") + ".json")

    def key(self, name, made_of):
        entry = self.commands[str(ROOT / name)]
        text = self.rules + entry["command"] + "".join(content(ROOT / path) for path in made_of)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_known(self, name):
        try:
            note = json.loads(self.note(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return note["key"] == self.key(name, note["made_of"])

    def made_of(self, name):
        """The file and its headers of the tree, as the compiler finds them."""
        entry = self.commands[str(ROOT / name)]
        words, kept = shlex.split(entry["command"]), []
        skip = False
        for word in words:
            if skip or OBJECT.fullmatch(word):
                skip = not skip and word in ("-o", "-MF", "-MQ")
                continue
            kept.append(word)
        run = subprocess.run([word for word in kept if word != "ccache"] + ["-MM"], cwd=entry["directory"],
                             capture_output=True, text=True)
        paths = re.split(r"(?<!\\)\s+", run.stdout.replace("\\\n", " ").partition(":")[2].strip())
        real = {os.path.realpath(os.path.join(entry["directory"], path)) for path in paths if path}
        return sorted(os.path.relpath(path, ROOT) for path in real | {str(ROOT / name)})

    def look(self, name):
        """What clang-tidy says of a file; nothing: it is noted."""
        made_of = self.made_of(name)
        run = subprocess.run(["clang-tidy", "--quiet", "-p", str(self.notes), name], cwd=ROOT, capture_output=True,
                             text=True)
        if run.returncode == 0 and not FINDING.search(run.stdout):
            self.note(name).write_text(json.dumps({"key": self.key(name, made_of), "made_of": made_of}),
                                       encoding="utf-8")
            return ""
        return run.stdout or run.stderr


def main():
    build = pathlib.Path(sys.argv[1])
    os.chdir(ROOT)
    asked = sys.argv[2:] or ["engine", "viz"]
    tracked = subprocess.run(["git", "ls-files", "--", *asked], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in tracked if name.endswith(".c")]
    lint = Lint(build.resolve())
    built = [name for name in names if str(ROOT / name) in lint.commands]
    new = [name for name in built if not lint.is_known(name)]
    # What was touched last is most likely to have something.
    new.sort(key=lambda name: -os.stat(name).st_mtime)
    start, findings = time.monotonic(), 0
    pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        tasks = {pool.submit(lint.look, name): name for name in new}
        for done, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            said = task.result()
            findings += len(FINDING.findall(said)) or bool(said)
            if said:
                print(said, end="" if said.endswith("\n") else "\n", flush=True)
            print(f"lint: {done} of {len(new)}: {tasks[task]}", file=sys.stderr)
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        sys.exit("lint: broken off; what was looked at is noted")
    print(f"lint: {len(built)} files, {len(built) - len(new)} of them as they were, {len(new)} looked at in "
          f"{time.monotonic() - start:.0f} s, {findings} findings", file=sys.stderr)
    if len(built) < len(names):
        print(f"lint: {len(names) - len(built)} more are not built here", file=sys.stderr)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
