#!/usr/bin/env python3
"""stage.py STAGES NAME [--ahead "NEXT ARGUMENT..."] [--whole] [ARGUMENT...]: build .build/NAME, run its tests.

STAGES are the names of all builds that `./dev test` makes, in their order and with commas between,
ARGUMENTs those of `meson test`: --suite and --no-suite.  Built are the product and what the chosen
tests run; with --whole all that is built by default, measurements and GPU images too.

Tests wait for programs, for displays and for each other.  Meanwhile .build/NEXT is built as far as it
gets with what of the processors they leave idle; what is wrong with it is said when its turn comes.

Said are the stage, how far it is, and for how long the whole still takes: on one line where that is
a terminal, else a line at each quarter.  The estimate comes from the times of the last run, which
.build/times.json keeps, or from first guesses.  What fails is noted for summary.py, and the status
is 0; 130 after an interrupt.

A few tests that fail beside others run a second time, alone: tests of the window wait for real
programs, and a machine that does something else can starve those.  One that passes then counts as
passed, and summary.py names it all the same.
SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(".build")
# Seconds on two cores, where nothing is known: of the build, of its tests.
GUESSES = {"gcc": (400, 300), "asan": (420, 600), "clang": (120, 40), "minimal": (60, 40)}
BUILT = re.compile(r"@(\d+)/(\d+)@ ")
TESTED = re.compile(r" *(\d+)/(\d+) (?:\S+ / )?(\S+) +(OK|EXPECTEDFAIL|SKIP|[A-Z]+)\b")
QUIET = re.compile(r"ninja: (Entering directory|no work to do)")
PASSED = {"OK", "EXPECTEDFAIL", "SKIP"}
# More failures than these are no accident of a busy machine.
MOST_AGAIN = 4


def introspect(build, what):
    return json.loads((build / "meson-info" / f"intro-{what}.json").read_text())


def options(arguments, name):
    return {value for option, value in zip(arguments, arguments[1:]) if option == name}


def chosen_tests(build, arguments):
    """meson's entries of the tests that these arguments of `meson test` choose."""
    wanted, unwanted = options(arguments, "--suite"), options(arguments, "--no-suite")
    for test in introspect(build, "tests"):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if not suites & unwanted and (not wanted or suites & wanted):
            yield test


def objects(build, library):
    """The objects that are linked into it."""
    query = subprocess.run(["ninja", "-C", build, "-t", "query", library], check=True,
                           capture_output=True, text=True).stdout
    return [line.strip() for line in query.splitlines()
            if line.endswith(".o") and "kernel-images" not in line]


def targets(build, arguments):
    """What ninja has to build: the product, and the programs of the tests chosen.

    Of the GPU module only the objects, without the images that nvcc makes: no test runs those."""
    known = {target["id"]: target for target in introspect(build, "targets")}
    ids = {i for test in chosen_tests(build, arguments) for i in test["depends"]}
    tests = str(pathlib.Path("tests").resolve())
    found = []
    for i, target in known.items():
        product = target["build_by_default"] and not target["defined_in"].startswith(tests)
        if not product and i not in ids:
            continue
        for name in target["filename"]:
            name = os.path.relpath(name, build.resolve())
            if name == "gpu/tapedeck-cuda.so" and i not in ids:
                found += objects(build, name)
            else:
                found.append(name)
    return sorted(set(found))


class Clock:
    """Knows the steps of all stages, what they took last time, and what is left of them."""

    def __init__(self, stages, name):
        self.path = ROOT / "times.json"
        try:
            self.times = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.times = {}
        self.steps = [f"{stage} {step}" for stage in stages for step in ("build", "tests")]
        self.stages, self.name = stages, name
        self.terminal = sys.stdout.isatty()
        self.step, self.start, self.quarter = None, 0, -1

    def expected(self, step):
        stage, what = step.split()
        guess = GUESSES.get(stage, (300, 300))[what == "tests"] * 2 / (os.cpu_count() or 2)
        return self.times.get(step, guess)

    def left(self, fraction):
        """Seconds: at first as the last run, then more and more as this one goes."""
        rest = self.expected(self.step) * (1 - fraction)
        if fraction > 0:
            seen = (time.monotonic() - self.start) * (1 - fraction) / fraction
            rest = (1 - fraction) * rest + fraction * seen
        later = self.steps[self.steps.index(self.step) + 1:]
        return rest + sum(self.expected(step) for step in later)

    def begin(self, what):
        self.step, self.start, self.quarter = f"{self.name} {what}", time.monotonic(), -1
        self.show(0, 0, 0)

    def end(self, well):
        if well:
            self.times[self.step] = round(time.monotonic() - self.start, 1)
            self.path.write_text(json.dumps(self.times, indent=1, sort_keys=True) + "\n")
        self.clear()

    def show(self, done, total, fraction):
        minutes = round(self.left(fraction) / 60)
        text = "dev: %d/%d %s%s, %s left%s" % (
            self.stages.index(self.name) + 1, len(self.stages), self.step,
            f" {done}/{total}" if total else "",
            f"about {minutes} min" if minutes else "under a minute",
            "" if self.step in self.times else " (a first guess)")
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r\033[K" + text[:width], end="", flush=True)
        elif int(fraction * 4) > self.quarter:
            self.quarter = int(fraction * 4)
            print(text, flush=True)

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)

    def say(self, line):
        self.clear()
        print(line, flush=True)


def lines_of(command, **more):
    """The lines that a command prints, and at last its status."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace",
                             env=dict(os.environ, PYTHONUNBUFFERED="1", **more))
    for line in child.stdout:
        yield line.rstrip("\n")
    yield child.wait()


def build_it(clock, build, arguments, whole):
    clock.begin("build")
    # meson first, where one of its files has changed: what there is to build may have, too.
    again = subprocess.run(["ninja", "-C", str(build), "build.ninja"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
    if again.returncode != 0:
        clock.end(False)
        clock.say(again.stdout[-4000:])
        return False
    names = [] if whole else targets(build, arguments)
    status = 1
    for line in lines_of(["ninja", "-k", "0", "-C", str(build)] + names, NINJA_STATUS="@%f/%t@ "):
        if isinstance(line, int):
            status = line
        elif BUILT.match(line):
            done, total = map(int, BUILT.match(line).groups())
            clock.show(done, total, done / total)
        elif not QUIET.match(line):
            clock.say(line)
    clock.end(status == 0)
    return status == 0


def lowest():
    """Behind all else, for the whole session of a process: where Linux shares processors between
    sessions first, a process's own priority counts only within its session."""
    level = os.nice(int(os.environ.get("TD_STAGE_NICE", "19")))
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write(str(level))
    except OSError:
        pass  # no such sharing here


class Ahead:
    """The next stage's build, while the tests of this one run."""

    def __init__(self, words):
        build = ROOT / words[0] if words else None
        self.ninja = None
        if build is None or not (build / "build.ninja").exists():
            return
        with open(ROOT / f"{words[0]}.ahead.log", "w") as log:
            self.ninja = subprocess.Popen(
                ["ninja", "-k", "0", "-C", str(build)] + targets(build, words[1:]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=lowest)

    def stop(self):
        """What is half made goes: ninja removes it."""
        if self.ninja is not None and self.ninja.poll() is None:
            self.ninja.send_signal(signal.SIGINT)
            self.ninja.wait()


def meson_test(build, arguments):
    # Time-outs end what hangs; a machine that is busy is no failure.  Many tests wait for programs
    # and displays: one more than there are processors keeps those busy.
    return lines_of(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs",
                     "--num-processes", str((os.cpu_count() or 2) + 1),
                     "--timeout-multiplier", "4"] + arguments)


def short(test):
    return test["name"].split(" / ")[-1]


def results(log):
    """What a log of meson has, a dictionary for each test; nothing where a run was broken off."""
    try:
        return [json.loads(line) for line in log.read_text(errors="replace").splitlines()]
    except (OSError, ValueError):
        return []


def alone(clock, build, log):
    """Run what has failed a second time, one after the other, and note what passes now."""
    first = results(log)
    failed = [short(test) for test in first if test["result"] not in PASSED]
    if not 0 < len(failed) <= MOST_AGAIN:
        return
    clock.say(f"dev: once more, alone: {' '.join(failed)}")
    for line in meson_test(build, ["--num-processes", "1", "--logbase", "alone"] + failed):
        if not isinstance(line, int) and TESTED.match(line):
            clock.say(line)
    second = {short(test): dict(test, alone=True) for test in results(log.with_name("alone.json"))
              if test["result"] in PASSED}
    log.write_text("".join(json.dumps(second.get(short(test), test)) + "\n" for test in first))


def test_it(clock, build, arguments, took, ahead):
    clock.begin("tests")
    weight = {test["name"]: took.get(test["name"], 1) for test in chosen_tests(build, arguments)}
    whole, gone, quiet = sum(weight.values()) or 1, 0, False
    for line in meson_test(build, arguments):
        if isinstance(line, int):
            break
        found = TESTED.match(line)
        if found:
            done, total, name, result = found.groups()
            gone += weight.get(name, 0)
            quiet = result in PASSED
            if not quiet:
                clock.say(line)
            clock.show(int(done), int(total), min(gone / whole, 1))
        elif not quiet and line.strip():
            clock.say(line)
    ahead.stop()  # what runs alone is alone
    log = build / "meson-logs" / "testlog.json"
    alone(clock, build, log)
    clock.end(log.exists())


def main():
    stages, name, arguments = sys.argv[1].split(","), sys.argv[2], sys.argv[3:]
    words = []
    if arguments[:1] == ["--ahead"]:
        words, arguments = arguments[1].split(), arguments[2:]
    whole = arguments[:1] == ["--whole"]
    arguments = arguments[whole:]
    build, failed = ROOT / name, ROOT / f"{name}.failed"
    log = build / "meson-logs" / "testlog.json"
    took = {short(test): test["duration"] for test in results(log)}
    log.unlink(missing_ok=True)
    failed.unlink(missing_ok=True)
    clock = Clock(stages, name)
    if not build_it(clock, build, arguments, whole):
        failed.write_text("the build\n")
        clock.say(f"dev: {name}: the build failed")
        return 0
    ahead = Ahead(words)
    try:
        test_it(clock, build, arguments, took, ahead)
    finally:
        ahead.stop()
    if not log.exists() or log.stat().st_size == 0:
        failed.write_text("the tests: none ran\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
