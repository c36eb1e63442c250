#!/usr/bin/env python3
"""A port is checked layer by layer: test-port.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
# a mistake -> the layer that differs first, forward and backward
FAULTS = {
    "gpt": {"transposed": "Gpt/h/2/attn/out", "epsilon": "Gpt/h/3/ln_2", "bias": "Gpt/h/1/mlp/2",
            "scale": "Gpt/h/4/attn/out"},
    "resnet": {"transposed": "Resnet/stages/1/0/conv2", "epsilon": "Resnet/stages/2/1/bn1",
               "bias": "Resnet/stages/0/1/conv1"},
}
LEAVES = {"gpt": 6 * 6 + 4, "resnet": 2 + 4 * 8 + 3 + 1}  # layers with parameters
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PRODUCER=producer)


def run(*args, status=0):
    result = subprocess.run(args, capture_output=True, text=True, env=environment, cwd=HERE)
    assert result.returncode == status, (args, result.returncode, result.stdout[-1000:], result.stderr[-1000:])
    return result


def record(folder, model, side, fault=None, level="stats"):
    tape = os.path.join(folder, "-".join(filter(None, (model, side, fault, level))) + ".tdtape")
    if not os.path.exists(tape):
        run(python, "port.py", "--model", model, "--side", side, "--tape", tape, "--level", level,
            *(["--fault", fault] if fault else []))
    return tape


def reference(folder, model, side, fault=None):
    path = os.path.join(folder, "-".join(filter(None, (model, side, fault))) + ".npz")
    if not os.path.exists(path):
        run(python, "port.py", "--model", model, "--side", side, "--npz", path, *(["--fault", fault] if fault else []))
    return path


def diff(a, b, *more, status):
    return json.loads(run(tapedeck, "diff", a, b, "--by", "layer", "--json", *more, status=status).stdout)


def compared(folder, model, fault=None, *more, status):
    return diff(record(folder, model, "original"), record(folder, model, "port", fault), *more, status=status)


def equal(folder, model):
    """Every layer is found, whatever it is called, and agrees, forward and backward."""
    # A bias before a batch's normalisation has no gradient but rounding: that takes an atol.
    said = compared(folder, model, None, "--atol", "1e-6", status=0)
    assert said["first_forward"] is None and said["first_backward"] is None and not said["differs"], said
    assert said["without_numbers"] == 0, said["without_numbers"]
    pairs = {row["a"]: row for row in said["layers"]}
    assert all(row["b"] == row["a"].replace(model.capitalize(), "Port/net", 1) for row in said["layers"]), said
    own = [row for row in said["layers"] if row["parameters"]]
    assert len(own) == LEAVES[model] and len(pairs) > len(own), (len(own), len(pairs))
    for row in said["layers"]:
        assert row["output"]["verdict"] == "same", row
        assert all(p["gradient"]["verdict"] == "same" for p in row["parameters"]), row
    assert model != "gpt" or any(p["transposed"] for row in own for p in row["parameters"])


def found(folder, model, fault, layer):
    said = compared(folder, model, fault, status=1)
    assert said["first_forward"] == layer, said["first_forward"]
    before = [row for row in said["layers"]]
    before = before[:[row["a"] for row in before].index(layer)]
    assert before and all(row["output"]["verdict"] == "same" for row in before)
    assert said["first_backward"] is not None
    if fault == "bias":
        row = next(row for row in said["layers"] if row["a"] == layer)
        assert {"a": "bias", "b": None} in [{key: p[key] for key in "ab"} for p in row["parameters"]], row
    text = run(tapedeck, "diff", record(folder, model, "original"), record(folder, model, "port", fault), "--by",
               "layer", status=1).stdout
    assert text.startswith("forward: the first layer that differs is %s, Port/net/" % layer), text


def frozen(folder):
    """What the port does not train, though the results are right."""
    said = compared(folder, "gpt", "frozen", status=1)
    assert said["first_forward"] is None, said["first_forward"]
    assert said["first_backward"] == "Gpt/h/3/mlp/2", said["first_backward"]
    tapes = record(folder, "gpt", "original"), record(folder, "gpt", "port", "frozen")
    text = run(tapedeck, "diff", *tapes, "--by", "layer", status=1).stdout
    assert "only A is updated" in text, text


def tolerance(folder):
    """What is called a difference is the caller's to say."""
    loose = compared(folder, "gpt", "epsilon", "--rtol", "10", status=0)
    assert loose["first_forward"] is None, loose["first_forward"]
    strict = compared(folder, "gpt", None, "--rtol", "0", status=1)
    assert strict["first_forward"] is not None
    same = record(folder, "gpt", "original")
    said = json.loads(run(tapedeck, "diff", same, same, "--by", "layer", "--rtol", "0", "--json").stdout)
    assert not said["differs"], said


def names(folder):
    """The table can be written, edited and given; what is wrong in it is said with its line."""
    tapes = record(folder, "gpt", "original"), record(folder, "gpt", "port")
    table = os.path.join(folder, "names.txt")
    run(tapedeck, "diff", *tapes, "--by", "layer", "--names-out", table)
    with open(table) as file:
        lines = file.read().splitlines()
    assert "Gpt/h/2/attn/out Port/net/h/2/attn/out # by name" in lines, lines
    first, second = (next(line for line in lines if line.startswith("Gpt/h/%d/ln_1 " % i)).split() for i in (0, 1))
    with open(table, "w") as file:
        file.write("%s %s\n%s -\n" % (first[0], second[1], second[0]))
    said = json.loads(run(tapedeck, "diff", *tapes, "--by", "layer", "--names", table, "--json", status=1).stdout)
    assert [(row["a"], row["b"]) for row in said["layers"]] == [(first[0], second[1])], said
    assert said["first_forward"] == first[0] and second[0] in said["only_in_a"], said
    for wrong, line in (("a", 1), ("# well\nGpt/nothing Port/net", 2), ("Gpt Port\nGpt Port", 2)):
        with open(table, "w") as file:
            file.write(wrong)
        error = run(tapedeck, "diff", *tapes, "--by", "layer", "--names", table, status=2).stderr
        assert "line %d of the names" % line in error, error
    for wrong in (["--names", table], ["--by", "colour"], ["--by", "layer", "--rtol", "-1"],
                  ["--by", "layer", "--names", "/nowhere"]):
        assert run(tapedeck, "diff", *tapes, *wrong, status=2).stderr.startswith("tapedeck: "), wrong


def unlike(folder):
    """What has no counterpart is a difference, and two models without any are no ports."""
    said = json.loads(run(tapedeck, "diff", record(folder, "gpt", "original"), record(folder, "resnet", "original"),
                          "--by", "layer", "--json", status=1).stdout)
    assert "Gpt/wte" in said["only_in_a"] and "Resnet/stem" in said["only_in_b"] and said["differs"], said
    tape = os.path.join(folder, "small.tdtape")
    run(python, "-c", "import torch, tapedeck\nnet = torch.nn.Linear(7, 3)\n"
        "with tapedeck.record(%r, net, level='stats'):\n    net(torch.ones(1, 7)).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n" % tape)
    error = run(tapedeck, "diff", tape, record(folder, "resnet", "original"), "--by", "layer", status=2).stderr
    assert "no layer of A is one of B" in error, error
    bare = os.path.join(folder, "bare.tdtape")
    run(python, "port.py", "--model", "gpt", "--side", "port", "--tape", bare, "--level", "graph")
    error = run(tapedeck, "diff", record(folder, "gpt", "original"), bare, "--by", "layer", status=2).stderr
    assert "level stats" in error, error


# the same by NumPy, of what PyTorch's own hooks have seen
WORST = """
import json, numpy, sys
a, b = (numpy.load(path)[key].astype("f8") for path, key in zip(sys.argv[1::2], sys.argv[2::2]))
size = numpy.maximum(numpy.maximum(abs(a), abs(b)), max(numpy.sqrt((x * x).mean()) for x in (a, b)))
apart = abs(a - b) / size
at = numpy.unravel_index(apart.argmax(), a.shape)
print(json.dumps({"index": [int(i) for i in at], "a": a[at], "b": b[at], "apart": apart[at], "of": a.size,
                  "beyond": int((apart > 1e-4).sum())}))
"""


def same_worst(numbers, folder, fault, key):
    want = json.loads(run(python, "-c", WORST, reference(folder, "gpt", "original"), key,
                          reference(folder, "gpt", "port", fault), "net." + key).stdout)
    assert numbers["elements"] == "compared" and numbers["index_a"] == numbers["index_b"] == want["index"], numbers
    assert (numbers["a"], numbers["b"], numbers["of"]) == (want["a"], want["b"], want["of"]), (numbers, want)
    assert abs(numbers["apart"] - want["apart"]) < 1e-9 and numbers["beyond"] == want["beyond"] > 0, (numbers, want)


def line_of(source):
    name, line = source.split(" ")[0].split(":")
    with open(os.path.join(HERE, name)) as file:
        return file.read().splitlines()[int(line) - 1]


def elements(folder):
    """At level values the worst element is named, with both values and where both sides made it."""
    a, b = record(folder, "gpt", "original", None, "values"), record(folder, "gpt", "port", "epsilon", "values")
    said = diff(a, b, status=1)
    assert said["first_forward"] == "Gpt/h/3/ln_2", said["first_forward"]
    row = next(row for row in said["layers"] if row["a"] == said["first_forward"])
    same_worst(row["output"], folder, "epsilon", "h.3.ln_2/out")
    assert "self.ln_2(x)" in line_of(row["output"]["source_a"]), row["output"]
    assert "self.beta" in line_of(row["output"]["source_b"]), row["output"]
    text = run(tapedeck, "diff", a, b, "--by", "layer", status=1).stdout
    index = "(%s)" % ", ".join(map(str, row["output"]["index_a"]))
    assert ": element %s %.6g, %.6g (" % (index, row["output"]["a"], row["output"]["b"]) in text, text[:500]
    assert "\n  A  %s\n  B  %s\n" % (row["output"]["source_a"], row["output"]["source_b"]) in text, text[:500]
    # without a mistake all elements are the same, whichever way round a weight lies
    said = diff(a, record(folder, "gpt", "port", None, "values"), "--atol", "1e-6", status=0)
    for row in said["layers"]:
        assert row["output"]["elements"] == "compared", row
        assert all(p["gradient"]["elements"] == "compared" for p in row["parameters"]), row
    square = next(row for row in said["layers"] if row["a"] == "Gpt/h/2/attn/out")["parameters"]
    assert [p["transposed"] for p in square if p["a"] == "weight"] == [True], square


def arrays(folder):
    """Arrays that any framework wrote stand for either side, forward and backward."""
    tape = record(folder, "gpt", "port", None, "values")
    for a, b in ((reference(folder, "gpt", "original"), tape), (tape, reference(folder, "gpt", "original"))):
        said = diff(a, b, "--atol", "1e-6", status=0)
        assert len(said["layers"]) == 6 * 10 + 4, len(said["layers"])
        for row in said["layers"]:
            assert row["paired"] == "by name" and row["output"]["elements"] == "compared", row
        assert sum(len(row["parameters"]) for row in said["layers"]) == 6 * 12 + 5
        assert said["layers"][0]["a"].endswith("wte") and said["layers"][-1]["a"].endswith("head")
    tape = record(folder, "gpt", "port", "epsilon", "values")
    said = diff(reference(folder, "gpt", "original"), tape, status=1)
    assert said["first_forward"] == "h/3/ln_2", said["first_forward"]
    row = next(row for row in said["layers"] if row["a"] == "h/3/ln_2")
    same_worst(row["output"], folder, "epsilon", "h.3.ln_2/out")
    assert row["output"]["source_a"] == "gpt-original.npz: h.3.ln_2/out", row
    # of both references the gradients of what layers returned are known, too
    said = diff(reference(folder, "gpt", "original"), reference(folder, "gpt", "port", "epsilon"), status=1)
    row = next(row for row in said["layers"] if row["a"] == "h/3/ln_2")
    same_worst(row["gradient"], folder, "epsilon", "h.3.ln_2/grad")
    assert said["first_backward"] == "head", said["first_backward"]


def in_part(folder):
    """What only one side has, or neither, is said."""
    stats = record(folder, "gpt", "port")
    said = diff(reference(folder, "gpt", "original"), stats, "--atol", "1e-6", status=0)
    assert all(row["output"]["elements"] == "missing in B" for row in said["layers"]), said["layers"][0]
    assert any("A has no elements of 0 of them, B of 64" in note for note in said["notes"]), said["notes"]
    text = run(tapedeck, "diff", stats, record(folder, "gpt", "original"), "--by", "layer", "--atol", "1e-6").stdout
    assert "A has no elements of 66 of them, B of 66 (level values" in text, text[:600]


def without_step(folder):
    """Gradients that no optimizer took are not known, and no difference."""
    tape, path = os.path.join(folder, "still.tdtape"), os.path.join(folder, "still.npz")
    run(python, "-c", "import numpy, torch, tapedeck\nnet = torch.nn.Sequential(torch.nn.Linear(7, 3))\n"
        "with tapedeck.record(%r, net, level='values'):\n    y = net(torch.ones(2, 7))\n    y.sum().backward()\n"
        "grads = {'0/%%s/grad' %% n: p.grad for n, p in net[0].named_parameters()}\n"
        "numpy.savez(%r, **{'0/out': y.detach()}, **grads)" % (tape, path))
    said = diff(tape, path, status=0)
    assert [p["gradient"]["verdict"] for row in said["layers"] for p in row["parameters"]] == ["unknown"] * 2, said
    assert any("of 2 parameters the gradient is not known in A" in note for note in said["notes"]), said


def other_names(folder):
    """A reference whose names are others is paired by a table that was written and edited."""
    path, table = os.path.join(folder, "other.npz"), os.path.join(folder, "other.txt")
    run(python, "-c", "import numpy, sys\na = numpy.load(sys.argv[1])\n"
        "numpy.savez(sys.argv[2], **{k.replace('ln_', 'norm').replace('attn', 'att'): a[k] for k in sorted(a)})",
        reference(folder, "gpt", "original"), path)
    tape = record(folder, "gpt", "original", None, "values")
    run(tapedeck, "diff", tape, reference(folder, "gpt", "original"), "--by", "layer", "--names-out", table)
    with open(table) as file:
        lines = file.read().replace(" h/", " H/")
    assert "Gpt/h/3/ln_2 H/3/ln_2 # by name" in lines, lines
    with open(table, "w") as file:
        for line in lines.splitlines():
            ours, theirs, *_ = line.split() if not line.startswith("#") else ("#", "")
            file.write("%s %s\n" % (ours, theirs.replace("H/", "h/").replace("ln_", "norm").replace("attn", "att")))
    said = diff(tape, path, "--names", table, status=0)
    assert len(said["layers"]) == 64 and all(row["paired"] == "by the table" for row in said["layers"]), said
    assert all(row["output"]["verdict"] == "same" for row in said["layers"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        claim("gpt: a weight that only one side trains is a difference", frozen, folder)
        for model, faults in FAULTS.items():
            claim(model + ": a port without mistakes agrees in every layer", equal, folder, model)
            for fault, layer in faults.items():
                claim("%s: a mistake (%s) is named at the first layer that differs" % (model, fault), found, folder,
                      model, fault, layer)
        claim("tolerances are the caller's", tolerance, folder)
        claim("the table of names is written, edited and given", names, folder)
        claim("the worst element is named, as NumPy finds it, with both sources", elements, folder)
        claim("arrays of any framework are either side", arrays, folder)
        claim("a reference with other names is paired by a table", other_names, folder)
        claim("what is missing or known in part is said", in_part, folder)
        claim("gradients of a program without optimizer.step are not known", without_step, folder)
        claim("what has no counterpart is a difference, what has no numbers is not called equal", unlike, folder)
    claims.end()


main()
