#!/usr/bin/env python3
"""flatpak.py: what the Flatpak's manifest says of this tree is so. Building it needs the network, and is not tried.

SPDX-License-Identifier: MIT
"""
import json
import re
import shutil
import subprocess

from checks import ROOT, Report, read

ID = "io.github.tapedeck.Tapedeck"
MANIFEST = f"data/flatpak/{ID}.json"
# Of meson itself.
BUILT_IN = {"buildtype": {"release", "debugoptimized", "debug", "plain"}}


def options():
    """Values of each option of meson_options.txt."""
    found = {}
    for name, kind, rest in re.findall(r"^option\('(\w+)', type: '(\w+)'(.*)$", read("meson_options.txt"), re.M):
        choices = re.search(r"choices: \[(.*?)\]", rest)
        found[name] = {"feature": {"enabled", "disabled", "auto"}, "boolean": {"true", "false"}}.get(
            kind, set(re.findall(r"'(\w+)'", choices.group(1))) if choices else None)
    return {**found, **BUILT_IN}


def wrong_options(given):
    known = options()
    for option in given:
        name, _, value = option.removeprefix("-D").partition("=")
        if name not in known:
            yield f"no such option: {option}"
        elif known[name] is not None and value not in known[name]:
            yield f"no such value: {option}"


def main():
    manifest = json.loads(read(MANIFEST))
    own = manifest["modules"][-1]
    report = Report()
    desktop = read(f"data/{ID}.desktop")
    report.claim("it has the id of the application, and starts what the launcher starts",
                 [] if manifest["app-id"] == ID and re.search(rf"^Exec={manifest['command']} ", desktop, re.M)
                 else [manifest["app-id"], manifest["command"]])
    report.claim("meson has its options, with those values", wrong_options(own["config-opts"]))
    report.claim("every part that could be left out is asked for or left out",
                 [name for name, values in options().items() if values == {"enabled", "disabled", "auto"}
                  and not any(option.startswith(f"-D{name}=") for option in own["config-opts"])])
    source = (ROOT / MANIFEST).parent / own["sources"][0]["path"]
    report.claim("its sources are this tree",
                 [] if own["sources"][0]["type"] == "dir" and source.resolve() == ROOT else [str(source)])
    if shutil.which("flatpak-builder"):
        child = subprocess.run(["flatpak-builder", "--show-manifest", ROOT / MANIFEST], capture_output=True, text=True)
        report.claim("flatpak-builder reads it without a warning",
                     [] if child.returncode == 0 and not child.stderr.strip() else [child.stderr])
    else:
        print("# no flatpak-builder: it is not asked whether it can read it")
    report.end()


if __name__ == "__main__":
    main()
