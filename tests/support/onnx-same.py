#!/usr/bin/env python3
"""onnx-same.py PATH [draws]: PATH.onnx passes onnx's checker, and onnxruntime and onnx's own
reference make PATH.out0.npy ... of PATH.in0.npy ..., within 1e-5; with "draws" numbers that are
finite, for the model draws some itself.  Prints how many numbers each compared.
SPDX-License-Identifier: MIT
"""
import glob
import sys

import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator


def load(path, what, k):
    return numpy.load(f"{path}.{what}{k}.npy")


def compare(name, got, want, draws):
    assert got.shape == want.shape and got.dtype == want.dtype, (name, got.shape, got.dtype, want.shape, want.dtype)
    if draws:
        assert numpy.isfinite(got).all(), name
    elif want.size:
        apart = numpy.abs(got - want) - 1e-5 * (1 + numpy.abs(want))
        assert apart.max() <= 0, (name, got, want)
    return want.size


def main():
    path, draws = sys.argv[1], sys.argv[2:] == ["draws"]
    onnx.checker.check_model(path + ".onnx", full_check=True)
    model = onnx.load(path + ".onnx")
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    inputs = {i.name: load(path, "in", k) for k, i in enumerate(model.graph.input)}
    n_out = len(glob.glob(glob.escape(path) + ".out*.npy"))
    assert n_out > 0
    for name, run in (("onnxruntime", onnxruntime.InferenceSession(path + ".onnx", quiet, providers=["CPUExecutionProvider"])),
                      ("reference", ReferenceEvaluator(model))):
        got = run.run(None, inputs)
        assert len(got) == n_out, (name, len(got), n_out)
        print(name, sum(compare(name, g, load(path, "out", k), draws) for k, g in enumerate(got)))


if __name__ == "__main__":
    main()
