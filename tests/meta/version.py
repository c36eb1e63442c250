#!/usr/bin/env python3
"""version.py TAPEDECK: the build, the program, its changelog and what software centres show are of one release.

SPDX-License-Identifier: MIT
"""
import datetime
import re
import sys
import xml.etree.ElementTree as ElementTree

from checks import ROOT, Report, read
from man import man_commands, said, untrue

METAINFO = "data/io.github.tapedeck.Tapedeck.metainfo.xml"
RELEASE = re.compile(r"^## \[(.*?)\](?: - (.*))?$", re.M)


def changelog():
    """(number, date) of each release, newest first, and whether there is a place for what comes next."""
    found = RELEASE.findall(read("data/CHANGELOG.md"))
    return [release for release in found if release[0] != "Unreleased"], found[:1] == [("Unreleased", "")]


def wrong_dates(releases):
    try:
        dates = [datetime.date.fromisoformat(date) for _, date in releases]
    except ValueError as error:
        return [str(error)]
    return [f"{a} stands before {b}" for a, b in zip(dates, dates[1:]) if a < b]


def main():
    program = sys.argv[1]
    releases, has_next = changelog()
    built = re.search(r"^\s*version: '(.*)',", read("meson.build"), re.M).group(1)
    metainfo = [(release.get("version"), release.get("date"))
                for release in ElementTree.parse(ROOT / METAINFO).iter("release")]
    first_line = said(program, "--version")[1].splitlines()[:1]
    report = Report()
    report.claim("the changelog has releases, newest first, and a place for the next",
                 wrong_dates(releases) + ([] if releases and has_next else [repr(releases)]))
    report.claim("meson.build has the newest release of the changelog",
                 [] if releases and releases[0][0] == built else [built, repr(releases[:1])])
    report.claim("AppStream has the releases of the changelog, on the same days",
                 [f"{a} and {b}" for a, b in zip(releases, metainfo) if a != b]
                 + ([] if len(releases) == len(metainfo) else [f"{len(releases)} and {len(metainfo)}"]))
    report.claim("tapedeck --version says that release", [] if first_line == [f"tapedeck {built}"] else first_line)
    headers = "".join(read(path.relative_to(ROOT)) for path in (ROOT / "engine").rglob("*.h"))
    text = read("data/CHANGELOG.md")
    views = set(re.findall(r'^  \{ "([a-z-]+)", "', read("app/viz-show.c"), re.M))
    report.claim("commands, options and functions of the newest release are there",
                 untrue("CHANGELOG.md", text.split("\n## ")[2], man_commands(), views, headers))
    report.end()


if __name__ == "__main__":
    main()
