"""`tapedeck diff --by layer` of a program and a reference that was computed without it.

    port.py TAPEDECK MODEL [GGML-PORT]

The reference is three layers and a softmax, forward and backward in double precision, here; and the same net
as a graph of ggml's calls, over the test double of ggml.
SPDX-License-Identifier: MIT
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import npz  # noqa: E402  # pylint: disable=wrong-import-position

tapedeck, model = sys.argv[1:3]
LABELS = (0, 1, 2, 1, 0)
SIZES = {"l1": (4, 8), "l2": (8, 8), "l3": (8, 3)}


def run(*args, status=0):
    result = subprocess.run(args, capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def turned(rows):
    return [list(column) for column in zip(*rows)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def made():
    """Weights and input: numbers that float32 has."""
    numbers = random.Random(3)
    few = {name: [[numbers.randint(-64, 64) / 64 for _ in range(n)] for _ in range(m)]
           for name, (n, m) in SIZES.items()}
    bias = {name: [numbers.randint(-64, 64) / 64 for _ in range(m)] for name, (_, m) in SIZES.items()}
    return few, bias, [[numbers.randint(-64, 64) / 64 for _ in range(4)] for _ in LABELS]


def computed(weights, biases, x):
    """All that the file can name: (array as rows or a list) by its name."""
    arrays, inputs, h = {}, {}, x
    for name in SIZES:
        inputs[name] = h
        out = [[y + b for y, b in zip(row, biases[name])] for row in product(h, turned(weights[name]))]
        arrays[name + "/out"] = out
        h = [[max(y, 0) for y in row] for row in out]
    gradient = []
    for row, label in zip(out, LABELS):
        e = [math.exp(y) for y in row]
        gradient.append([(v / sum(e) - (k == label)) / len(LABELS) for k, v in enumerate(e)])
    for name in reversed(SIZES):
        arrays[name + "/grad"] = gradient
        arrays[name + "/W/grad"] = product(turned(gradient), inputs[name])
        arrays[name + "/b/grad"] = [sum(column) for column in zip(*gradient)]
        gradient = [[g * (y > 0) for g, y in zip(row, before)]
                    for row, before in zip(product(gradient, weights[name]), inputs[name])]
    return arrays


def npy(array):
    if isinstance(array[0], list):
        return npz.npy([v for row in array for v in row], (len(array), len(array[0])))
    return npz.npy(array, (len(array),))


class Check:
    """One program, recorded, and files to compare it with."""

    def __init__(self, folder):
        self.folder = folder
        weights, biases, x = made()
        self.whole = computed(weights, biases, x)
        npz.write(self.path("w.npz"), [(name + "/W", npy(weights[name])) for name in SIZES]
                  + [(name + "/b", npy(biases[name])) for name in SIZES])
        with open(self.path("x.npy"), "wb") as file:
            file.write(npy(x))
        with open(self.path("numbers"), "wb") as file:
            for name in SIZES:
                file.write(struct.pack("%df" % len(sum(weights[name], [])), *sum(weights[name], [])))
                file.write(struct.pack("%df" % len(biases[name]), *biases[name]))
            file.write(struct.pack("%df" % len(sum(x, [])), *sum(x, [])))
        for what in ("", "update", "last", "frozen", "frozen update"):
            run(tapedeck, "run", "--quiet", "-o", self.path(what + ".tdtape"), "--level", "values", model,
                self.path("w.npz"), self.path("x.npy"), *what.split())

    def path(self, name):
        return os.path.join(self.folder, name)

    def reference(self, without=(), names=None, **changed):
        """A file of all arrays but those `without`, some changed, layers under other names."""
        arrays = {key: array for key, array in {**self.whole, **changed}.items() if key not in without}
        layers = names or {}
        npz.write(self.path("ref.npz"), [
            ("/".join([layers.get(key.split("/")[0], key.split("/")[0]), *key.split("/")[1:]]), npy(array))
            for key, array in arrays.items()])
        return self.path("ref.npz")

    def diff(self, path, what="", status=0):
        tape = self.path(what + ".tdtape")
        text = run(tapedeck, "diff", tape, path, "--by", "layer", "--atol", "1e-6", status=status).stdout
        said = json.loads(run(tapedeck, "diff", tape, path, "--by", "layer", "--atol", "1e-6", "--json",
                              status=status).stdout)
        assert said["differs"] == (status == 1), said
        return text, said

    def changed(self, key):
        """The array with a mistake of a port."""
        wrong = [row[:] if isinstance(row, list) else row for row in self.whole[key]]
        if isinstance(wrong[0], list):
            wrong[2][1] += 0.5
        else:
            wrong[2] += 0.5
        return {key: wrong}

    def verdicts(self, said):
        """layer and array -> verdict, of all pairs."""
        found = {}
        for row in said["layers"]:
            name = row["a"].removeprefix("net/")
            found[name + "/out"] = row["output"]["verdict"]
            found[name + "/grad"] = row["gradient"]["verdict"]
            for p in row["parameters"]:
                found["%s/%s/grad" % (name, p["a"] or p["b"])] = p["gradient"]["verdict"]
        return found


def without_update(check):
    """A program that goes forward and backward once has gradients, update or not, of all or of one layer."""
    for what in ("", "update", "last"):
        _, said = check.diff(check.reference(), what)
        assert check.verdicts(said) == dict.fromkeys(check.whole, "same"), (what, said)


def wrong_without_update(check):
    """A gradient that is wrong is found without an update, too, and no other."""
    for key in ("l1/W/grad", "l2/b/grad"):
        text, said = check.diff(check.reference(**check.changed(key)), status=1)
        found = check.verdicts(said)
        assert found.pop(key) == "differs" and set(found.values()) == {"same"}, said
        assert "backward: the first layer that differs is net/%s, %s: %s: element" % (
            key[:2], key[:2], key[3]) in text, text


def not_reached(check):
    """What no gradient reaches is a difference where an optimizer has it, else not known, which is said."""
    _, said = check.diff(check.reference(), "frozen update", status=1)
    assert said["first_backward"] == "net/l1" and check.verdicts(said)["l1/W/grad"] == "differs", said
    text, said = check.diff(check.reference(), "frozen")
    found = check.verdicts(said)
    assert [key for key, v in found.items() if v != "same"] == ["l1/grad", "l1/W/grad", "l1/b/grad"], said
    assert "of 2 parameters the gradient is not known in A, and not compared" in text and "W: not known" in text, text


def forward_alone(check):
    """What nobody says is no difference, as of a reference without gradients; nor is an update on one side."""
    alone = check.reference([key for key in check.whole if key.endswith("grad")])
    _, said = check.diff(alone)
    assert {v for k, v in check.verdicts(said).items() if k.endswith("grad")} == {"unknown"}, said
    text, said = check.diff(check.path("update.tdtape"), status=0)
    assert "only" not in text and set(check.verdicts(said).values()) == {"same"}, text


OTHERS = {"l1": "first", "l2": "second", "l3": "third"}
SWAPPED = {"l2": "l3", "l3": "l2"}


def named_in_part(check):
    """A reference that names only some gradients of a layer has that layer, under any names."""
    gradients = [key for key in check.whole if key.count("/") == 2]
    for without in (["l1/W/grad"], ["l2/W/grad"], ["l2/W/grad", "l2/b/grad"], ["l1/b/grad", "l3/b/grad"],
                    [key for key in gradients if "/W/" in key], [key for key in gradients if "/b/" in key]):
        for names in (None, OTHERS, SWAPPED):
            if names and "l2/b/grad" in without and "l2/W/grad" in without:
                continue  # nothing but its name says which layer it is
            text, said = check.diff(check.reference(without, names))
            found = check.verdicts(said)
            assert {key for key, v in found.items() if v != "same"} == set(without), (without, names, said)
            assert len(found) == len(check.whole) and "only in" not in text, (without, names, text)
            assert [row["b"] for row in said["layers"]] == [(names or {}).get(n, n) for n in SIZES], said


def wrong_in_part(check):
    """A mistake in such a layer is found."""
    for names in (None, OTHERS, SWAPPED):
        path = check.reference(["l2/W/grad"], names, **check.changed("l2/b/grad"))
        _, said = check.diff(path, status=1)
        found = check.verdicts(said)
        assert said["first_backward"] == "net/l2" and found["l2/b/grad"] == "differs", (names, said)
        assert sorted(found.values()).count("differs") == 1, (names, said)


def flat(check):
    """A gradient that the reference has flat is the same; one of other sizes differs, and its layer is found."""
    rows = check.whole["l1/W/grad"]
    for names in (None, OTHERS):
        _, said = check.diff(check.reference((), names, **{"l1/W/grad": sum(rows, [])}))
        assert check.verdicts(said) == dict.fromkeys(check.whole, "same"), (names, said)
    text, said = check.diff(check.reference(**{"l1/W/grad": [row[:3] for row in rows]}), status=1)
    found = check.verdicts(said)
    assert found.pop("l1/W/grad") == "differs" and set(found.values()) == {"same"}, said
    assert "net/l1, l1: W: elements 32, 24" in text, text


def transposed(check):
    """A gradient that lies the other way round is said to, of a square parameter in a line of its own, too."""
    text, said = check.diff(check.reference(**{"l2/W/grad": turned(check.whole["l2/W/grad"])}))
    assert "1 square parameter, as of net/l2/W, is compared the other way round" in said["notes"][0], said
    line = next(line for line in text.splitlines() if line.startswith("  net/l2"))
    assert "W" in line and line.endswith("the other way round") and text.count(": the other way") <= 1, text
    text, said = check.diff(check.reference(**{"l3/W/grad": turned(check.whole["l3/W/grad"])}))
    assert said["notes"] == [] and text.count("the other way round") == 1, text
    text, _ = check.diff(check.reference())
    assert "the other way" not in text, text


def ggml(check):
    """A graph of ggml with the same weights is the same, forward and backward; a scale too many is found."""
    for what in ("", "scaled"):
        run(sys.argv[3], check.path("numbers"), check.path("ggml%s.tdtape" % what), *what.split())
    _, said = check.diff(check.path("ggml.tdtape"))
    found = check.verdicts(said)
    assert {found[key] for key in found if key.count("/") == 2 or key.endswith("out")} == {"same"}, said
    text, said = check.diff(check.path("ggmlscaled.tdtape"), status=1)
    assert said["first_forward"] == "net/l2" and check.verdicts(said)["l1/out"] == "same", said
    assert "forward: the first layer that differs is net/l2, l2: element" in text, text


CLAIMS = (without_update, wrong_without_update, not_reached, forward_alone, named_in_part, wrong_in_part, flat, transposed) \
    + ((ggml,) if len(sys.argv) > 3 else ())


def main():
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    print("1..%d" % len(CLAIMS))
    with tempfile.TemporaryDirectory() as folder:
        check = Check(folder)
        for i, claim in enumerate(CLAIMS, 1):
            claim(check)
            print("ok %d - %s" % (i, claim.__doc__.split("\n")[0]), flush=True)


main()
