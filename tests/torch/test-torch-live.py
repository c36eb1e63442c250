#!/usr/bin/env python3
"""PyTorch programs that run under control: test-torch-live.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

A client of the control socket pauses, steps, breaks and reads, and the program ends with the weights
that it has when nobody disturbs it.  Runs with the Python that TD_TEST_TORCH names, else with the first
of the usual ones that has PyTorch; without one it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import array
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "life", "torch")
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
OUTSIDE = 1 << 6  # of an iteration's flags
FORMATS = {"f32": "f", "f64": "d", "i64": "q"}
python = claims.find_python()
environment = claims.environment(package, TAPEDECK_PYTHON=python)


class Failed(Exception):
    """What the supervisor answers when a command fails."""


claim = functools.partial(claims.claim, errors=(AssertionError, Failed, OSError, KeyError, IndexError))


class Program:
    """A script under `tapedeck run`, and a client of its socket."""

    def __init__(self, folder, script, *args, options=()):
        self.tape = os.path.join(folder, "live.tdtape")
        self.address = os.path.join(folder, "socket")
        self.run = subprocess.Popen([tapedeck, "run", "-f", "-o", self.tape, "--control", self.address, *options,
                                     "--", script, *args], cwd=MODELS, env=environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.socket = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.socket.connect(self.address)
                break
            except OSError:
                assert self.run.poll() is None, self.run.communicate()
                time.sleep(0.01)
        self.received, self.events, self.memory = b"", [], []

    def line(self):
        while b"\n" not in self.received:
            data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4))
            if not data:
                return None
            self.received += data
            for level, kind, rest in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self.memory.append(array.array("i", rest[:4])[0])
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def ask(self, command):
        """The answer; a program that is busy elsewhere is asked again."""
        while True:
            self.socket.sendall(command.encode() + b"\n")
            answer = self.line()
            while answer is not None and "ok" not in answer:
                self.events.append(answer)
                answer = self.line()
            if answer is None or "busy" not in answer:
                break
        if not answer["ok"]:
            raise Failed(answer["error"])
        return answer

    def event(self, name):
        """The next event of that name; what comes before it goes."""
        while True:
            event = self.events.pop(0) if self.events else self.line()
            assert event is not None, self.run.communicate()
            if event["event"] == name:
                return event
            assert event["event"] != "exited", (name, event)

    def goes(self, command):
        """Let it go, and return where it stops."""
        self.events.clear()
        self.ask(command)
        return self.event("stopped")

    def starts(self):
        """From its start on it had a breakpoint: where it stands there."""
        while self.ask("status")["state"] != "stopped":
            time.sleep(0.01)
        self.ask("breaks")  # it has said so before it answers this
        return self.ask("status")

    def read(self, variable):
        """The numbers of a variable."""
        answer = self.ask("read %d" % variable)
        memory = self.memory.pop(0)
        try:
            data = os.pread(memory, answer["bytes"] + 1, 0)
        finally:
            os.close(memory)
        assert len(data) == answer["bytes"] == answer["total"], answer
        numbers = array.array(FORMATS[answer["dtype"]])
        numbers.frombytes(data)
        return answer["shape"], numbers.tolist()

    def ends(self, status=0):
        out, err = self.run.communicate()
        assert self.run.returncode == status, (self.run.returncode, err[-2000:])
        self.socket.close()
        assert "not on the tape" not in err, err  # neither one thing nor several
        return out, err


@contextlib.contextmanager
def program(*args, **options):
    live = Program(*args, **options)
    try:
        yield live
    finally:
        live.run.kill()
        live.run.communicate()
        live.socket.close()


def cat(tape):
    result = subprocess.run([tapedeck, "cat", "--json", tape], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def script(folder, text):
    path = os.path.join(folder, "script.py")
    with open(path, "w") as file:
        file.write(text)
    return path


# ------------------------------------------------------------------------------------------ control

def undisturbed(name):
    result = subprocess.run([python, name + ".py", "--mode", "plain"], capture_output=True, text=True, env=environment, cwd=MODELS)
    return json.loads(result.stdout.splitlines()[-1])


def same_weights(name, folder):
    """Paused, stepped and let go again in every phase, it trains as if nobody had looked."""
    with program(folder, name + ".py", "--mode", "plain", options=("--stop", "phase == backward && iteration == 1")) as live:
        at = live.starts()
        assert at["iteration"] == 1 and at["event"] > 0, at
        live.ask("rebreak 1 off")
        before = at["event"]
        for n in range(5):
            stop = live.goes("step-op")
            assert (stop["iteration"], stop["at"], stop["break"]) == (1, before + n + 1, 0), (stop, before)
        update = live.goes("run-to update")
        assert update["iteration"] == 1 and update["at"] > stop["at"] and "optim" not in update["where"], update
        assert live.goes("step-into")["at"] == update["at"] + 1
        backward = live.goes("run-to backward")
        assert backward["iteration"] == 2 and backward["op"] == at["op"], backward
        assert live.goes("next-iteration")["iteration"] == 3
        assert live.goes("run-to loss")["op"] == at["op"]
        assert live.ask("unbreak 1") == {"ok": True} and live.ask("breaks")["breaks"] == []
        live.ask("continue")
        said = json.loads(live.ends()[0].splitlines()[-1])
    assert said == undisturbed(name), "the numbers differ"


def hello(folder):
    with program(folder, "gpt.py", options=("--stop", "iteration == 1")) as live:
        live.starts()
        answer = live.ask("hello")
        assert answer["state"] == "stopped" and answer["tape"] == live.tape, answer
        assert answer["program"] == "gpt.py" and os.path.exists("/proc/%d" % answer["pid"]), answer
        status = live.ask("status")
        assert status["iteration"] == 1 and status["where"].startswith("gpt.py:") and status["tape_bytes"] > 0, status
        for command in ("level stats", "static off", "inside", "inside 1"):
            try:
                live.ask(command)
                return command + " was taken"
            except Failed as error:
                assert "programs of the engine" in str(error), error
        live.ask("stop")
        assert live.event("exited")["signal"] == signal.SIGTERM
        live.ends(128 + signal.SIGTERM)


PLANTED = """
import torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    x = torch.randn(5, 4)
    loss = net(x).pow(2).mean()
    if i == 2:
        loss = loss + torch.full((2,), -1.0).log().sum() * 0
    opt.zero_grad()
    loss.backward()
    opt.step()
print("end", flush=True)
"""


def breaks(folder):
    """A planted NaN stops it where it is made; every kind of condition where it holds first."""
    path = script(folder, PLANTED)
    with program(folder, path, options=("--stop", "nan")) as live:
        live.starts()
        status = live.ask("status")
        assert (status["iteration"], status["op"]) == (2, "log"), status
        assert status["where"] == path + ":10", status
        assert live.ask("breaks")["breaks"] == [{"id": 1, "text": "nan", "enabled": True, "hits": 1}]
        live.ask("rebreak 1 op == mm && phase == backward")
        assert live.goes("continue")["op"] == "mm"
        live.ask("rebreak 1 link == Sequential/2 && iteration > 2")
        stop = live.goes("continue")
        assert (stop["iteration"], stop["at"] > 0, stop["break"]) == (3, True, 1), stop
        assert live.goes("step-over")["where"] == path + ":8"  # what follows the last layer
        live.ask("unbreak 1")
        live.ask("break line == script.py:13 && bytes > 100")
        assert live.goes("continue")["where"] == path + ":13"
        live.ask("rebreak 2 norm(grad) > 0")
        for wrong in ("break nonsense", "rebreak 9 nan", "unbreak 9", "jump"):
            try:
                live.ask(wrong)
                return wrong + " was taken"
            except Failed:
                pass
        live.ask("unbreak 2")
        live.ask("continue")
        assert live.ends()[0] == "end\n"


def exits(folder):
    """--break without a client: where and why, and 3; a tape of all that came before."""
    path, tape = script(folder, PLANTED), os.path.join(folder, "broken.tdtape")
    result = subprocess.run([tapedeck, "run", "-f", "-o", tape, "--break", "nan", path], capture_output=True, text=True,
                            env=environment, cwd=folder)
    assert result.returncode == 3 and result.stdout == "", result
    assert result.stderr == "tapedeck: stopped at %s:10: log made NaN (2 of its numbers) (breakpoint 1: nan)\n" % path, \
        result.stderr
    events = [row for row in cat(tape) if row["record"] == "event" and row["iteration"] == 2]
    assert [row["op"] for row in events].count("log") == 1 and events[-1]["op"] == "log", events[-1]
    info = subprocess.run([tapedeck, "info", "--json", tape], capture_output=True, text=True, env=environment)
    exit = json.loads(info.stdout)["exit"]
    assert exit["by"] == "tapedeck" and exit["signal"] == signal.SIGKILL, exit
    path = script(folder, PLANTED.replace("loss.backward()", "torch.ones(2, 3) @ torch.ones(2, 3)"))
    result = subprocess.run([tapedeck, "run", "-f", "-o", tape, "--break", "error", path], capture_output=True,
                            text=True, env=environment, cwd=folder)
    said = ["script.py:12: %smat1 and mat2 shapes" % op for op in ("", "mm: ")]  # newer ones of PyTorch name it
    assert result.returncode == 3 and any(text in result.stderr for text in said), result


CHANGES = """
import torch
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
for i in range(8):
    h = net(torch.ones(3, 4))
    if i == 4:
        h = torch.tanh(h)
    opt.zero_grad()
    h.pow(2).sum().backward()
    opt.step()
"""


def changes(folder):
    """The first iteration has the initializers too; of the others the fifth has one operation more."""
    path, tape = script(folder, CHANGES), os.path.join(folder, "changes.tdtape")
    result = subprocess.run([tapedeck, "run", "-f", "-o", tape, "--break", "graph changed && iteration > 1", path],
                            capture_output=True, text=True, env=environment, cwd=folder)
    assert result.returncode == 3, result
    # ... the next operation, which is zero_grad's own in older versions of PyTorch
    assert "the graph of iteration 4 is not that of iteration 3: it has tanh at script.py:8 where that had " in \
        result.stderr, result.stderr
    assert "(breakpoint 1: graph changed && iteration > 1)" in result.stderr, result.stderr


READ = """
import json, tapedeck, torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
for i in range(4):
    y = net(torch.randn(2, 3).double().float())
    y.pow(2).sum().backward()
    recorder = tapedeck._current.recorder
    assert recorder.live_bytes == sum(storage.bytes for storage in recorder.storages.values()) > 0
    if i == 2:
        for t in [y] + list(net.parameters()) + [p.grad for p in net.parameters()]:
            print(json.dumps([recorder.var(t), list(t.shape), t.flatten().tolist()]), flush=True)
        half = y.half()
        print(recorder.var(half), flush=True)
        first = y + 1
        gone = recorder.var(first)
        del first
        print(gone, flush=True)
    opt.step(); opt.zero_grad()
"""


def reads(folder):
    """What is read of a standing program are PyTorch's own numbers; what has gone is not there."""
    with program(folder, script(folder, READ), options=("--stop", "phase == update && iteration == 2")) as live:
        live.starts()
        live.ask("unbreak 1")
        wanted = [json.loads(live.run.stdout.readline()) for _ in range(9)]
        half, gone = int(live.run.stdout.readline()), int(live.run.stdout.readline())
        for variable, shape, numbers in wanted:
            assert live.read(variable) == (shape, numbers), (variable, shape)
        assert live.ask("read %d 6" % half)["bytes"] == 6
        os.close(live.memory.pop())
        for variable in (gone, 0, 1 << 40):
            try:
                live.read(variable)
                return "%d was read" % variable
            except Failed as error:
                assert str(error) == "array %d is no longer there" % variable, error
        live.ask("continue")
        live.ends()


def saved(folder):
    """Of what autograd alone holds the numbers are there in backward."""
    text = """
import json, tapedeck, torch
net = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5))
def note(module, args, out):
    print(json.dumps([tapedeck._current.recorder.var(out), out.flatten().tolist()]), flush=True)
net[1].register_forward_hook(note)
for i in range(2):
    net(torch.randn(2, 3)).sum().backward()
"""
    with program(folder, script(folder, text), options=("--stop", "phase == backward")) as live:
        live.starts()
        live.ask("unbreak 1")
        variable, numbers = json.loads(live.run.stdout.readline())
        assert live.read(variable) == ([2, 7], numbers)
        live.ask("continue")
        live.ends()


def shown(folder):
    """Where it stands all that has run is on the tape, and no more."""
    with program(folder, "gpt.py", options=("--stop", "iteration == 1 && phase == backward")) as live:
        live.starts()
        live.ask("unbreak 1")
        for _ in range(4):
            stop = live.goes("step-op")
            rows = [row for row in cat(live.tape) if row.get("iteration") == 1 and row["record"] == "event"]
            assert len(rows) == stop["at"] and rows[-1]["phase"] == "backward", (len(rows), stop)
        head = [row for row in cat(live.tape) if row["record"] == "iteration"][-1]
        assert head["partial"] and head["ns"] < 1e12, head
        live.ask("continue")
        live.ends()
    rows = cat(live.tape)
    assert sum(row["record"] == "event" and row["iteration"] == 1 for row in rows) > 400


def alone(folder):
    """Its supervisor dies while it stands: it goes on, and its tape is whole."""
    ended = os.path.join(folder, "ended")
    path = script(folder, PLANTED.replace("print(", "open(%r, 'w').write('x'); print(" % ended))
    with program(folder, path, options=("--stop", "iteration == 1")) as live:
        live.starts()
        pid = live.ask("hello")["pid"]
        live.run.kill()
        live.run.wait()
        while os.path.exists("/proc/%d/exe" % pid):
            time.sleep(0.01)
    os.remove(ended)
    info = subprocess.run([tapedeck, "info", "--json", live.tape], capture_output=True, text=True, env=environment)
    info = json.loads(info.stdout)
    assert info["exit"]["status"] == 0 and info["iterations"] >= 4, info


def killed(folder):
    """Ended by a signal while it stands: its tape has all that has run, and says how it ended."""
    with program(folder, "gpt.py", options=("--stop", "iteration == 1 && phase == backward")) as live:
        at = live.starts()
        before = cat(live.tape)
        os.kill(live.ask("hello")["pid"], signal.SIGKILL)
        assert live.event("exited")["signal"] == signal.SIGKILL
        live.ends(128 + signal.SIGKILL)
    rows = cat(live.tape)
    assert sum(row["record"] == "event" and row["iteration"] == 1 for row in rows) == at["event"], at
    assert [row for row in rows if row["record"] != "end"] == before
    info = subprocess.run([tapedeck, "info", live.tape], capture_output=True, text=True, env=environment)
    assert "exit             signal 9\n" in info.stdout, info.stdout


def interrupted(folder):
    """Ctrl+C reaches it where it stands: an exception as at any other time."""
    text = PLANTED.replace("    opt.step()", "    try:\n        opt.step()\n    except KeyboardInterrupt:\n"
                                             "        print('caught', flush=True)")
    text = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + text
    with program(folder, script(folder, text), options=("--stop", "phase == update && iteration == 1")) as live:
        live.starts()
        live.ask("unbreak 1")
        os.kill(live.ask("hello")["pid"], signal.SIGINT)
        assert live.run.stdout.readline() == "caught\n"
        assert live.event("resumed")
        # in one way: a line that came with the first lies in its buffer, which ends() does not see
        assert live.run.stdout.readline() == "end\n"
        live.ends()


def inference(folder):
    """Of a tensor of inference mode, which counts no versions, the numbers are read all the same."""
    text = """
import tapedeck, torch
x = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
x.sum().backward(); opt.step()
with torch.inference_mode():
    y = torch.arange(3.0) + 1
    print(tapedeck._current.recorder.var(y), flush=True)
    y.tanh()
"""
    with program(folder, script(folder, text), options=("--stop", "op == tanh")) as live:
        live.starts()
        assert live.read(int(live.run.stdout.readline())) == ([3], [1.0, 2.0, 3.0])
        live.ask("continue")
        live.ends()


def outside(folder):
    """What runs after the last step is work outside, also where it has stood and been read."""
    text = """
import tapedeck, torch
x = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
x.sum().backward(); opt.step()
y = x.detach() + 1
print(tapedeck._current.recorder.var(y), flush=True)
y.tanh()
"""
    with program(folder, script(folder, text), options=("--stop", "op == tanh")) as live:
        live.starts()
        live.read(int(live.run.stdout.readline()))
        live.ask("continue")
        live.ends()
    flags = [row["flags"] & OUTSIDE for row in cat(live.tape) if row["record"] == "iteration"]
    assert flags == [0, OUTSIDE], flags


RAISES = """
import functools, os, signal, tapedeck, torch
class Late(Exception):
    pass
def late(number, frame):
    raise Late
signal.signal(signal.SIGUSR1, late)
signal.signal(signal.SIGINT, signal.default_int_handler)
recorder = tapedeck._current.recorder
def once(name, number):
    call = getattr(recorder, name)
    def first(*args):
        setattr(recorder, name, call)
        os.kill(os.getpid(), number)
        return call(*args)
    setattr(recorder, name, first)
def says(run, *args):
    try:
        run(*args)
        print("nothing", flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
x = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
x.sum().backward(); opt.step()
says(torch.cos, x)
once("operator", signal.SIGUSR1)
says(torch.sin, x)
once("flush", signal.SIGUSR1)
says(torch.tanh, x)
once("flush", signal.SIGINT)
says(torch.tanh, x)
says(torch.log, x - 5)
says(torch.mm, torch.ones(2, 3), torch.ones(2, 3))
"""


def raises(folder):
    """What a signal's handler raises reaches the program, whatever the recorder does meanwhile."""
    with program(folder, script(folder, RAISES), options=("--stop", "op == tanh", "--stop", "nan || error")) as live:
        said = [live.run.stdout.readline() for _ in range(4)]
        assert said == ["nothing\n", "Late\n", "Late\n", "KeyboardInterrupt\n"], said
        for op in ("log", "mm"):
            while [live.ask("status")[key] for key in ("state", "op")] != ["stopped", op]:
                time.sleep(0.01)
            os.kill(live.ask("hello")["pid"], signal.SIGUSR1)
            assert live.run.stdout.readline() == "Late\n"
        live.ends()


def main():
    folder = tempfile.mkdtemp(prefix="td-live-")
    try:
        for name in ("resnet", "gpt"):
            claim(name + ": paused, stepped and let go it ends with the same weights", same_weights, name, folder)
        for text, check in (("it says who it is, and what it cannot do", hello),
                            ("breakpoints stop it where they hold", breaks),
                            ("--break says where and why, and ends it", exits),
                            ("it stops behind an iteration whose graph is another", changes),
                            ("what is read are PyTorch's numbers", reads),
                            ("what autograd alone holds is read, too", saved),
                            ("what inference mode made is read, too", inference),
                            ("the tape has all that has run where it stands", shown),
                            ("work outside is marked so, stopped or not", outside),
                            ("without its supervisor it goes on", alone),
                            ("a signal that ends it is on its tape", killed),
                            ("an interrupt reaches it where it stands", interrupted),
                            ("what a signal's handler raises reaches it", raises)):
            claim(text, check, folder)
    finally:
        shutil.rmtree(folder)
    claims.end()


main()
