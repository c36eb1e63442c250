#!/usr/bin/env python3
"""The recorder's extension module says what the recorder says without it: test-extension.py TAPEDECK
PRODUCER-LIBRARY PACKAGE-FOLDER EXTENSION-MODULE.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "life", "torch")
tapedeck, producer, package, extension = map(os.path.abspath, sys.argv[1:5])
WAYS = {"ctypes": "", "extension": extension}
CHANGING = ("address", "start_ns", "end_ns", "ns")  # from run to run
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PRODUCER=producer, PYTHONHASHSEED="0")


def run(*args, way="extension", status=0, cwd=MODELS, **more):
    result = subprocess.run(args, capture_output=True, text=True, cwd=cwd,
                            env={**environment, "TAPEDECK_EXTENSION": WAYS[way], **more})
    assert result.returncode == status, (args, result.returncode, result.stderr[-2000:])
    return result


# ---------------------------------------------------------------------------- the same tape

def rows(tape):
    run(tapedeck, "check", tape)
    for line in run(tapedeck, "cat", "--json", tape).stdout.splitlines():
        row = json.loads(line)
        yield {key: value for key, value in row.items() if key not in CHANGING}


def same(tapes):
    one, other = (list(rows(tape)) for tape in tapes)
    assert len(one) > 20, "only %d records" % len(one)
    for i, (a, b) in enumerate(zip(one, other)):
        assert a == b, "record %d: by ctypes %s, by the extension %s" % (
            i, *({key: row.get(key) for key in set(a) | set(b) if a.get(key) != b.get(key)} for row in (a, b)))
    assert len(one) == len(other), "%d records by ctypes, %d by the extension" % (len(one), len(other))
    # all that is stored but times and addresses is as long, too
    sizes = [os.path.getsize(tape) for tape in tapes]
    assert sizes[0] == sizes[1], "bytes: %s" % sizes


def programs(program, folder):
    for level in ("graph", "stats"):
        tapes = [os.path.join(folder, "%s-%s.tdtape" % (program, way)) for way in WAYS]
        said = [run(python, program + ".py", "--mode", "record", "--tape", tape, "--level", level, way=way).stdout
                for way, tape in zip(WAYS, tapes)]
        assert said[0] == said[1], "another result at level " + level
        same(tapes)


HEAD = """
import torch, sys, os, tapedeck
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.1), torch.nn.Linear(3, 3))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
def step(x=torch.ones(1, 2)):
    opt.zero_grad()
    net(x).pow(2).sum().backward()
    opt.step()
step()
"""
SCRIPTS = {
    "tensors of all kinds": """
a = torch.ones(3, dtype=torch.complex64); b = (a * 2).abs()
c = torch.eye(3).to_sparse(); d = torch.sparse.mm(c, torch.ones(3, 2))
e = torch.ones((1,) * 6 + (2,) * 4) + 1; e2 = e.transpose(0, 9) * 2
f = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()
class Sub(torch.Tensor): pass
g = torch.ones(2).as_subclass(Sub) + 1
h = torch.empty(0) + torch.empty(0); h2 = torch.empty(0, 3).t() + 1
i = torch.zeros(4, device='meta') * 2
j = torch.ones(2, dtype=torch.int8) + torch.ones(2, dtype=torch.int16)
k = torch.ones(4, 5)[1:3, ::2].transpose(0, 1) + 1; l = torch.ones(3, 1).expand(3, 4) * 2
m, n = torch.max(torch.rand(3, 3), 0); o = torch.rand(4, 4).unbind(0); p = torch.split(torch.rand(6), 2)
q = torch.tensor(float('nan')) + float('inf'); r = torch.bfloat16 and torch.ones(2).bfloat16() * 2
with torch.inference_mode(): s = net(torch.ones(1, 2))
with torch.no_grad(): t = net(torch.ones(1, 2))
step()
""",
    "writes in place": """
a = torch.zeros(4); b = a.view(2, 2); b.add_(1); a.mul_(2); b[0].fill_(3)
torch.add(a, a, out=a); torch.add(a, 1, out=torch.empty(4)); a.resize_(40); a.zero_(); a.t_()
torch._foreach_add_([a, b], 1); torch._foreach_mul([a, b], 2.0)
with torch.no_grad():
    net[0].weight.copy_(torch.ones(3, 2)); net[2].bias.data = torch.ones(3)
x = torch.ones(5, requires_grad=True); y = x * 1; y.add_(1).sum().backward()
step()
""",
    "gradients that the program changes": """
for i in range(3):
    opt.zero_grad(); net(torch.ones(4, 2)).sum().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    for p in net.parameters(): p.grad.mul_(0.5); p.grad.data.add_(1)
    opt.step()
""",
    "arguments of all kinds": """
torch.zeros(2, dtype=torch.float64); torch.zeros((2, 3), device='cpu'); torch.full((2,), 1e-3)
torch.arange(0, 10, 2.5); torch.rand(3).sum(dim=[0], keepdim=True); torch.rand(2, 2).norm(p=float('inf'))
torch.einsum('ij,jk->ik', torch.rand(2, 2), torch.rand(2, 2)); torch.cat([torch.rand(1), torch.rand(2)])
torch.nn.functional.pad(torch.rand(2), [1, 1], value=2.0); torch.rand(3)[[0, 2]]; torch.rand(3)[None, 1:]
torch.nn.functional.conv2d(torch.rand(1, 1, 4, 4), torch.rand(1, 1, 2, 2), stride=(2, 1)); True and torch.eye(2)
step()
""",
    "operators that fail": """
a, b = torch.ones(2, 3), torch.ones(2)  # kept: a traceback holds what only the operator was given, in Python alone
for bad in (lambda: a @ a, lambda: b.view(3)):
    try: bad()
    except RuntimeError: pass
    else: sys.exit(1)
step()
""",
    "layers, hooks, second derivatives, other threads": """
import threading
net.register_forward_hook(lambda m, i, o: o * 2)
x = torch.ones(2, requires_grad=True); y, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
y.sum().backward()
from torch.utils.checkpoint import checkpoint
checkpoint(net, torch.ones(1, 2, requires_grad=True)).sum().backward()
t = threading.Thread(target=lambda: torch.ones(3) + 1); t.start(); t.join()
other = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    other.zero_grad(); y = net(torch.ones(1, 2)).pow(2).sum(); y.backward(); return y
other.step(closure)
net2 = torch.nn.RNN(2, 2); net2(torch.ones(3, 1, 2))[0].sum().backward()
for i in range(40): step(torch.ones(i % 3 + 1, 2))
tapedeck.report('loss', torch.ones(())); tapedeck.iteration(); step()
""",
    "work before the first layer": """
import torch
x = [torch.rand(2) for i in range(50)]; x = x[:3]; y = x[0] + x[1]; del x
""",
}


def scripts(text, folder):
    path = os.path.join(folder, "script.py")
    with open(path, "w") as file:
        file.write(text + HEAD if text.startswith("\nimport torch\n") else HEAD + text)
    tapes, said = [], []
    for way in WAYS:
        tapes.append(os.path.join(folder, way + ".tdtape"))
        said.append(run(python, "-m", "tapedeck", "-f", "-o", tapes[-1], "--level", "stats", path, way=way,
                        cwd=folder).stderr)
    assert said[0] == said[1], said
    same(tapes)


# ------------------------------------------------------------------------------ the module

def chosen(folder):
    """What is asked for is what runs."""
    path = os.path.join(folder, "which.py")
    with open(path, "w") as file:
        file.write("import tapedeck\nprint(tapedeck._current.recorder.hot.__name__)\n")
    at = ("-m", "tapedeck", "-f", "-o", os.path.join(folder, "which.tdtape"), path)
    names = [run(python, *at, way=way, cwd=folder).stdout.strip() for way in WAYS]
    assert names == ["tapedeck.plain", "_tapedeck"], names
    wrong = run(python, *at, cwd=folder, status=2, TAPEDECK_EXTENSION=__file__)
    assert wrong.stderr.startswith("tapedeck: the extension module cannot be loaded") and not wrong.stdout, wrong


def keeps_nothing(folder):
    """No tensor is kept alive, and what is kept of those that have gone does not grow."""
    text = """
import gc, sys, weakref, torch, tapedeck, resource
import tapedeck.recorder
def work():
    x = torch.ones(3, requires_grad=True); y = x * 2 + 1; y.sum().backward(); x.grad.add_(1)
    return [weakref.ref(t) for t in (x, y, x.grad)], sys.getrefcount(x)
plain = work()[1]
with tapedeck.record(sys.argv[1], overwrite=True, level="stats", extension=True) as session:
    tapedeck.iteration()
    refs, count = work()
    assert count == plain, (count, plain)
    assert all(ref() is None for ref in refs), "a tensor is alive"
    assert len(session.recorder.by_id) == 0, session.recorder.by_id
    for i in range(200):
        work(); tapedeck.iteration()
    gc.collect(); before = len(gc.get_objects())
    for i in range(200):
        work(); tapedeck.iteration()
    gc.collect(); more = len(gc.get_objects()) - before
    assert more < 50, "%d objects more" % more
"""
    run(python, "-c", text, os.path.join(folder, "kept.tdtape"))


def interrupted(folder):
    """What a signal's handler raises in an operator is the program's; so is an operator's own error."""
    text = """
import signal, sys, torch, tapedeck
class Stop(Exception): pass
def stop(*a): raise Stop()
with tapedeck.record(sys.argv[1], overwrite=True, extension=True):
    net = torch.nn.Linear(2, 2); opt = torch.optim.SGD(net.parameters(), lr=.1)
    n = 0
    signal.signal(signal.SIGALRM, stop)
    for i in range(60):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + i * 0.0001)
            while True: net(torch.ones(1, 2)).sum().backward(); opt.step()
        except Stop: n += 1
    assert n == 60, n
    try: torch.ones(2) @ torch.ones(3)
    except RuntimeError as error: assert "size" in str(error) and error.__traceback__ is not None, error
    else: sys.exit("nothing was raised")
"""
    tape = os.path.join(folder, "stopped.tdtape")
    run(python, "-c", text, tape)
    run(tapedeck, "check", tape)


def installed(folder):
    """pip builds and installs it from the tree."""
    can = "import pip, setuptools\ntry: import setuptools.command.bdist_wheel\nexcept ImportError: import wheel"
    if subprocess.run([python, "-c", can], capture_output=True).returncode != 0:
        return "SKIP pip, setuptools and wheel are not there for %s" % python
    top = os.path.dirname(os.path.dirname(package))
    copy = os.path.join(folder, "tree")
    shutil.copytree(package, os.path.join(copy, "data", "python"))
    shutil.copy(os.path.join(top, "meson.build"), copy)
    target = os.path.join(folder, "target")
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", target,
        os.path.join(copy, "data", "python"))
    files = sorted(os.listdir(os.path.join(target, "tapedeck")))
    if "_tapedeck.abi3.so" not in files:
        return "SKIP Python's headers are not there for %s" % python
    less = {key: value for key, value in environment.items() if key != "TAPEDECK_EXTENSION"}
    text = ("import torch, tapedeck\nwith tapedeck.record('pip.tdtape', overwrite=True) as session:\n"
            "    torch.nn.Linear(2, 2)(torch.ones(1, 2))\n    print(session.recorder.hot.__file__)\n")
    out = subprocess.run([python, "-c", text], env=dict(less, PYTHONPATH=target), capture_output=True, text=True,
                         cwd=folder)
    assert out.returncode == 0 and out.stdout.startswith(target), out
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        for program in ("gpt", "resnet", "lstm", "dcgan", "vae"):
            claim(program + ": the same tape by ctypes and by the extension", programs, program, folder)
        for name, text in SCRIPTS.items():
            claim(name + ": the same tape by ctypes and by the extension", scripts, text, folder)
        claim("what is asked for is what runs, and what cannot be loaded is said", chosen, folder)
        claim("nothing is kept alive", keeps_nothing, folder)
        claim("errors and signals are the program's", interrupted, folder)
        claim("pip installs it from the tree", installed, folder)
    claims.end()


main()
