"""Who may look where: the one table behind the checks of includes and of symbols.

SPDX-License-Identifier: MIT
"""

# The houses of engine, lowest first, and which of the others each may need.  All of them stand on
# the base.
GROUND = "engine/base"
HOUSES = {
    GROUND: [],
    "engine/tape": [],
    "engine/compute": [],
    "engine/static": ["engine/compute"],
    "engine/train": ["engine/compute", "engine/static"],
    "engine/ranks": ["engine/compute", "engine/train"],
    "engine/record": ["engine/compute", "engine/tape"],
}

# The same of the rooms of engine/compute.
ROOMS = {
    "engine/compute/alloc": [],
    "engine/compute/cpu": ["engine/compute/alloc"],
    "engine/compute/core": ["engine/compute/alloc", "engine/compute/cpu"],
    "engine/compute/ops": ["engine/compute/alloc", "engine/compute/core", "engine/compute/cpu"],
}

# Above all houses: it puts them together.
START = "engine/start.c"

# `public` stands for the headers that are installed with the engine; they belong to no house.
PUBLIC = ["engine/tapedeck.h", "engine/public/"]
DEVICE = ["engine/compute/device.h", "engine/compute/device-graphs.h", "engine/compute/device-async.h",
          "engine/compute/device-programs.h", "engine/compute/device-rnn.h", "engine/compute/device-teams.h",
          "engine/compute/in-floats.h", "engine/compute/scalar-ops.h", "engine/compute/scalar-updates.h"]
BASE = [GROUND + "/"]  # everybody may: it knows nobody
TAPE = ["engine/tape/"]
COMPUTE = ["engine/compute/core/"]
PRODUCER = ["engine/record/produce/td-producer.h"]

# What may be included.  A row is the longest folder that a file lies in; its own folder is always
# allowed.  Of a house that it may need, a row names no more than it includes.
INCLUDES = {
    "data/examples": PUBLIC + PRODUCER,
    "data/python": [],
    "engine": PUBLIC + ["engine/"],  # start.c
    "engine/public": PUBLIC,
    "engine/base": BASE,
    "engine/tape": TAPE,
    "engine/compute": PUBLIC + DEVICE,  # device.h and its parts themselves
    "engine/compute/cpu": DEVICE + ["engine/public/tapedeck-op.h"],
    "engine/compute/alloc": DEVICE + PUBLIC,
    "engine/compute/core": DEVICE + PUBLIC + ["engine/compute/alloc/"],
    "engine/compute/ops": PUBLIC + COMPUTE + ["engine/compute/scalar-ops.h"],
    "engine/static": PUBLIC + COMPUTE + ["engine/compute/cpu/tiles.h", "engine/compute/cpu/packed.h"],
    "engine/train": PUBLIC + COMPUTE + ["engine/train/", "engine/static/", "engine/compute/scalar-updates.h"],
    "engine/ranks": PUBLIC + COMPUTE + ["engine/compute/ops/layers.h", "engine/train/", "engine/ranks/"],
    # MPI's types stay there.
    "engine/ranks/mpi": ["engine/ranks/transport.h"],
    # One observer: control hangs on the recorder's, by this header alone.
    "engine/record": PUBLIC + TAPE + COMPUTE + ["engine/record/agent/agent.h"],
    "engine/record/agent": PUBLIC + TAPE + COMPUTE + ["engine/record/"],
    # The assembler from outside, for programs that have no engine.
    "engine/record/produce": TAPE + ["engine/record/"],
    "gpu": DEVICE,
    "viz": TAPE,
    # The window, highest first: app; window; pages; widgets; and what all of them may ask.
    "ui/app": ["ui/window/", "ui/live/", "ui/settings/", "viz/"],
    "ui/window": ["ui/pages/", "ui/widgets/", "ui/live/", "ui/settings/", "viz/"],
    "ui/pages": ["ui/widgets/", "ui/live/", "ui/settings/", "viz/"],
    "ui/widgets": ["ui/settings/", "viz/"],
    "ui/live": ["viz/"],
    "ui/settings": [],
    # The supervisor is the other end of the ring and of the control socket.
    # Arrays of requests are npy files, too; models of ONNX are looked at without being made; weights
    # of other programs are files whose names are not known before.  A server loads its model anew.
    "app": PUBLIC + TAPE + ["ui/", "viz/", "engine/record/", "engine/train/serial/npy.h",
                            "engine/train/serial/archive.h", "engine/train/onnx/look.h",
                            "engine/train/links/replace.h"],
    "tests": [""],  # tests look at everything
}


def inside(name, folder):
    return name == folder or name.startswith(folder + "/")


def place(name, folders):
    """The one of these folders that a file lies in, or None."""
    return next((folder for folder in folders if inside(name, folder)), None)


def allowed(name, other, table):
    """May the file `name` need the file `other`, as far as this table says?"""
    here, there = place(name, table), place(other, table)
    return here is None or there is None or here == there or there == GROUND or there in table[here]
