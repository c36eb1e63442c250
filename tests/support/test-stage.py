#!/usr/bin/env python3
"""stage.py builds what it is asked for and nothing else, and says how far it is.

On a small project with a product, two tests and a measurement.
SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STAGE = pathlib.Path(__file__).resolve().with_name("stage.py")
SOURCES = {
    "meson.build": "project('small', 'c')\n"
                   "executable('product', 'main.c')\nsubdir('tests')\n",
    "tests/meson.build": "test('good', executable('good', '../main.c'), suite: 'one')\n"
                         "test('bad', executable('bad', 'bad.c'), suite: 'two')\n"
                         "executable('measurement', '../main.c')\n",
    "main.c": "int main (void) { return 0; }\n",
    "tests/bad.c": "int main (void) { return 1; }\n",
    # Fails the first time that it runs.
    "tests/busy.c": '#include <stdio.h>\nint main (void) { FILE *f = fopen ("ran", "r");\n'
                    'if (f) return 0;\nf = fopen ("ran", "w"); return 1; }\n',
}


class Project:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name, text in SOURCES.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        subprocess.run(["meson", "setup", ".build/gcc", "."], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)

    def stage(self, *arguments):
        """What it prints, and the programs that are there afterwards."""
        # Behind nothing: beside other tests the two files of this project would take minutes.
        child = subprocess.run([sys.executable, STAGE, "gcc,clang", "gcc", *arguments],
                               cwd=self.folder, capture_output=True, text=True,
                               env=dict(os.environ, TD_STAGE_NICE="0"))
        assert child.returncode == 0, child.stderr
        return child.stdout, self.there("gcc")

    def there(self, build):
        return [name for name in ("product", "tests/good", "tests/bad", "tests/measurement")
                if os.path.exists(self.folder / ".build" / build / name)]

    def log(self):
        log = self.folder / ".build/gcc/meson-logs/testlog.json"
        return list(map(json.loads, log.read_text().splitlines()))

    def results(self):
        return [(t["name"].split(" / ")[-1], t["result"]) for t in self.log()]

    def times(self):
        return json.loads((self.folder / ".build/times.json").read_text())


def claims(project):
    said, there = project.stage("--suite", "one")
    yield ("the product and the programs of the chosen tests are built",
           there == ["product", "tests/good"])
    yield "the chosen tests run", project.results() == [("good", "OK")]
    yield ("it says the stage and what is left, and first guesses as such",
           re.search(r"^dev: 1/2 gcc build, (about \d+|under a) min\w* left \(a first guess\)$", said,
                     re.M))
    yield ("what steps took is kept for the next estimate",
           sorted(project.times()) == ["gcc build", "gcc tests"])

    _, there = project.stage("--no-suite", "two")
    yield "what only tests left out need is not built", there == ["product", "tests/good"]
    said, there = project.stage("--whole")
    yield "with --whole all is built and all tests run", there[-1] == "tests/measurement" \
        and ("bad", "FAIL") in project.results()
    yield "a failed test is shown, a good one is not", "bad" in said and "good" not in said
    yield "a step whose time is known is no guess", "gcc build, " in said and not re.search(
        r"gcc build.*first guess", said)

    (project.folder / "main.c").write_text("int main (void) { return wrong; }\n")
    said, _ = project.stage("--suite", "one")
    yield ("a build that fails shows why and is noted",
           "wrong" in said and (project.folder / ".build/gcc.failed").read_text() == "the build\n")
    (project.folder / "main.c").write_text(SOURCES["main.c"])
    project.stage("--suite", "one")
    yield "the note goes with the next good build", not (project.folder / ".build/gcc.failed").exists()
    more = project.folder / "tests/meson.build"
    more.write_text(more.read_text() + "test('new', executable('new', '../main.c'), suite: 'one')\n")
    project.stage("--suite", "one")
    yield ("a test that has just been written is built and runs",
           sorted(project.results()) == [("good", "OK"), ("new", "OK")])
    more.write_text(more.read_text() + "test('busy', executable('busy', 'busy.c'), suite: 'four',"
                                       "workdir: meson.current_build_dir())\n")
    said, _ = project.stage("--suite", "four", "--suite", "two")
    yield ("what fails runs a second time, alone, and counts then",
           sorted(project.results()) == [("bad", "FAIL"), ("busy", "OK")]
           and "once more, alone: " in said)
    yield ("what passed only alone is noted",
           [t["name"].split(" / ")[-1] for t in project.log() if t.get("alone")] == ["busy"])
    subprocess.run(["meson", "setup", ".build/clang", "."], cwd=project.folder, check=True,
                   stdout=subprocess.DEVNULL)
    (project.folder / "tests/long.sh").write_text(
        "#!/bin/sh\n# Until the next stage is built, or says that it cannot be.\n"
        "cd .build\nfor k in $(seq 6000); do\n  [ -d clang ] || exit 0\n"
        "  [ \"$(grep -c -e 'tests/good\t' -e '\tproduct\t' clang/.ninja_log 2>/dev/null)\" = 2 ] && exit 0\n"
        "  grep -q 'build stopped' clang.ahead.log && exit 0\n  sleep 0.1\ndone\nexit 1\n")
    (project.folder / "tests/long.sh").chmod(0o755)
    more.write_text(more.read_text() + "test('long', find_program('long.sh'), suite: 'five', timeout: 660,"
                                       "workdir: meson.project_source_root())\n")
    project.stage("--ahead", "clang --suite one", "--suite", "five")
    yield ("while tests run the next stage is built, and of it what its tests need",
           project.there("clang") == ["product", "tests/good"])
    for name in project.there("clang"):
        (project.folder / ".build/clang" / name).unlink()
    (project.folder / ".build/clang/.ninja_log").unlink()
    (project.folder / "main.c").write_text("#ifdef NEXT\n#error wrong\n#endif\n" + SOURCES["main.c"])
    subprocess.run(["meson", "configure", ".build/clang", "-Dc_args=-DNEXT"], cwd=project.folder, check=True)
    said, _ = project.stage("--ahead", "clang --suite one", "--suite", "five")
    yield ("what is wrong with the next one is not said of this one",
           project.results() == [("long", "OK")] and "wrong" not in said
           and not list((project.folder / ".build").glob("*.failed"))
           and "wrong" in (project.folder / ".build/clang.ahead.log").read_text())
    shutil.rmtree(project.folder / ".build/clang")
    project.stage("--ahead", "minimal --suite one", "--suite", "five")
    yield "a next one that could not be configured is left alone", project.results() == [("long", "OK")]
    project.stage("--suite", "three")
    yield ("tests of which none ran are noted",
           (project.folder / ".build/gcc.failed").read_text() == "the tests: none ran\n")


def main():
    if not shutil.which("meson") or not shutil.which("ninja"):
        print("no meson or ninja in the path, skipped")
        return 77
    bad = n = 0
    with tempfile.TemporaryDirectory() as folder:
        for n, (claim, true) in enumerate(claims(Project(folder)), 1):
            print("ok" if true else "not ok", n, "-", claim)
            bad += not true
    print(f"1..{n}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
