#!/usr/bin/env python3
"""onnx-models.py TAPEDECK: the real ONNX models of shared/data, by `tapedeck eval MODEL.onnx`.

Each is called with the inputs that lie beside it and has to give the outputs that do.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from numpy_here import np  # noqa: E402
from checks import Report  # noqa: E402
from onnx_files import tensor  # noqa: E402


def inputs_of(folder, data):
    """Those of the pair, or what the readme of the folder says of the light models."""
    if folder.name.startswith("light_"):
        return [(np.arange(150528) / 150528).astype(np.float32).reshape(1, 3, 224, 224)]
    return [tensor(path.read_bytes())[1] for path in sorted(data.glob("input_*.pb"))]


def evaluate(program, model, inputs):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "eval", str(model), "-o", folder + "/out"]
        for i, array in enumerate(inputs):
            np.save(f"{folder}/{i}.npy", array)
            command += ["--in", f"{folder}/{i}.npy"]
        child = subprocess.run(command, capture_output=True, text=True, timeout=600)
        out = sorted(pathlib.Path(folder).glob("out/out*.npy"), key=lambda p: int(p.stem[3:]))
        return child, [np.load(path) for path in out]


def problems_of(child, got, want):
    if child.returncode != 0:
        return [f"exit {child.returncode}: {child.stderr}"]
    if len(got) != len(want):
        return [f"{len(got)} outputs, {len(want)} expected"]
    return [f"output {k}: {a.shape} {a.dtype}, differs by {np.abs(a - b).max()}"
            for k, (a, b) in enumerate(zip(got, want))
            if a.shape != b.shape or a.dtype != b.dtype
            or np.abs(a - b).max() > 1e-5 * max(1, np.abs(b).max())]


def main():
    shared = pathlib.Path(os.environ.get("TAPEDECK_SHARED", ROOT.parent / "shared"))
    models = sorted((shared / "data/onnx").rglob("model.onnx"))
    if not models:
        print("shared/data/onnx is not there, skipped")
        sys.exit(77)
    report = Report()
    for model in models:
        pairs = sorted(model.parent.glob("test_data_set_*"))
        for data in pairs:
            child, got = evaluate(sys.argv[1], model, inputs_of(model.parent, data))
            want = [tensor(path.read_bytes())[1] for path in sorted(data.glob("output_*.pb"))]
            report.claim(f"{model.parent.name}, {data.name}: the outputs that lie beside it",
                         problems_of(child, got, want))
        if not pairs:
            print(f"# {model.parent.name}: nothing lies beside it; onnx-operators.py has onnxruntime")
    report.end()


if __name__ == "__main__":
    main()
