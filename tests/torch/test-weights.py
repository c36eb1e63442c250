#!/usr/bin/env python3
"""Weights of PyTorch's networks come into links here, by `tapedeck weights`: test-weights.py TAPEDECK MODEL.

MODEL is weights-model, which has the same networks. Runs with the Python that TD_TEST_TORCH names, else with
the first of the usual ones that has PyTorch; without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

python = claims.find_python()
if python != sys.executable:
    os.execv(python, [python, *sys.argv])

import numpy  # noqa: E402  # pylint: disable=wrong-import-position
import torch  # noqa: E402  # pylint: disable=wrong-import-position
from torch import nn  # noqa: E402  # pylint: disable=wrong-import-position

import onnx_nets  # noqa: E402  # pylint: disable=wrong-import-position

tapedeck, model = map(os.path.abspath, sys.argv[1:3])
NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.float64: "F64", torch.bool: "BOOL"}


def run(*args, status=0):
    result = subprocess.run([tapedeck, "weights", *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout[-3000:], result.stderr[-1000:])
    return result


def bytes_of(tensor):
    tensor = tensor.detach().contiguous()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()


def save_safetensors(path, state):
    """As the format is described, in the order of its own library: larger elements first, then by names."""
    keys = sorted(state, key=lambda key: (-state[key].element_size(), key))
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for key in keys:
        piece = bytes_of(state[key])
        header[key] = {"dtype": NAMES[state[key].dtype], "shape": list(state[key].shape),
                       "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Bench:
    """A network of both sides, with files of its weights and a folder for them."""

    def __init__(self, folder, name, net, x):
        torch.manual_seed(3)
        self.folder, self.name, self.net, self.x = folder, name, net.eval(), x
        with torch.no_grad():  # all of them in use, running statistics as well
            for key, value in net.state_dict().items():
                if "running" in key or (value.dim() == 1 and value.is_floating_point()):
                    value.copy_(torch.rand_like(value) * 0.5 + 0.5)
        self.ours, self.out, self.table = (f"{folder}/{name}-{what}" for what in ("ours.npz", "out.npz", "table"))
        subprocess.run([model, name, "init", self.ours], check=True)
        numpy.save(f"{folder}/{name}-x.npy", x.numpy())

    def save(self, state=None, safe=False):
        state = dict(state or self.net.state_dict())
        path = f"{self.folder}/{self.name}.{'safetensors' if safe else 'npz'}"
        if safe:
            save_safetensors(path, state)
        else:
            numpy.savez(path, **{key: value.detach().numpy() for key, value in state.items()})
        return path

    def write_table(self, *lines):
        with open(self.table, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return self.table

    def refused(self, path, *more):
        """Questions are open: returns their lines; nothing is written."""
        if os.path.exists(self.out):
            os.remove(self.out)
        result = run(path, "--into", self.ours, "-o", self.out, *more, status=1)
        assert not os.path.exists(self.out) and "nothing is written" in result.stderr, result.stderr
        return [line for line in result.stdout.splitlines() if line.startswith("?")]

    def equal(self, path, *more, net=None, into=()):
        """The same results here with the weights of the file; returns the table that was printed."""
        result = run(path, *(into or ("--into", self.ours)), "-o", self.out, *more)
        x, y = f"{self.folder}/{self.name}-x.npy", f"{self.folder}/{self.name}-y.npy"
        subprocess.run([model, self.name, "run", self.out, x, y], check=True)
        with torch.no_grad():
            expected = (net or self.net)(self.x).numpy()
        apart = float(numpy.abs(numpy.load(y).reshape(expected.shape) - expected).max())
        assert apart <= 1e-5 * max(1, float(numpy.abs(expected).max())), apart
        return result.stdout


def same_eps(net):
    assert all(m.eps == 1e-5 for m in net.modules() if isinstance(m, (nn.BatchNorm2d, nn.LayerNorm)))
    return net


def resnet(folder):
    """Blocks have other names, and what shortens one is a question that only the order would answer."""
    b = Bench(folder, "resnet", same_eps(onnx_nets.ResNet18()), torch.randn(2, 3, 32, 32))
    path = b.save()
    asked = b.refused(path)
    assert asked and all("down" in line and "by order and sizes alone" in line for line in asked), asked
    text = b.equal(path, "--by-order")
    assert "res3/bn1/avg_var" in text and "by numbers and sizes" in text, text
    # The names of safetensors are sorted: there no order decides.
    safe = b.save(safe=True)
    asked = b.refused(safe, "--by-order")
    assert asked and all("down" in line for line in asked), asked
    table = [f"res{2 * i + 1}/down{bn} layers.{i}.0.down.{int(bn != '')}" for i in (1, 2, 3) for bn in ("", "_bn")]
    b.equal(safe, "--table", b.write_table(*table))
    # A table of arrays, as it is printed: questions are answered by taking the mark away.
    printed = run(path, "--into", b.ours, "--dry-run", status=1).stdout
    error = run(path, "--into", b.ours, "-o", b.out, "--table", b.write_table(printed), status=2).stderr
    assert "still a question" in error, error
    b.equal(path, "--table", b.write_table(printed.replace("? ", "")))
    # The other way round it is another network: the numbers are looked at.
    swapped = printed.replace("? ", "").replace("layers.1.1.conv1.weight", "layers.1.1.conv2.weight")
    try:
        b.equal(path, "--table", b.write_table(swapped))
    except AssertionError:
        return
    raise RuntimeError("a wrong table makes no difference")


def gpt(folder):
    """Fused queries, keys and values; halves of either kind are widened; a mask is nobody's."""
    b = Bench(folder, "gpt", same_eps(onnx_nets.Gpt()), torch.randint(0, 50, (2, 9)))
    path = b.save()
    asked = b.refused(path)
    assert len(asked) == 2 and all("attention.mask" in line for line in asked), asked
    masks = b.write_table(*(f"- layers.{i}.attention.mask" for i in range(2)))
    b.equal(path, "--table", masks)
    state = b.net.state_dict()
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        narrow = {key: value.to(dtype) if value.is_floating_point() else value for key, value in state.items()}
        other = onnx_nets.Gpt().eval()
        other.load_state_dict({key: value.float() if "mask" not in key else value for key, value in narrow.items()})
        safe = b.save(narrow, safe=True)
        b.equal(safe, "--table", masks, net=other)
    # What all names have in front is no part of them.
    wrapped = {"module." + key: value for key, value in state.items() if "mask" not in key}
    assert "by name" in b.equal(b.save(wrapped))


def reference(b, path):
    """What each of PyTorch's layers returned, and the sizes of its parameters, by its own hooks."""
    arrays, hooks = {}, []
    for name, module in b.net.named_modules():
        for key, value in module.named_parameters(prefix=name, recurse=False):
            arrays[key] = value.detach().numpy()
        if name:
            hooks.append(module.register_forward_hook(
                lambda module, inputs, out, name=name: arrays.__setitem__(name + "/out", out.detach().numpy().copy())))
    with torch.no_grad():
        b.net(b.x)
    for hook in hooks:
        hook.remove()
    numpy.savez(path, **arrays)
    return path


def by_layer(b, path, status, *more):
    result = subprocess.run([tapedeck, "diff", f"{b.folder}/{b.name}.tdtape", path, "--by", "layer", "--json", *more],
                            capture_output=True, text=True)
    assert result.returncode == status, (result.returncode, result.stdout[-3000:], result.stderr)
    return json.loads(result.stdout)


def layers(folder):
    """C against PyTorch, layer by layer: all agree, and of a wrong epsilon the layer is named."""
    # Of positions ours looks up those of all sequences, and PyTorch's those of one.
    for name, net, x, other_sizes, wrong_one, ours in (
            ("resnet", onnx_nets.ResNet18(), torch.randn(2, 3, 32, 32), [], "layers.2.1.bn1", "net/res6/bn1"),
            ("gpt", onnx_nets.Gpt(), torch.randint(0, 50, (2, 9)), ["net/wpe"], "layers.1.ln2", "net/layers/1/ln2")):
        b = Bench(folder, name, same_eps(net), x)
        b.equal(b.save(without_masks(b.net)), "--by-order")
        subprocess.run([tapedeck, "run", "--quiet", "-f", "-o", f"{folder}/{name}.tdtape", "--level", "values", model,
                        name, "run", b.out, f"{folder}/{name}-x.npy", f"{folder}/{name}-y.npy"], check=True)
        path = f"{folder}/{name}-reference.npz"
        said = by_layer(b, reference(b, path), 1 if other_sizes else 0)
        assert [row["a"] for row in said["layers"] if row["output"]["verdict"] != "same"] == other_sizes, said["notes"]
        assert all(row["output"]["elements"] == "compared" for row in said["layers"] if row["a"] not in other_sizes)
        assert sum(len(row["parameters"]) > 0 for row in said["layers"]) == len(said["layers"]) == (41, 16)[name == "gpt"]
        b.net.get_submodule(wrong_one).eps = 1e-2
        said = by_layer(b, reference(b, path), 1)
        wrong_ones = [row["a"] for row in said["layers"] if row["output"]["verdict"] == "differs"]
        assert wrong_ones[len(other_sizes)] == ours, wrong_ones


def without_masks(net):
    return {key: value for key, value in net.state_dict().items() if "mask" not in key}


def three(folder):
    """One layer there is three here, in whatever order ours were made; and three are one."""
    b = Bench(folder, "gpt-three", onnx_nets.Gpt(), torch.randint(0, 50, (2, 9)))
    state = without_masks(b.net)
    text = b.equal(b.save(state, safe=True))
    assert "rows=64:96" in text and "of three in one" in text, text
    # As nn.MultiheadAttention calls it, which has no layer for it.
    c = Bench(folder, "gpt", b.net, b.x)
    packed = {key.replace("qkv.", "in_proj_"): value for key, value in state.items()}
    assert "attention.in_proj_weight rows=32:64" in b.equal(b.save(packed)), "in three"
    assert "attention.in_proj_bias" in c.equal(c.save(packed, safe=True)), "in one"
    apart = {}
    for key, value in state.items():
        if "qkv" in key:
            for piece, name in zip(value.split(32), ("q_proj", "k_proj", "v_proj")):
                apart[key.replace("qkv", name)] = piece
        else:
            apart[key] = value
    text = c.equal(c.save(apart, safe=True))
    assert "q_proj.weight,layers.0.attention.k_proj.weight" in text, text
    # Both in three: by their letters, though ours are made in another order.
    text = b.equal(b.save(apart, safe=True))
    assert "layers/1/attention/key/W" in text and "layers.1.attention.k_proj.weight" in text, text


def transposed(folder):
    """Weights the other way round are seen by their shapes; where others are, a square is a question."""
    b = Bench(folder, "gpt-three", onnx_nets.Gpt(), torch.randint(0, 50, (2, 9)))
    state = without_masks(b.net)
    turned = {key: value.t().contiguous() if key.startswith("layers") and value.dim() == 2 else value
              for key, value in state.items()}
    path = b.save(turned)
    asked = b.refused(path)
    assert len(asked) == 5 and sum("proj/W" in line for line in asked) == 2 \
        and sum("wpe/W" in line for line in asked) == 1, asked
    # The few that are not are a question as well: a layer may be another one's.
    assert sum("others need to be transposed, and it does not" in line for line in asked) == 2, asked
    text = b.equal(path, "--table", b.write_table(
        "wte wte", "head head", "wpe/W wpe.weight", *(f"layers/{i}/attention/proj/W layers.{i}.attention.proj.weight transpose"
                              for i in range(2))))
    assert "transpose rows=32:64" in text, text


def ask(folder, ours, theirs, *more):
    """The lines of what is asked of arrays of these shapes, and all of the table."""
    files = {}
    for side, shapes in (("ours", ours), ("theirs", theirs)):
        files[side] = f"{folder}/shapes-{side}.npz"
        numpy.savez(files[side], **{key: numpy.arange(numpy.prod(shape), dtype="f").reshape(shape) + len(key)
                                    for key, shape in shapes.items()})
    result = subprocess.run([tapedeck, "weights", files["theirs"], "--into", files["ours"], "--dry-run", *more],
                            capture_output=True, text=True)
    asked = [line for line in result.stdout.splitlines() if line.startswith("?")]
    assert result.returncode == (1 if asked else 0), (result.returncode, result.stderr)
    return asked, result.stdout


def mixed(folder):
    """Some layers transposed and others not is no pairing to be trusted, by numbers or by names."""
    ours = {"l1/W": (16, 8), "l2/W": (16, 8), "l3/W": (8, 16)}
    asked, text = ask(folder, ours, {"w1.weight": (16, 8), "w2.weight": (8, 16), "w3.weight": (16, 8)})
    assert len(asked) == 3 and all("paired wrongly" in line for line in asked), text
    for turned in (False, True):  # one way round is one program's way
        theirs = {key.replace("l", "w").replace("/W", ".weight"): shape[::-1] if turned else shape
                  for key, shape in ours.items()}
        asked, text = ask(folder, ours, theirs)
        assert not asked and text.count("transpose") == 3 * turned, text
    asked, text = ask(folder, {"fc1/W": (8, 4), "fc2/W": (5, 8), "fc3/W": (3, 5)},
                      {"fc1.weight": (4, 8), "fc2.weight": (5, 8), "fc3.weight": (3, 5)})
    assert len(asked) == 1 and "fc1/W" in asked[0] and "others do not" in asked[0], text


def fused(folder):
    """Rows of queries, keys and values lie as their name says, or it is a question."""
    ours = {f"attn/{name}/W": (8, 8) for name in ("query", "key", "value")}
    for name, known in (("qkv", True), ("c_attn", True), ("query_key_value", False), ("dense", False)):
        asked, text = ask(folder, ours, {f"attn.{name}.weight": (24, 8)})
        assert len(asked) == (0 if known else 3) and "rows=8:16" in text, text
        assert known or all("head by head" in line for line in asked), text


def blocks(folder):
    """Blocks of the same content are each other, whatever they are called; else a table may say so."""
    def side(first, blocks, weight, extra):
        shapes = {f"{first}{weight}": (8, 3, 3, 3)}
        for name, wide in blocks:
            for k in (1, 2):
                shapes[f"{name}conv{k}{weight}"] = (wide, 8, 3, 3)
                shapes[f"{name}bn{k}{'/gamma' if weight == '/W' else '.weight'}"] = (wide,)
            if name in extra:
                shapes[extra[name]] = (wide, 8, 1, 1)
        return shapes

    ours = side("stem", (("a0/", 8), ("a1/", 8), ("b0/", 16), ("b1/", 16)), "/W", {"b0/": "b0/short/W"})
    theirs = side("conv1", (("layer1.0.", 8), ("layer1.1.", 8), ("layer2.0.", 16), ("layer2.1.", 16)), ".weight",
                  {"layer2.0.": "layer2.0.downsample.0.weight"})
    asked, text = ask(folder, ours, theirs)
    assert not asked and text.count("by name, in blocks") == 16, text
    for line in text.splitlines():
        words = line.split()
        assert words[0].split("/")[0] == {"conv1": "stem", "layer1": "a", "layer2": "b"}[words[1].split(".")[0]] \
            + (words[1].split(".")[1] if "layer" in words[1] else ""), line
        assert "conv" not in words[0] or words[0].split("/")[1] == words[1].split(".")[2], line
    # Two stages of one size: only a table says which is which.
    ours, theirs = ({key: (8,) + shape[1:] for key, shape in side.items()} for side in (ours, theirs))
    asked, text = ask(folder, ours, theirs)
    assert asked, text
    table = f"{folder}/blocks.table"
    for lines, count in (("a0 layer2.0\na1 layer2.1\nb0 layer1.0\nb1 layer1.1", 0), ("a0 -\n- layer2.0", 1)):
        with open(table, "w", encoding="utf-8") as file:
            file.write(lines)
        asked, text = ask(folder, ours, theirs, "--table", table)
        if count == 0:
            assert "a1/bn2/gamma" in text and [line.split()[1] for line in text.splitlines()
                                               if "a1/bn2/gamma" in line] == ["layer2.1.bn2.weight"], text
        else:
            assert not any("a0/" in line for line in asked) and text.count("by the table") == 9, text


def tied(folder):
    """What there is twice there and once here is said, and only while it is the same."""
    net = onnx_nets.Gpt()
    net.head.weight = net.wte.weight
    b = Bench(folder, "gpt-tied", net, torch.randint(0, 50, (2, 9)))
    state = without_masks(net)
    text = b.equal(b.save(state))
    assert "head.weight" in text and "tied" in text, text
    state["head.weight"] = state["head.weight"] + 1
    asked = b.refused(b.save(state))
    assert len(asked) == 1 and "head.weight" in asked[0], asked
    for key in ("wte.weight", "head.weight"):  # what says nothing ties nothing
        state[key] = torch.zeros_like(state[key])
    assert len(b.refused(b.save(state))) == 1


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.fc = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), 5)

    def forward(self, x):
        return self.fc(self.layer(x)[0][:, -1])


def recurrent(folder, name, layer):
    b = Bench(folder, name, Recurrent(layer), torch.randn(3, 7, 12))
    for safe in (False, True):
        text = b.equal(b.save(safe=safe))
    assert ("gates" in text and "layer.bias_ih_l0+layer.bias_hh_l0" in text) == (name == "lstm"), text


def lstm(folder):
    """Gates in another order, and one bias for two, or none at all."""
    recurrent(folder, "lstm", nn.LSTM(12, 16, batch_first=True))
    b = Bench(folder, "lstm", Recurrent(nn.LSTM(12, 16, batch_first=True, bias=False)), torch.randn(3, 7, 12))
    assert "zeros" in b.equal(b.save())


def n_step(folder):
    """Layers and directions, an array for each gate here."""
    recurrent(folder, "bilstm", nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True))
    recurrent(folder, "gru", nn.GRU(12, 16, num_layers=2, batch_first=True))


class Deconvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.mix = nn.ConvTranspose2d(3, 6, 2, stride=2), nn.Conv2d(6, 4, 1)

    def forward(self, x):
        return self.mix(torch.relu(self.up(x)).mean((2, 3), keepdim=True)).flatten(1)


def deconvolution(folder):
    """Kernels lie as they do there; one of 1 x 1 is a matrix."""
    b = Bench(folder, "deconvolution", Deconvolution(), torch.randn(2, 3, 5, 5))
    assert "reshape" in b.equal(b.save())


def tape(folder):
    """A recording has names and shapes, too."""
    b = Bench(folder, "lstm", Recurrent(nn.LSTM(12, 16, batch_first=True)), torch.randn(3, 7, 12))
    recorded = f"{folder}/lstm.tdtape"
    subprocess.run([tapedeck, "run", "--quiet", "-o", recorded, model, "lstm", "run", b.ours, f"{folder}/lstm-x.npy",
                    f"{folder}/lstm-y.npy"], check=True, capture_output=True)
    path = b.save()
    b.equal(path, into=("--for", recorded))
    # Layers as a port check writes them, with the models' names in front.
    table = b.write_table("net/layer Recurrent/layer", "net/fc Recurrent/fc # and a remark")
    assert b.equal(path, "--table", table).count("by the table of layers") == 5


def wrong(folder):
    """What is wrong is one line, and no file."""
    b = Bench(folder, "lstm", Recurrent(nn.LSTM(12, 16, batch_first=True)), torch.randn(3, 7, 12))
    path = b.save()
    state = b.net.state_dict()
    if os.path.exists(b.out):
        os.remove(b.out)
    for line, words in (("fc/W", "got 1 word\n"), ("fc/W fc.nothing", "FROM has no array fc.nothing"),
                        ("nothing fc.weight", "the model has no array, layer or block nothing"),
                        ("fc/W fc.weight turn", "turn is no step"), ("fc/W layer.weight_ih_l0", "(5, 16) expected"),
                        ("fc/W fc.weight rows=3:2", "rows=FIRST:END"),
                        ("fc/W fc.weight rows=0:9", "has no rows 0 to 9"),
                        ("fc/W fc.weight\nfc/W fc.weight", "line 2 of the table: fc/W is asked twice for"),
                        ("fc fc\nfc fc", "asked twice"), ("fc layer", "different kinds"),
                        ("fc/W fc.weight,fc.bias", "do not fit together"), ("fc/b fc.bias transpose", "two axes")):
        error = run(path, "--into", b.ours, "-o", b.out, "--table", b.write_table(line), status=2).stderr
        assert words in error and error.count("\n") == 1, (line, error)
        assert not os.path.exists(b.out)
    smaller = dict(state, **{"fc.weight": state["fc.weight"][:, :8]})
    assert "(5, 16) expected, got (5, 8)" in b.refused(b.save(smaller))[0]
    missing = {key: value for key, value in state.items() if key != "fc.bias"}
    assert "zeros" in b.refused(b.save(missing))[0]
    huge = dict(state, **{"fc.weight": state["fc.weight"].double() * 1e300})
    error = run(b.save(huge), "--into", b.ours, "-o", b.out, status=2).stderr
    assert "of fc/W is " in error and "e+2" in error and ", which f32 does not hold" in error, error
    assert not os.path.exists(b.out)
    # A type that is not known here is not a shape that is waited for; nor is what is none in an npz.
    floats8 = f"{folder}/floats8.safetensors"
    text = json.dumps({"fc.weight": {"dtype": "F8_E4M3", "shape": [5, 16], "data_offsets": [0, 80]}}).encode()
    with open(floats8, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(80))
    asked = b.refused(floats8)
    assert "of unread; fc.weight cannot be read: its element type has no counterpart here" in asked[-2], asked
    broken = f"{folder}/broken.npz"
    with zipfile.ZipFile(broken, "w") as z:
        z.writestr("fc.weight.npy", b"no npy at all")
        z.writestr("fc.bias.npy", b"")
    asked = b.refused(broken)
    assert sum("cannot be read: " in line for line in asked) == 2, asked
    # What is in no layer has a name in what is said of it.
    asked, text = ask(folder, {"pos/W": (16, 16)}, {"pos_embed": (1, 16, 16)})
    assert "the outermost layer has nothing of that name" in asked[0], text
    # A PyTorch pickle is a zip file without arrays, or no zip file at all.
    for zipped in (True, False):
        pickle = f"{folder}/state{zipped}.pt"
        torch.save(state, pickle, _use_new_zipfile_serialization=zipped)
        error = run(pickle, "--into", b.ours, "-o", b.out, status=2).stderr
        assert "a PyTorch pickle: save the state_dict as safetensors or npz" in error, error
    for bad in (path[:-4] + ".cut", "/nowhere", "/dev/null"):
        if bad.endswith("cut"):
            with open(path, "rb") as whole, open(bad, "wb") as cut:
                cut.write(whole.read()[:-100])
        error = run(bad, "--into", b.ours, "-o", b.out, status=2).stderr
        assert error.startswith("tapedeck: ") and error.count("\n") == 1, error
    for args in ([path], [path, "--into", b.ours], [path, "--into", b.ours, "--for", path, "-o", b.out],
                 [path, "--into", b.ours, "-o", b.out, "--dry-run"], ["--into", b.ours, "-o", b.out],
                 [path, path, "--into", b.ours, "-o", b.out], [path, "--into", b.ours, "-o", path]):
        assert run(*args, status=2).stderr.startswith("tapedeck: "), args


def names(folder):
    """A name with anything in it is shown, and its line of the table is read again."""
    b = Bench(folder, "deconvolution", Deconvolution(), torch.randn(2, 3, 5, 5))
    odd = {key.replace("mix", "m x#+,%\x1b[31m?"): value for key, value in b.net.state_dict().items()}
    path = b.save(odd, safe=True)
    text = b.equal(path)
    assert "\x1b" not in text and "m%20x%23%2B%2C%25%1B[31m?.weight" in text, text
    b.equal(path, "--table", b.write_table(text))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (resnet, gpt, layers, three, transposed, mixed, fused, blocks, tied, lstm, n_step, deconvolution, tape, wrong,
                      names):
            claim(check.__name__ + (": " + check.__doc__.split("\n")[0] if check.__doc__ else ""), check, folder)
    claims.end()


if __name__ == "__main__":
    main()
