"""What tests of `tapedeck serve` share: models, a server, and clients of several kinds.

SPDX-License-Identifier: MIT
"""
import http.client
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import numpy as np
from onnx_write import FLOAT, HALF, INT64, model, node

JSON, NPY = {"Content-Type": "application/json"}, {"Content-Type": "application/x-npy"}
RANDOM = np.random.default_rng(7)
W = RANDOM.standard_normal((4, 3)).astype(np.float32)
SQUARE = (RANDOM.standard_normal((512, 512)) / 22).astype(np.float32)


def linear(weight=W):
    """y (n, 3) = x (n, 4) W."""
    return model([node("MatMul", ["x", "W"], ["y"])], [("x", FLOAT, ["n", 4])], [("y", FLOAT, ["n", 3])],
                 [("W", weight)])


def centred():
    """Rows that depend on each other: x less its mean over the first axis."""
    return model([node("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1), node("Sub", ["x", "m"], ["y"])],
                 [("x", FLOAT, ["t", 4])], [("y", FLOAT, ["t", 4])])


def table():
    """Two inputs, two outputs: rows of a table by number, and the logarithm."""
    return model([node("Gather", ["T", "ids"], ["rows"], axis=0), node("Log", ["x"], ["log"])],
                 [("ids", INT64, ["n"]), ("x", FLOAT, ["n", 2])],
                 [("rows", FLOAT, ["n", 3]), ("log", FLOAT, ["n", 2])], [("T", W)])


def coupled(limit):
    """y = x while no row's product of two numbers is above the limit, and 0 in all rows else."""
    return model([node("ReduceProd", ["x"], ["p"], axes=[1], keepdims=0), node("ReduceMax", ["p"], ["m"], keepdims=0),
                  node("Greater", ["m", "limit"], ["g"]), node("Where", ["g", "zero", "x"], ["y"])],
                 [("x", FLOAT, ["n", 2])], [("y", FLOAT, ["n", 2])],
                 [("limit", np.array(limit, np.float32)), ("zero", np.array(0, np.float32))])


def small_beside_large(n_axes):
    """y = (x + c m) s, m the maximum over all rows: large where s is, coupled where it is small, along the second axis."""
    shape = [1, 4] if n_axes == 2 else [1, 4, 1]
    c, s = np.array([0, 0, 0, 1], np.float32).reshape(shape), np.array([1e6, 1, 1, 1e-1], np.float32).reshape(shape)
    dims = ["n", 4] if n_axes == 2 else ["n", 4, 3]
    return model([node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1), node("Mul", ["m", "c"], ["d"]),
                  node("Add", ["x", "d"], ["sum"]), node("Mul", ["sum", "s"], ["y"])],
                 [("x", FLOAT, dims)], [("y", FLOAT, dims)], [("c", c), ("s", s)])


def biased():
    """y (n, 4) = x + b, where b may be left out: it is 1."""
    return model([node("Add", ["x", "b"], ["y"])], [("x", FLOAT, ["n", 4]), ("b", FLOAT, [4])], [("y", FLOAT, ["n", 4])],
                 [("b", np.ones(4, np.float32))])


def trained():
    """Batch normalization in training mode."""
    return model([node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], training_mode=1)],
                 [("x", FLOAT, ["n", 4])], [("y", FLOAT, ["n", 4])],
                 [(name, np.ones(4, np.float32)) for name in "sbmv"])


def of_type(number):
    """y = x, of one of ONNX's element types."""
    return model([node("Identity", ["x"], ["y"])], [("x", number, ["n"])], [("y", number, ["n"])])


def halves():
    """y = x + x, of half floats."""
    return model([node("Add", ["x", "x"], ["y"])], [("x", HALF, ["n", 2])], [("y", HALF, ["n", 2])])


def heavy(depth):
    """A product of 512 x 512 after the other, for each row."""
    names = ["x"] + [f"h{i}" for i in range(depth - 1)] + ["y"]
    return model([node("MatMul", [a, "S"], [b]) for a, b in zip(names, names[1:])],
                 [("x", FLOAT, ["n", 512])], [("y", FLOAT, ["n", 512])], [("S", SQUARE)])


def rounds():
    """y (n, 512) = the positive part of (x + m) - m, m the maximum over all rows, which rounds otherwise for each m."""
    return model([node("ReduceMax", ["x"], ["m"], keepdims=0), node("Add", ["x", "m"], ["a"]), node("Sub", ["a", "m"], ["b"]),
                  node("Relu", ["b"], ["y"])], [("x", FLOAT, ["n", 512])], [("y", FLOAT, ["n", 512])])


def npy(*arrays):
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


def npy_arrays(data):
    file, out = io.BytesIO(data), []
    while file.tell() < len(data):
        out.append(np.load(file))
    return out


class Server:
    """`tapedeck serve`, at a port of its own."""

    def __init__(self, program, path, *options):
        self.program, self.path = program, path
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.errors = open(str(path) + ".errors", "w+", encoding="utf-8")  # pylint: disable=R1732
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, "serve", str(path), "--port", "0", *map(str, options)], stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env=environment)
        self.line = self.process.stdout.readline()
        self.port = int(self.line.rsplit(":", 1)[1]) if ":" in self.line else 0

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.errors.close()

    def said(self):
        self.errors.flush()
        return pathlib.Path(self.errors.name).read_text(encoding="utf-8")

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """The exit status after a signal."""
        self.send(number)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "it does not stop"

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of one answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def predict(self, inputs, **more):
        """Status, and what the JSON says."""
        body = inputs if isinstance(inputs, (str, bytes)) else json.dumps({"inputs": inputs})
        status, _, data = self.ask("POST", "/predict", body, {**JSON, **more})
        return status, json.loads(data)

    def raw(self, data, timeout=30):
        """All that comes back for these bytes until the server closes, or nothing comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as s:
            s.sendall(data)
            s.settimeout(timeout)
            return read_all(s)

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        found = [line.split()[-1] for line in text.splitlines() if line.startswith(f"tapedeck_serve_{name} ")]
        return float(found[0]) if found else None

    def wait_for(self, name, value, seconds=20):
        """Until a metric is at least that."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if (self.metric(name) or 0) >= value:
                return True
            time.sleep(0.01)
        return False


def read_all(s):
    out = b""
    try:
        while part := s.recv(65536):
            out += part
    except (TimeoutError, ConnectionResetError):
        out += b"<broken>"
    return out


def post(body, headers="", path="/predict"):
    """The bytes of a request."""
    data = body.encode() if isinstance(body, str) else body
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data
