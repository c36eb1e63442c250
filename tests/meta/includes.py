#!/usr/bin/env python3
"""Who may include whom: downwards only, by the table below.

A row is the longest folder that a file lies in; its own folder is always allowed. `public` stands
for the headers that are installed with the engine.
SPDX-License-Identifier: MIT
"""
import posixpath
import re

from checks import Report, read, tree

PUBLIC = ["engine/tapedeck.h", "engine/tapedeck-op.h", "engine/tapedeck-functions.h",
          "engine/tapedeck-links.h", "engine/tapedeck-optim.h",
          "engine/tapedeck-serial.h", "engine/tapedeck-data.h", "engine/tapedeck-train.h", "engine/tapedeck-extensions.h"]
PUBLIC += ["engine/tapedeck-math.h"]
PUBLIC += ["engine/tapedeck-arrays.h", "engine/tapedeck-sequences.h"]
PUBLIC += ["engine/tapedeck-sequences.h"]
PUBLIC += ["engine/tapedeck-hooks.h"]
PUBLIC += ["engine/tapedeck-losses.h"]
PUBLIC += ["engine/tapedeck-static.h"]
PUBLIC += ["engine/tapedeck-layers.h", "engine/tapedeck-recurrent.h", "engine/tapedeck-nets.h"]
DEVICE = ["engine/device.h", "engine/device-graphs.h", "engine/device-late.h", "engine/device-programs.h",
          "engine/device-rnn.h", "engine/in-floats.h", "engine/scalar-ops.h", "engine/scalar-updates.h"]
TAPE = ["engine/tape/"]
# What a training program is made of; these are one layer above the operations.
TRAINING = ["engine/core/", "engine/hooks/", "engine/links/", "engine/optim/", "engine/dataset/", "engine/serial/",
            "engine/train/"]

ALLOWED = {
    "data/examples": PUBLIC,
    "engine": PUBLIC,  # the public headers, device.h and its parts themselves
    "engine/tape": [],
    "engine/cpu": DEVICE + ["engine/tapedeck-op.h"],
    "engine/alloc": DEVICE + PUBLIC,
    "engine/core": DEVICE + PUBLIC + ["engine/alloc/"],
    "engine/ops": PUBLIC + ["engine/core/", "engine/scalar-ops.h"],
    "engine/hooks": PUBLIC + TRAINING,
    "engine/links": PUBLIC + TRAINING,
    "engine/optim": PUBLIC + TRAINING + ["engine/scalar-updates.h"],
    "engine/dataset": PUBLIC + TRAINING,
    "engine/serial": PUBLIC + TRAINING + ["engine/static/"],
    "engine/train": PUBLIC + TRAINING,
    "engine/static": PUBLIC + ["engine/core/", "engine/cpu/tiles.h", "engine/cpu/packed.h"],
    "engine/dist": DEVICE + PUBLIC + ["engine/core/"],
    # One observer: control hangs on the recorder's, by this header alone.
    "engine/record": PUBLIC + TAPE + ["engine/core/", "engine/agent/agent.h"],
    "engine/agent": PUBLIC + TAPE + ["engine/core/", "engine/record/"],
    "gpu": DEVICE,
    "viz": TAPE,
    "ui": ["viz/"],
    # The supervisor is the other end of the ring and of the control socket.
    "app": PUBLIC + TAPE + ["ui/", "viz/", "engine/agent/", "engine/record/"],
    "tests": [""],  # tests look at everything
}

# System headers that a layer must not see, so that it builds where they are not.
FOREIGN = [
    ("engine/", r"gtk/|adwaita|glib|gio/|cairo|pango|graphviz|cuda"),
    ("viz/", r"gtk/|adwaita|gtksourceview|cuda"),
    ("app/tapedeck", r"gtk/|adwaita|glib|gio/|cairo|pango|graphviz"),
    ("data/examples/", r"gtk/|glib|cairo"),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def row_of(name):
    folder = posixpath.dirname(name)
    while folder and folder not in ALLOWED:
        folder = posixpath.dirname(folder)
    return folder


def resolve(name, included, headers):
    """The file of the tree that an #include means, or None for one that the build makes."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), included))
    if beside in headers:
        return beside
    layer = name.split("/")[0]
    found = [path for path in headers if path.endswith("/" + posixpath.normpath(included))]
    found.sort(key=lambda path: (path.split("/")[0] != layer, len(path)))
    return found[0] if found else None


def main():
    names = [name for name in tree() if name.endswith((".c", ".h", ".cu", ".cuh"))]
    headers = {name for name in names if name.endswith((".h", ".cuh", ".inc", ".def"))}
    headers |= {name for name in tree() if name.endswith((".inc", ".def"))}
    problems = {row: [] for row in ALLOWED}
    unknown, foreign = [], []

    for name in names:
        row = row_of(name)
        if not row:
            unknown.append(f"{name}: its folder has no row in the table")
            continue
        for quoted, system in INCLUDE.findall(read(name)):
            if system:
                foreign += [f"{name}: <{system}>" for layer, pattern in FOREIGN
                            if name.startswith(layer) and re.match(pattern, system)]
                continue
            target = resolve(name, quoted, headers)
            if target is None:
                if not quoted.startswith("td-resources"):
                    unknown.append(f'{name}: "{quoted}" is no file of the tree')
            elif row_of(target) != row and not any(target == rule or (rule.endswith("/") or not rule)
                                                   and target.startswith(rule)
                                                   for rule in ALLOWED[row]):
                problems[row].append(f"{name} includes {target}")

    report = Report()
    for row, found in problems.items():
        report.claim(f"{row} looks only downwards", found)
    report.claim("every included file is known", unknown)
    report.claim("no layer sees a system library above it", foreign)
    report.end()


if __name__ == "__main__":
    main()
