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


def record(folder, model, side, fault=None):
    tape = os.path.join(folder, "-".join(filter(None, (model, side, fault))) + ".tdtape")
    if not os.path.exists(tape):
        run(python, "port.py", "--model", model, "--side", side, "--tape", tape, *(["--fault", fault] if fault else []))
    return tape


def compared(folder, model, fault=None, *more, status):
    tapes = record(folder, model, "original"), record(folder, model, "port", fault)
    return json.loads(run(tapedeck, "diff", *tapes, "--by", "layer", "--json", *more, status=status).stdout)


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
    """What no gradient reaches in the port, though the results are right."""
    said = compared(folder, "gpt", "frozen", status=1)
    assert said["first_forward"] is None, said["first_forward"]
    assert said["first_backward"] == "Gpt/h/3/mlp/2", said["first_backward"]
    tapes = record(folder, "gpt", "original"), record(folder, "gpt", "port", "frozen")
    text = run(tapedeck, "diff", *tapes, "--by", "layer", status=1).stdout
    assert "only A has a gradient" in text, text


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
    assert "Gpt/h/2/attn/out Port/net/h/2/attn/out" in lines, lines
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
        claim("what has no counterpart is a difference, what has no numbers is not called equal", unlike, folder)
    claims.end()


main()
