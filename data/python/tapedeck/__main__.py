"""python3 -m tapedeck [-o TAPE] [-f] [--level graph|stats|values] SCRIPT [ARGS]: runs a script and records it.

Options end at the script, the rest is the script's.  The exit status is the script's; 2 when
nothing could be recorded.

SPDX-License-Identifier: MIT
"""
import argparse
import os
import runpy
import sys

import tapedeck
from tapedeck.library import Unusable


def options(argv):
    parser = argparse.ArgumentParser(prog="python3 -m tapedeck",
                                     description="Runs a PyTorch script and records it on a tape.")
    parser.add_argument("-o", "--tape", metavar="FILE", help="the tape; default: SCRIPT.tdtape")
    parser.add_argument("-f", "--force", action="store_true", help="an older tape may go")
    parser.add_argument("--level", choices=("graph", "stats", "values"), default="graph",
                        help="stats: with statistics of every output and gradient; values: with their elements, too")
    parser.add_argument("--tape-budget", metavar="BYTES", type=int, default=0,
                        help="what the tape may have; default: no bound")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def status_of(code):
    if code is None:
        return 0
    return code & 255 if isinstance(code, int) else 1


def own_frames(trace):
    """A traceback from the script's first frame on."""
    at = trace
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if not name.startswith("<frozen runpy") and os.path.basename(name) != "runpy.py" \
                and name != __file__:
            return at
        at = at.tb_next
    return trace


def run(script, session):
    """Run the script as Python would; returns the exit status."""
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as leave:
        session.close(status_of(leave.code))
        raise
    except KeyboardInterrupt:
        session.close(130)
        raise
    except BaseException as error:
        session.close(1)
        error = error.with_traceback(own_frames(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    session.close(0)
    return 0


def main():
    given = options(sys.argv[1:])
    if not os.path.isfile(given.script):
        sys.stderr.write("tapedeck: there is no script %s\n" % given.script)
        return 2
    tape = given.tape or os.path.splitext(os.path.basename(given.script))[0] + ".tdtape"
    sys.argv = [given.script] + given.arguments
    try:
        session = tapedeck.record(tape, level=given.level, overwrite=given.force,
                                  budget=given.tape_budget, program=given.script)
        session.__enter__()
    except Unusable as why:
        sys.stderr.write("tapedeck: %s\n" % why)
        return 2
    except Exception as error:  # a PyTorch that is not as those before it
        sys.stderr.write("tapedeck: this PyTorch cannot be recorded: %s\n" % error)
        return 2
    return run(given.script, session)


if __name__ == "__main__":
    sys.exit(main())
