#!/usr/bin/env python3
"""PyTorch recorded: test-torch.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has
PyTorch; without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import collections
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models", "life", "torch")
PROGRAMS = ("resnet", "gpt", "lstm", "dcgan", "vae")
IN_TURNS = ("dcgan",)  # two optimizers, whose first steps are an iteration each
# Without the extension the tapes are the same (test-extension.py).
SHORT = os.environ.get("TAPEDECK_EXTENSION") == ""
LONG = 50 if SHORT else 300
VIEWS = ("graph", "backward", "curves", "memory", "blocks", "holders", "growth", "gradients", "schedule",
         "timeline")
PARTIAL, OUTSIDE = 1 << 5, 1 << 6  # of td-tape.h
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PRODUCER=producer, TAPEDECK_PYTHON=python)


def run(*args, status=0, cwd=None):
    result = subprocess.run(args, capture_output=True, text=True, env=environment, cwd=cwd or MODELS)
    if status is not None:
        assert result.returncode == status, (args, result.returncode, result.stderr[-2000:])
    return result


def trained(program, mode, *args):
    out = run(python, program + ".py", "--mode", mode, *args).stdout
    return json.loads(out.splitlines()[-1])


def records(tape):
    for line in run(tapedeck, "cat", "--json", tape).stdout.splitlines():
        yield json.loads(line)


# ------------------------------------------------------------------------------ what is there

def same_weights(program, folder):
    for size, levels in (("quick", ("graph", "stats")), ("life", () if SHORT else ("values",))):
        plain = trained(program, "plain", "--size", size, "-n", "3") if levels else None
        for level in levels:
            tape = os.path.join(folder, program + "-same.tdtape")
            recorded = trained(program, "record", "--size", size, "-n", "3", "--tape", tape, "--level", level)
            assert recorded == plain, "the numbers differ at level " + level
            run(tapedeck, "check", tape)


def operators(program, folder):
    """The tape has the operators that the profiler counts, those apart that run within another.  The
    profiler looks under an empty mode, under which PyTorch chooses the same ones: it adds gradients
    with add instead of add_, for one.  A mode is also shown a detach where only a handle is copied:
    those are counted without one."""
    tape = os.path.join(folder, program + "-profiled.tdtape")
    tape = collections.Counter(r["op"] for r in records(tape) if r["record"] == "event")
    ours = {"aten::" + name for name in tape}
    plain, rows = (trained(program, mode)["operators"] for mode in ("profile", "profile-mode"))
    outer = collections.Counter(name for name, above in rows if not any(a in ours for a in above))
    without = collections.Counter(name for name, _ in plain)
    outer["aten::detach"] = without["aten::detach"]
    # The profiler's clock counts microseconds: what runs within another may seem to stand beside it;
    # under a mode each operator runs within itself, so that some are counted twice.
    inside = {name for name, above in rows if any(a in ours and a != name for a in above)}
    equal = 0
    for name, n in tape.items():
        seen = outer["aten::" + name]
        seen = n if n < seen <= 2 * n and n == without["aten::" + name] else seen
        assert n == seen or (n < seen and name != "detach" and "aten::" + name in inside), \
            "%s: %d times on the tape, the profiler has %d" % (name, n, seen)
        equal += n == seen
    assert equal >= len(tape) * 3 // 4, "only %d of %d have equal numbers" % (equal, len(tape))
    # and nothing that computes is missing: what is not on the tape only calls what is
    missing = {name for name, above in rows if name.startswith("aten::") and name not in ours
               and not any(a in ours for a in above)}
    parents = {a for name, above in rows if name in ours for a in above}
    missing -= {"aten::resolve_conj", "aten::resolve_neg", "aten::detach_"}  # handles, no numbers
    missing -= {"aten::empty", "aten::zeros"}  # of the profiler's own marks
    assert missing <= parents, "never on the tape: %s" % sorted(missing - parents)


def iteration_of(program, name, i):
    """In which iteration of the tape the program's i-th has updated the parameter."""
    return i + (program in IN_TURNS and (i > 0 or not name.startswith("critic")))


def gradients(program, folder):
    """The view has the norms of all iterations; of the last one each element is PyTorch's, bit for bit."""
    tape, file = (os.path.join(folder, program + end) for end in ("-values.tdtape", "-gradients"))
    trained(program, "record", "--tape", tape, "--level", "values")
    expected = trained(program, "plain", "--gradients", file)["gradients"]
    shown = json.loads(run(tapedeck, "show", tape, "--view", "gradients", "--format", "json").stdout)
    found = {row["path"].split("/", 1)[1].replace("/", "."): row for row in shown["parameters"]}
    assert set(found) == set(expected[0]), "parameters: %s" % (set(found) ^ set(expected[0]))
    for i, row in enumerate(expected):
        for name, value in row.items():
            seen = found[name]["l2"][iteration_of(program, name, i)]
            assert math.isclose(seen, value, rel_tol=1e-12, abs_tol=1e-300), \
                "%s in iteration %d: %r, PyTorch has %r" % (name, i, seen, value)
    arrays = os.path.join(folder, program + "-arrays")
    os.makedirs(arrays)
    for name, row in found.items():
        run(tapedeck, "show", tape, "--view", "tensor", "--node", row["path"] + ".grad", "--iteration",
            str(iteration_of(program, name, len(expected) - 1)), "--format", "npy", "-o", os.path.join(arrays, name))
    run(python, "-c", """
import sys, numpy, torch
found = torch.load(sys.argv[1])
for name, gradient in found.items():
    seen, of = numpy.load(sys.argv[2] + "/" + name), gradient.numpy()
    assert seen.dtype == of.dtype and seen.shape == of.shape and seen.tobytes() == of.tobytes(), (name, seen, of)
""", file, arrays)


def places(program, folder):
    """Operators of backward are in the layers of the forward ones, in PyTorch that does not number them too;
    all but those of the loss, and the first gradient of all, have one."""
    tape = os.path.join(folder, program + "-graph.tdtape")
    run(tapedeck, "run", "-q", "-f", "-o", tape, program + ".py")
    rows = [r for r in records(tape) if r["record"] == "event" and r["iteration"] == 2]
    layers = {r["link"] for r in rows if r["phase"] == "forward"}
    back = [r for r in rows if r["phase"] == "backward" and r["op"] not in ("ones_like", "detach")]
    strange = {r["link"] for r in back if r["twin"] >= 0} - layers  # a sum of gradients is its parameter's
    assert not strange and len({r["link"] for r in back}) > 3, strange
    bare = [r["op"] for r in back if not r["link"]]
    assert len(bare) <= len([r for r in rows if r["phase"] == "forward" and not r["link"]]), bare
    updated = {r["link"] for r in rows if r["phase"] == "update"}
    assert len(updated) > 2 and ("" in updated) == (program == "lstm"), updated  # which clips


def views(program, folder):
    tape = os.path.join(folder, program + "-stats.tdtape")
    trained(program, "record", "--tape", tape, "--level", "stats")
    for view in VIEWS:
        out = run(tapedeck, "show", tape, "--view", view, "--iteration", "2").stdout
        assert out.strip(), view + " is empty"
    assert "static" not in run(tapedeck, "show", tape, "--view", "timeline", "--iteration", "3").stdout
    info = json.loads(run(tapedeck, "info", "--json", tape).stdout)
    assert info["iterations"] >= 4 and info["exit"]["status"] == 0


def repeats(program, folder):
    """An iteration like the one before has its structure and its keys: nothing is stored twice."""
    tape = os.path.join(folder, program + "-long.tdtape")
    trained(program, "record", "--tape", tape, "-n", "30")
    ids = [r["structure"] for r in records(tape) if r["record"] == "iteration"]
    if program == "vae":  # which begins epochs of two, after some of which it keeps or takes a snapshot
        assert ids[9:29:2] == [ids[9]] * 10 and len(set(ids)) <= 10, "structures: %s" % ids
    else:
        assert len(set(ids[4:30 + (program in IN_TURNS)])) == 1, "structures: %s" % ids


def twins(program, folder):
    """A backward event has the forward one of its name, or none."""
    tape = os.path.join(folder, program + "-twins.tdtape")
    trained(program, "record", "--tape", tape)
    events = collections.defaultdict(list)
    for r in records(tape):
        if r["record"] == "event":
            events[r["iteration"]].append(r)
    n = wrong = 0
    for e in events[2]:
        if e["twin"] >= 0:
            n += 1
            forward = events[2][e["twin"]]
            wrong += forward["phase"] != "forward" or (
                e["op"].endswith("_backward") and not e["op"].startswith(forward["op"].rstrip("_").replace("_forward", ""))
                and "threshold" not in e["op"])
    assert wrong == 0, "%d of %d are of another operator" % (wrong, n)
    assert n > 20, "only %d twins" % n


def leaks(program, folder):
    clean, kept = (os.path.join(folder, program + name) for name in ("-clean.tdtape", "-kept.tdtape"))
    run(python, "-m", "tapedeck", "-f", "-o", clean, program + ".py", "-n", str(LONG))
    run(tapedeck, "leaks", clean)
    run(python, "-m", "tapedeck", "-f", "-o", kept, program + ".py", "-n", "25", "--keep")
    said = run(tapedeck, "leaks", kept, status=1).stdout
    line = next(i for i, text in enumerate(open(os.path.join(MODELS, program + ".py")), 1)
                if "what --keep keeps" in text)
    assert "%s.py:%d" % (program, line) in said and "detach ()" in said, said
    assert "td_" not in said, said


# ------------------------------------------------------------------------- what goes wrong

def script(folder, text, *args, status=0, level="graph"):
    path = os.path.join(folder, "script.py")
    with open(path, "w") as file:
        file.write("import torch, sys, os, tapedeck\nnet = torch.nn.Linear(2, 3)\n"
                   "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                   "def step():\n    net(torch.ones(1, 2)).sum().backward()\n    opt.step()\n"
                   "step()\n" + text)
    tape = os.path.join(folder, "script.tdtape")
    result = run(python, "-m", "tapedeck", "-f", "-o", tape, "--level", level, path, *args, status=status, cwd=folder)
    info = json.loads(run(tapedeck, "info", "--json", tape).stdout)
    run(tapedeck, "check", tape)
    return result, info


def failing(folder):
    result, info = script(folder, "raise ValueError('no more')\n", status=1)
    assert result.stderr.rstrip().endswith("ValueError: no more"), result.stderr
    assert "runpy" not in result.stderr and info["exit"]["status"] == 1, result.stderr
    result, info = script(folder, "sys.exit(7)\n", status=7)
    assert info["exit"]["status"] == 7
    result, info = script(folder, "sys.exit('a sentence')\n", status=1)
    assert "a sentence" in result.stderr


def leaving(folder):
    _, info = script(folder, "step()\nos._exit(5)\n", status=5)
    assert info["iterations"] >= 2 and info["exit"]["status"] == 5


def killed(folder):
    _, info = script(folder, "step()\nos.kill(os.getpid(), 9)\n", status=-signal.SIGKILL)
    assert info["iterations"] >= 2


def forking(folder):
    _, info = script(folder, "pid = os.fork()\nif pid == 0:\n    step()\n    os._exit(3)\n"
                             "assert os.waitpid(pid, 0)[1] == 3 << 8\nstep()\n")
    _, again = script(folder, "step()\n")
    assert info["iterations"] == again["iterations"] and info["exit"]["status"] == 0, (info, again)


def operator_that_raises(folder):
    _, info = script(folder, "try:\n    torch.ones(2, 3) @ torch.ones(2, 3)\nexcept RuntimeError:\n"
                             "    pass\nelse:\n    sys.exit(1)\nstep()\n")
    assert info["iterations"] >= 2


def strange_tensors(folder):
    result, _ = script(folder, """
a = torch.ones(3, dtype=torch.complex64); b = (a * 2).abs()
c = torch.eye(3).to_sparse(); d = torch.sparse.mm(c, torch.ones(3, 2))
e = torch.ones((1,) * 10) + 1
f = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()
class Sub(torch.Tensor): pass
g = torch.ones(2).as_subclass(Sub) + 1
h = torch.empty(0) + torch.empty(0)
i = torch.zeros(4, device='meta') * 2
j = torch.ones(2, dtype=torch.int8) + torch.ones(2, dtype=torch.int16)
with torch.inference_mode(): k = net(torch.ones(1, 2))
with torch.no_grad(): l = net(torch.ones(1, 2))
n, m = torch.max(torch.rand(3, 3), 0)
step()
""")
    assert "not on the tape" not in result.stderr, result.stderr


def threads(folder):
    """Layers that run on another thread are not taken for layers of this one."""
    result, info = script(folder, """
import threading
go = threading.Event()
def other():
    while not go.is_set(): torch.nn.ReLU()(torch.ones(2))
thread = threading.Thread(target=other); thread.start()
for i in range(20): step()
go.set(); thread.join()
""")
    assert "not on the tape" not in result.stderr and info["iterations"] >= 20, (result.stderr, info)
    tape = os.path.join(folder, "script.tdtape")
    assert {r["link"] for r in records(tape) if r["record"] == "event"} <= {"", "Linear"}


def failing_layers(folder):
    result, _ = script(folder, """
class Bad(torch.nn.Module):
    def forward(self, x): raise KeyError('bad')
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.bad, self.good = Bad(), torch.nn.Linear(2, 2)
    def forward(self, x):
        try: self.bad(x)
        except KeyError: pass
        return self.good(x)
net.register_forward_hook(lambda *a: None)
Outer()(torch.ones(1, 2)).sum().backward()
step()
""")
    assert "not on the tape" not in result.stderr, result.stderr


def optimizers(folder):
    """Two of them, one with a closure; and iterations by hand."""
    _, info = script(folder, """
other = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    other.zero_grad(); y = net(torch.ones(1, 2)).pow(2).sum(); y.backward(); return y
other.step(closure)
""")
    assert info["iterations"] >= 2
    _, info = script(folder, "tapedeck.iteration()\nfor i in range(3):\n    step(); step()\n"
                             "    tapedeck.iteration()\n")
    by_hand = info["iterations"]
    _, info = script(folder, "for i in range(3):\n    step(); step()\n")
    assert info["iterations"] == by_hand + 3, (info["iterations"], by_hand)


def turns(folder):
    """Optimizers that take turns end an iteration together, once the first has stepped again; those that do not,
    each; and one that leaves out its turn does not keep the others' iterations open."""
    def seen(order):
        _, info = script(folder, """
nets = {key: torch.nn.Linear(2, 2) for key in "abc"}
optimizers = {key: torch.optim.SGD(net.parameters(), lr=0.1) for key, net in nets.items()}
for key in %r:
    optimizers[key].zero_grad()
    nets[key](torch.ones(1, 2)).sum().backward()
    optimizers[key].step()
""" % order)
        assert info["exit"]["status"] == 0
        made = {"Linear": "", "Linear2": "a", "Linear3": "b", "Linear4": "c"}
        steps = collections.defaultdict(list)
        for r in records(os.path.join(folder, "script.tdtape")):
            if r["record"] == "event" and r["phase"] == "update" and r["op"] == "add_":
                steps[r["iteration"]].append(made[r["link"]])
        return " ".join("".join(sorted(set(steps[i]), key=steps[i].index)) * (
            len(steps[i]) // (2 * len(set(steps[i])))) for i in sorted(steps)).strip()

    for order, expected in (("ab" * 4, "a b ab ab ab"), ("abc" * 3, "a b c abc abc"), ("aaaa", "a a a a"),
                            ("aabaab", "a a b a a b"), ("abbab", "a b b a b"),
                            ("ab" + "ab" + "a" + "ab" + "ab", "a b ab aa b ab"),  # b has left out its third
                            ("abab" + "b" + "ab", "a b ab b ab"),
                            ("abab" + "aaaa" + "bb", "a b ab aa aa b b"),  # b takes none any more
                            ("abab" + "cab", "a b ab cab")):
        assert seen(order) == expected, (order, seen(order), expected)


def several_modules(folder):
    """Modules beside one another: each has its updates from the first step on, whether it was made while
    recorded, and so has its name before, or earlier, and is met within an iteration."""
    made = "a = torch.nn.Linear(4, 4); b = torch.nn.Linear(4, 2)\n" \
           "o = torch.optim.SGD(list(a.parameters()) + list(b.parameters()), lr=.1)\n"
    train = "for i in range(3):\n    o.zero_grad()\n" \
            "    b(torch.relu(a(torch.randn(2, 4)))).sum().backward()\n    o.step()\n"
    names = {kind + part for kind in ("Linear/", "Linear2/") for part in ("weight", "bias")}
    path, tape = os.path.join(folder, "modules.py"), os.path.join(folder, "modules.tdtape")
    for within in (True, False):
        with open(path, "w") as file:
            file.write("import torch, tapedeck\n" + (made + train if within else
                       made + "with tapedeck.record('modules.tdtape', overwrite=True):\n    "
                       + train.replace("\n", "\n    ") + "\n"))
        said = run(python, *(("-m", "tapedeck", "-f", "-o", tape) if within else ()), path, cwd=folder).stderr
        assert "not on the tape" not in said, said
        run(tapedeck, "check", tape)
        rows = list(records(tape))
        steps = collections.Counter(r["iteration"] for r in rows
                                    if r["record"] == "event" and r["phase"] == "update" and r["op"] == "add_")
        assert sorted(steps.values()) == [4, 4, 4], steps
        shown = json.loads(run(tapedeck, "show", tape, "--view", "gradients", "--format", "json").stdout)
        assert {row["path"] for row in shown["parameters"]} == names, shown


def nameless(folder):
    """A module in a list, which the one around it does not know, is called after its class; of a class that has no
    name either it is a Module."""
    script(folder, """
def init(self):
    torch.nn.Module.__init__(self)
    self.inner = torch.nn.Linear(2, 2)
Nameless = type("", (torch.nn.Module,), {"__init__": init, "forward": lambda self, x: self.inner(x)})
class Known(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [Nameless(), Nameless()]
    def forward(self, x):
        for module in self.hidden:
            x = module(x)
        return x
known = Known()
opt = torch.optim.SGD([p for module in known.hidden for p in module.parameters()], lr=0.1)
for i in range(3):
    opt.zero_grad(); known(torch.ones(1, 2)).sum().backward(); opt.step()
""")
    layers = {r["link"] for r in records(os.path.join(folder, "script.tdtape"))
              if r["record"] == "event" and r["phase"] == "update"}
    assert {"Module/inner", "Module2/inner"} <= layers and not any(name.startswith("/") for name in layers), layers


def megabytes(folder):
    """What a recorded program prints, however much, comes through whole, by both ways."""
    path, tape = os.path.join(folder, "prints.py"), os.path.join(folder, "prints.tdtape")
    with open(path, "w") as file:
        file.write("import sys, torch\nnet = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=.1)\n"
                   "for i in range(4):\n    net(torch.ones(1, 2)).sum().backward(); opt.step()\n"
                   "    sys.stdout.write('%d' % i * 2000000 + '\\n'); sys.stderr.write('%d' % (i + 4) * 2000000 + '\\n')\n")
    expected = ["".join("%d" % i * 2000000 + "\n" for i in numbers) for numbers in (range(4), range(4, 8))]
    for way in ((tapedeck, "run", "-q", "-f"), (python, "-m", "tapedeck", "-f")):
        result = subprocess.run([*way, "-o", tape, path], capture_output=True, text=True, cwd=folder,
                                env=dict(environment, TAPEDECK_PYTHON=python))
        assert result.returncode == 0 and result.stdout == expected[0], (way, result.returncode, len(result.stdout))
        assert result.stderr == expected[1], (way, len(result.stderr), result.stderr[-200:])
        assert json.loads(run(tapedeck, "info", "--json", tape).stdout)["iterations"] >= 4


def numbers(folder):
    """The first step is iteration 0 and no other work has a number among them: what is wrong in a step is
    wrong in the iteration of that number."""
    path, tape = os.path.join(folder, "steps.py"), os.path.join(folder, "steps.tdtape")
    text = ("import torch, tapedeck\ntorch.manual_seed(0)\n"
            "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))\n"
            "data = torch.randn(12, 3, 4)\nopt = torch.optim.SGD(net.parameters(), lr=1e-3)\n"
            "for i in range(12):\n    opt.zero_grad(); loss = net(data[i]).pow(2).sum()\n"
            "    if i == 7: loss = loss * 1e6\n"
            "    tapedeck.report('i', i); loss.backward()\n"
            "    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step()\n")

    def recorded(more, status=0):
        with open(path, "w") as file:
            file.write(text + more)
        run(python, "-m", "tapedeck", "-f", "-o", tape, "--level", "stats", path, cwd=folder, status=status)
        run(tapedeck, "check", tape)
        rows = list(records(tape))
        assert [(r["iteration"], r["value"]) for r in rows if r["record"] == "report"] == \
            [(i, i) for i in range(12)], [r for r in rows if r["record"] == "report"]
        return [(r["number"], r["flags"]) for r in rows if r["record"] == "iteration"]

    seen = recorded("")
    assert [n for n, _ in seen] == list(range(12)), seen
    after = recorded("net(data[0])\n")
    assert [n for n, _ in after] == list(range(13)), after
    assert after[12][1] & OUTSIDE and not any(flags & OUTSIDE for _, flags in after[:12]), after
    shown = json.loads(run(tapedeck, "show", tape, "--view", "findings", "--format", "json").stdout)
    found = {(f["path"].split("/", 1)[1], f["iteration"]) for f in shown["findings"] if f["rule"] == "exploding"}
    assert found == {(layer + "/" + part, 7) for layer in "01" for part in ("weight", "bias")}, shown
    clips = [r for r in records(tape) if r["record"] == "event" and r["op"] in ("mul_", "_foreach_mul_")]
    assert len({r["iteration"] for r in clips}) == 12 and {r["phase"] for r in clips} == {"update"}, clips[:3]
    broken = recorded("net(data[0]); raise ValueError\n", status=1)
    assert broken[12][1] & PARTIAL and not broken[12][1] & OUTSIDE, broken


def without_gradient(folder):
    """What an optimizer holds and no gradient reaches is missing, with the reason; what none holds is not
    updated."""
    path, tape = os.path.join(folder, "missing.py"), os.path.join(folder, "missing.tdtape")
    with open(path, "w") as file:
        file.write(
            "import torch\ntorch.manual_seed(0)\n"
            "class N(torch.nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n"
            "        self.used, self.unused = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)\n"
            "        self.cut, self.frozen = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)\n"
            "    def forward(self, x):\n"
            "        return self.frozen(self.used(x)) + self.cut(x).detach()\n"
            "net = N()\n"
            "held = [p for n, p in net.named_parameters() if not n.startswith('frozen')]\n"
            "opt = torch.optim.Adam(held)\n"
            "for i in range(4):\n"
            "    opt.zero_grad(); net(torch.randn(3, 4)).pow(2).sum().backward(); opt.step()\n")
    run(python, "-m", "tapedeck", "-f", "-o", tape, "--level", "stats", path, cwd=folder)
    run(tapedeck, "check", tape)
    shown = json.loads(run(tapedeck, "show", tape, "--view", "findings", "--format", "json").stdout)
    found = {(f["rule"], f["path"], "not used" in f["text"]) for f in shown["findings"]
             if f["rule"] in ("missing", "not-updated")}
    assert found == {(rule, "N/%s/%s" % (layer, part), unused)
                     for rule, layer, unused in (("missing", "unused", True), ("missing", "cut", False),
                                                 ("not-updated", "frozen", False))
                     for part in ("weight", "bias")}, shown


def reports(folder):
    _, _ = script(folder, "for i in range(3):\n    step(); tapedeck.report('loss', torch.tensor(0.5 * i))\n")
    rows = [r for r in records(os.path.join(folder, "script.tdtape")) if r["record"] == "report"]
    assert [r["value"] for r in rows] == [0, 0.5, 1], rows


def piles(folder):
    """What the recorder remembers does not grow: views of weights, gradients, states come and go."""
    result, _ = script(folder, """
opt = torch.optim.Adam(net.parameters())
def remembered():
    r = tapedeck._current.recorder
    return (len(r.by_id) + len(r.refs) + len(r.storages) + len(r.update_layers) + len(r.owners)
            + sum(len(s.variables) for s in r.storages.values()))
counts = []
for i in range(300):
    opt.zero_grad(); step()
    counts.append(remembered())
assert max(counts[200:]) <= max(counts[50:150]) + 20, (counts[50], counts[-1])
""")
    assert "not on the tape" not in result.stderr, result.stderr


def storages(folder):
    """A storage that an operator was given is kept by nothing; nor is one that set_ has put into a tensor
    without anybody knowing it before, as torch.load does."""
    result, _ = script(folder, """
for i in range(40):
    step()
    t = torch.tensor([]); t.set_(torch.UntypedStorage(2000), 0, (500,), (1,)); address = t.data_ptr(); del t
    u = torch.ones(500); u.set_(torch.UntypedStorage(2000), 0, (500,), (1,)); v = torch.ones(500).set_(u); del u, v
""")
    assert "not on the tape" not in result.stderr, result.stderr
    run(tapedeck, "leaks", os.path.join(folder, "script.tdtape"))


def building(folder):
    """What PyTorch calls of layers while a model is made is no forward pass: they are named in their places."""
    script(folder, """
from torch.nn.utils.parametrizations import spectral_norm
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = spectral_norm(torch.nn.Linear(2, 3)), spectral_norm(torch.nn.Linear(3, 1))
        self.third = torch.nn.Linear(1, 1)
        self.third(torch.ones(1, 1))
    def forward(self, x): return self.third(self.second(self.first(x)))
model = Net()
for i in range(3):
    model(torch.ones(1, 2)).sum().backward(); opt.step()
""")
    rows = records(os.path.join(folder, "script.tdtape"))
    found = {r["link"].split("/parametrizations")[0] for r in rows if r["record"] == "event"}
    assert found == {"", "Linear", "Net/first", "Net/second", "Net/third"}, found


def in_turns(folder):
    """Of two optimizers that take turns the other's parameters are not said to have none."""
    script(folder, """
other = torch.nn.Linear(2, 3); two = torch.optim.SGD(other.parameters(), lr=.1)
for i in range(4):
    step(); other(torch.ones(1, 2)).sum().backward(); two.step()
""", level="stats")
    tape = os.path.join(folder, "script.tdtape")
    shown = run(tapedeck, "show", tape, "--view", "gradients", "--iteration", "5").stdout
    assert "not updated in this iteration, only in others" in shown and "no optimizer" not in shown, shown
    found = run(tapedeck, "show", tape, "--view", "findings").stdout
    assert "Nothing found" in found, found


def refusals(folder):
    tape = os.path.join(folder, "script.tdtape")
    assert "no script" in run(python, "-m", "tapedeck", "nowhere.py", status=2, cwd=folder).stderr
    with open(os.path.join(folder, "plain.txt"), "w") as file:
        file.write("no tape\n")
    path = os.path.join(folder, "script.py")
    said = run(python, "-m", "tapedeck", "-f", "-o", "plain.txt", path, status=2, cwd=folder).stderr
    assert "no tape" in said, said
    assert run(python, "-m", "tapedeck", "-o", tape, path, status=2, cwd=folder).stderr.startswith("tapedeck: ")
    fake = os.path.join(folder, "old")
    os.makedirs(os.path.join(fake, "torch"))
    for text, word in (("__version__ = '1.8.1'\n", "too old"), ("raise ImportError('gone')\n", "not there")):
        with open(os.path.join(fake, "torch", "__init__.py"), "w") as file:
            file.write(text)
        result = subprocess.run([python, "-m", "tapedeck", "-f", "-o", tape, path], text=True,
                                capture_output=True, env=dict(environment, PYTHONPATH=package + ":" + fake))
        assert result.returncode == 2 and word in result.stderr, result.stderr
    result = subprocess.run([python, "-m", "tapedeck", "-f", "-o", tape, path], text=True,
                            capture_output=True, env=dict(environment, TAPEDECK_PRODUCER="/nowhere.so"))
    assert result.returncode == 2 and "libtdproducer" in result.stderr, result.stderr


def front_door(folder):
    """`tapedeck run` finds package and library by itself."""
    bare = {k: v for k, v in environment.items() if k not in ("PYTHONPATH", "TAPEDECK_PRODUCER")}
    bare["TAPEDECK_PYTHON"] = python
    path, tape = os.path.join(folder, "-run.py"), os.path.join(folder, "run.tdtape")
    with open(path, "w") as file:
        file.write("import sys, torch\nnet = torch.nn.Linear(2, 3)\nopt = torch.optim.SGD(net.parameters(), lr=.1)\n"
                   "for i in range(3):\n    net(torch.ones(1, 2)).sum().backward(); opt.step()\n"
                   "sys.exit(int(sys.argv[1]))\n")

    def front(*args):
        return subprocess.run([tapedeck, "run", *args], capture_output=True, text=True, env=bare, cwd=folder)

    result = front("-o", tape, "--level", "stats", "--", "-run.py", "9")
    assert result.returncode == 9, result.stderr
    info = json.loads(run(tapedeck, "info", "--json", tape).stdout)
    assert info["iterations"] >= 3 and info["exit"]["status"] == 9
    assert front("-o", tape, "--", "-run.py", "0").returncode == 2  # there already
    assert front("-f", "-o", tape, "--", "-run.py", "0").returncode == 0
    for wrong in (("--device", "cpu"), ("--seed", "1")):
        result = front(*wrong, "--", "-run.py", "0")
        assert result.returncode == 2 and "Python script" in result.stderr, result.stderr
    assert front("nowhere.py").returncode == 127
    assert front("-f", "-o", "-run.py", "--", "-run.py", "0").returncode == 2


def strided_rows(folder):
    """Rows whose elements are the same one, or every second one, lie in their storages."""
    path, tape = os.path.join(folder, "rows.py"), os.path.join(folder, "rows.tdtape")
    with open(path, "w") as file:
        file.write("import torch\nw = torch.ones(4, requires_grad=True)\nopt = torch.optim.SGD([w], .1)\n"
                   "for i in range(3):\n    opt.zero_grad()\n    (w.sum() + w[1::2].mul(2).sum()).backward()\n"
                   "    opt.step()\n")
    result = run(python, "-m", "tapedeck", "-o", tape, path, cwd=folder)
    assert "not on the tape" not in result.stderr, result.stderr
    made = collections.Counter((r["iteration"], r["op"]) for r in records(tape) if r["record"] == "event")
    assert made[2, "expand"] == 2 and made[2, "slice"] == 1, made


def scopes(folder):
    """The program's record_function is a scope, in whatever iterations it is open; PyTorch's own (an
    optimizer's step has one) are none."""
    path, tape = os.path.join(folder, "scopes.py"), os.path.join(folder, "scopes.tdtape")
    with open(path, "w") as file:
        file.write("import torch\nfrom torch.profiler import record_function as scope\n"
                   "net = torch.nn.Linear(2, 3)\nopt = torch.optim.SGD(net.parameters(), lr=.1)\n"
                   "@scope('decorated')\ndef forward(x):\n    return net(x).relu()\n"
                   "all = scope('the whole run')\nall.__enter__()\n"
                   "for i in range(3):\n    with scope('step'):\n        opt.zero_grad()\n"
                   "        with scope('forward'):\n            loss = forward(torch.ones(1, 2)).sum()\n"
                   "        try:\n            with scope('fails'):\n                torch.ones(2) @ torch.ones(3)\n"
                   "        except RuntimeError:\n            pass\n"
                   "        a, b = scope('outer'), scope('late')\n        a.__enter__()\n        b.__enter__()\n"
                   "        a.__exit__(None, None, None)\n        b.__exit__(None, None, None)\n"
                   "        loss.backward()\n        opt.step()\nall.__exit__(None, None, None)\n")
    result = run(python, "-m", "tapedeck", "-o", tape, path, cwd=folder)
    assert "not on the tape" not in result.stderr, result.stderr
    run(tapedeck, "check", tape)
    for iteration in range(3):
        view = json.loads(run(tapedeck, "show", tape, "--view", "timeline", "--iteration", str(iteration),
                              "--format", "json").stdout)
        found = {row["name"]: row for row in view["scopes"]}
        # what is called before the first operation of an iteration is in none
        assert {name: row["depth"] for name, row in found.items() if name != "fails"} == {
            "the whole run": 0, "step": 1, "forward": 2, "decorated": 3}, (iteration, found)
        assert found["step"]["last_event"] > found["forward"]["last_event"], found
        ops = {row["event"]: row["op"] for row in view["events"]}
        inner = range(found["decorated"]["first_event"], found["decorated"]["last_event"] + 1)
        assert "relu" in [ops[event] for event in inner] and "sum" not in [ops[event] for event in inner], ops
        assert found["step"]["ns"] >= found["forward"]["ns"] > 0, found
        # the graph has them, and still the layers
        graph = run(tapedeck, "show", tape, "--view", "graph", "--iteration", str(iteration), "--fold", "2").stdout
        assert "decorated" in graph and " Linear | t, addmm" in graph, graph


def main():
    folder = tempfile.mkdtemp(prefix="td-torch-")
    try:
        for program in PROGRAMS:
            claim(program + ": the same weights and gradients with and without recording", same_weights,
                  program, folder)
            trained(program, "record", "--tape", os.path.join(folder, program + "-profiled.tdtape"))
            claim(program + ": operators are those of PyTorch's profiler", operators, program, folder)
            claim(program + ": gradients on the tape are PyTorch's, bit for bit", gradients, program, folder)
            claim(program + ": backward is in the layers of forward", places, program, folder)
            claim(program + ": every view shows it", views, program, folder)
            claim(program + ": iterations repeat", repeats, program, folder)
            claim(program + ": twins are of the same operator", twins, program, folder)
            claim(program + ": a kept loss is named; nothing is in %d clean iterations" % LONG, leaks, program, folder)
        for text, check in (("a script that fails keeps its status", failing),
                            ("os._exit closes the tape", leaving),
                            ("what had ended is there after SIGKILL", killed),
                            ("a forked child records nothing", forking),
                            ("an operator may raise", operator_that_raises),
                            ("tensors of all kinds pass", strange_tensors),
                            ("a layer may fail, a hook stand", failing_layers),
                            ("another thread is left alone", threads),
                            ("several optimizers, closures, iterations by hand", optimizers),
                            ("optimizers that take turns end an iteration together", turns),
                            ("several modules have their updates from the first step on", several_modules),
                            ("a module without a name has one", nameless),
                            ("a script may print megabytes", megabytes),
                            ("steps and iterations have the same numbers", numbers),
                            ("parameters without a gradient are missing", without_gradient),
                            ("reports are curves", reports),
                            ("what the recorder remembers does not grow", piles),
                            ("no storage is kept alive, or missed when it goes", storages),
                            ("layers that are called while a model is made have their places", building),
                            ("optimizers that take turns leave no parameter out", in_turns),
                            ("tapedeck run records a script", front_door),
                            ("rows of one element, or of every second one, are recorded", strided_rows),
                            ("record_function of the program is a scope, PyTorch's own is none", scopes),
                            ("what cannot be recorded is said in a line", refusals)):
            claim(text, check, folder)
    finally:
        shutil.rmtree(folder)
    claims.end()


main()
