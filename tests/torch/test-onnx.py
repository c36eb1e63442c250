#!/usr/bin/env python3
"""test-onnx.py TAPEDECK: networks that PyTorch's exporter writes, by `tapedeck eval MODEL.onnx`.

Outputs and the gradients of inputs and of each parameter have to be PyTorch's own within 1e-5 of the largest of
an array.  Arrays go by files that are written and read here, so that no NumPy is needed.  PyTorch is that of
python3, of Debian, or of the Python that TD_TEST_TORCH names.
SPDX-License-Identifier: MIT
"""
import io
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

try:
    import torch
except ImportError:
    for other in (os.environ.get("TD_TEST_TORCH", ""), "/usr/bin/python3"):
        if other and os.path.exists(other) and os.path.realpath(other) != os.path.realpath(sys.executable) \
                and os.environ.get("TD_TEST_AGAIN") is None:
            os.environ["TD_TEST_AGAIN"] = "1"
            os.execv(other, [other, *sys.argv])
    print("1..0 # SKIP PyTorch is not there")
    sys.exit(0)

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from checks import Report  # noqa: E402
from onnx_nets import nets  # noqa: E402

warnings.filterwarnings("ignore")
KINDS = {torch.float32: "<f4", torch.int64: "<i8"}
ITEMS = {"<f4": "f", "<i8": "q"}


def write_npy(path, tensor):
    tensor = tensor.detach().contiguous()
    shape = "(" + "".join(f"{n}," for n in tensor.shape) + ")"
    head = f"{{'descr': '{KINDS[tensor.dtype]}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    items = tensor.flatten().tolist()
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                                   + struct.pack(f"<{len(items)}{ITEMS[KINDS[tensor.dtype]]}", *items))


def read_npy(data):
    size = struct.unpack("<H", data[8:10])[0]
    head = data[10:10 + size].decode()
    kind = re.search("'descr': '([^']*)'", head).group(1)
    shape = [int(n) for n in re.findall(r"\d+", re.search(r"'shape': \(([^)]*)\)", head).group(1))]
    items = struct.unpack(f"<{(len(data) - 10 - size) // struct.calcsize(ITEMS[kind])}{ITEMS[kind]}", data[10 + size:])
    return torch.tensor(items, dtype={k: t for t, k in KINDS.items()}[kind]).reshape(shape)


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        return {name[:-4]: read_npy(archive.read(name)) for name in archive.namelist()}


def export(net, inputs, path, opset, named):
    """named: every parameter under its own name, nothing folded into another."""
    options = {"opset_version": opset, "input_names": [f"x{i}" for i in range(len(inputs))], "output_names": ["y"]}
    if named:
        options.update(do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    if "dynamo" in torch.onnx.export.__code__.co_varnames:
        options["dynamo"] = False
        # It looks for functions of its own with the onnx package, which these models have none of.
        torch.onnx._internal.onnx_proto_utils._add_onnxscript_fn = lambda model, opsets: model
    said, sys.stdout = sys.stdout, io.StringIO()
    try:
        torch.onnx.export(net, inputs, path, **options)
    finally:
        sys.stdout = said


def evaluate(program, model, inputs, gy, folder):
    command = [program, "eval", model, "-o", f"{folder}/out", "--gy", f"{folder}/gy.npy"]
    write_npy(f"{folder}/gy.npy", gy)
    for i, x in enumerate(inputs):
        write_npy(f"{folder}/{i}.npy", x)
        command += ["--in", f"{folder}/{i}.npy"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def apart(what, got, want, most=1e-5):
    if got.shape != want.shape:
        return [f"{what}: {tuple(got.shape)}, {tuple(want.shape)} expected"]
    worst = float((got - want).abs().max() / max(1e-3, float(want.abs().max())))
    return [] if worst <= most else [f"{what}: differs by {worst:.2g} of its largest"]


def start(net):
    """Numbers that no two arrays share: equal ones are written once."""
    for name, tensor in list(net.named_parameters()) + list(net.named_buffers()):
        if name.endswith("running_var"):
            tensor.data.uniform_(0.5, 1.5)
        elif tensor.dtype == torch.float32 and tensor.dim() == 1:
            tensor.data.uniform_(-0.3, 0.3).add_(1.0 if "weight" in name and ("bn" in name or "ln" in name) else 0)
    return net.eval()


def compare(program, net, inputs, opset, named, folder):
    model = f"{folder}/net.onnx"
    leaves = [x.clone().requires_grad_(x.dtype == torch.float32) for x in inputs]
    export(net, inputs, model, opset, named)
    y = net(*leaves)
    gy = torch.randn_like(y)
    net.zero_grad()
    y.backward(gy)
    child = evaluate(program, model, inputs, gy, folder)
    if child.returncode != 0:
        return [child.stderr.strip()], 0
    out = pathlib.Path(folder) / "out"
    problems = apart("y", read_npy((out / "out0.npy").read_bytes()), y.detach())
    for i, leaf in enumerate(leaves):
        if leaf.grad is not None:
            problems += apart(f"gradient of x{i}", read_npy((out / f"gin{i}.npy").read_bytes()), leaf.grad, 2e-5)
    got, n = read_npz(out / "grads.npz"), 0
    for name, p in net.named_parameters():
        if name in got:
            n += 1
            problems += apart(f"gradient of {name}", got[name], p.grad, 2e-5)
    if named and n < 2:
        problems.append(f"no parameter has its name: {sorted(got)}")
    return problems, n


def main():
    report = Report()
    for opset in (9, 11, 13, 17):
        for name, net, inputs in nets():
            torch.manual_seed(opset)
            start(net)
            for named in (True, False):
                if opset == 9 and name == "unet":
                    continue  # its interpolation is not what the model has
                with tempfile.TemporaryDirectory() as folder:
                    problems, n = compare(sys.argv[1], net, inputs, opset, named, folder)
                how = "by name" if named else "as usual"
                report.claim(f"{name}, opset {opset}, {how}: outputs and gradients ({n} parameters) are PyTorch's",
                             problems)
    report.end()


if __name__ == "__main__":
    main()
