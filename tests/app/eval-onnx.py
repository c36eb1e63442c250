#!/usr/bin/env python3
"""eval-onnx.py TAPEDECK: single operators of ONNX's own test data, by `tapedeck eval`.

Each folder of shared/data/onnx/pytorch_converted has a model of one node with its weights, and an
input with its output; the files are read field by field.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from numpy_here import np  # noqa: E402
from checks import Report  # noqa: E402
from onnx_files import fields, numbers, tensor  # noqa: E402


def attribute(data):
    name, value, ints = "", None, []
    for field, item in fields(data):
        if field == 1:
            name = item.decode()
        elif field == 2:
            value = struct.unpack("<f", item)[0]
        elif field == 3:
            value = item
        elif field == 8:
            ints += numbers(item)
    return name, ints or value


def model(path):
    """Operator, names of its inputs, attributes, weights."""
    (graph,) = [value for field, value in fields(path.read_bytes()) if field == 7]
    weights = dict(tensor(value) for field, value in fields(graph) if field == 5)
    (node,) = [value for field, value in fields(graph) if field == 1]
    node = list(fields(node))
    return ([value.decode() for field, value in node if field == 4][0],
            [value.decode() for field, value in node if field == 1],
            dict(attribute(value) for field, value in node if field == 5), weights)


# --- ONNX's operators as Chainer's functions ---

def commas(values):
    return ",".join(str(value) for value in values)


def windows(attrs):
    """Chainer pads both sides alike."""
    half = len(attrs["pads"]) // 2
    assert attrs["pads"][:half] == attrs["pads"][half:]
    return {"stride": commas(attrs["strides"]), "pad": commas(attrs["pads"][:half])}


def call(op, attrs, x, y):
    """Function, attributes and the order of the inputs."""
    if op == "Conv":
        return ("convolution_nd" if x.ndim != 4 else "convolution_2d",
                {**windows(attrs), "dilate": commas(attrs["dilations"]), "groups": attrs["group"]})
    if op == "ConvTranspose":
        return "deconvolution_2d", {**windows(attrs), "outsize": commas(y.shape[2:])}
    if op == "AveragePool":
        return "average_pooling_2d", {**windows(attrs), "ksize": commas(attrs["kernel_shape"])}
    if op == "BatchNormalization":
        return "batch_normalization", {"eps": attrs["epsilon"]}
    if op == "Elu":
        return "elu", {"alpha": attrs["alpha"]}
    if op == "LogSoftmax":
        return "log_softmax", {"axis": attrs["axis"]}
    return {"Gather": "embed_id", "Gemm": "linear", "PRelu": "prelu"}.get(op), {}


def evaluate(program, name, attrs, inputs):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "eval", name, "-o", folder + "/out"]
        for key, value in attrs.items():
            command += ["--attr", f"{key}={value}"]
        for i, array in enumerate(inputs):
            np.save(f"{folder}/{i}.npy", array)
            command += ["--in", f"{folder}/{i}.npy"]
        child = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return (np.load(folder + "/out/out0.npy") if child.returncode == 0 else None), child.stderr


def main():
    shared = pathlib.Path(os.environ.get("TAPEDECK_SHARED", ROOT.parent / "shared"))
    folders = sorted((shared / "data/onnx/pytorch_converted").glob("test_*"))
    if not folders:
        print("shared/data/onnx is not there, skipped")
        sys.exit(77)
    report = Report()
    for folder in folders:
        op, names, attrs, weights = model(folder / "model.onnx")
        x = tensor((folder / "test_data_set_0/input_0.pb").read_bytes())[1]
        y = tensor((folder / "test_data_set_0/output_0.pb").read_bytes())[1]
        if op == "MaxPool" and set(attrs["dilations"]) != {1}:
            print(f"# {folder.name}: Chainer's max pooling has no dilation")
            continue
        name, attributes = call(op, attrs, x, y)
        inputs = [weights[n] if n in weights else x for n in names]
        if op == "Gather":
            inputs = inputs[::-1]
        got, error = evaluate(sys.argv[1], name, attributes, inputs)
        problems = [error] if got is None else [] if got.shape == y.shape and np.allclose(
            got, y, rtol=1e-3, atol=1e-6) else [f"{got.shape}, differs by {np.abs(got - y).max()}"]
        report.claim(f"{folder.name}: {name} gives the output of ONNX", problems)
    report.end()


if __name__ == "__main__":
    main()
