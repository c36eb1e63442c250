#!/usr/bin/env python3
"""`tapedeck serve` beside FastAPI with onnxruntime, the same model, in one run:

    tests/bench/serve.py BUILD [--model MODEL.onnx] [--shape 1,3,224,224] [--requests 10000] [--rounds 3]

The client is ab of apache2-utils, 64 connections at once that are kept; rounds in turn, medians.
Both servers have one process, and as many threads for the model as --threads says.  The Python of
TD_TEST_PYTHON has FastAPI, uvicorn and onnxruntime; what is absent is said, and the rest is
measured.  Without --model it is a net of 784, 256 and 10.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "app"))
# pylint: disable=wrong-import-position
from onnx_write import FLOAT, model, node  # noqa: E402
from serve_case import npy  # noqa: E402

PERCENTILES = (50, 90, 99, 100)


def mlp():
    random = np.random.default_rng(1)
    weights = [("W1", random.standard_normal((784, 256)) / 28), ("b1", np.zeros(256)),
               ("W2", random.standard_normal((256, 10)) / 16), ("b2", np.zeros(10))]
    return model([node("Gemm", ["x", "W1", "b1"], ["h"]), node("Relu", ["h"], ["r"]),
                  node("Gemm", ["r", "W2", "b2"], ["y"])], [("x", FLOAT, ["n", 784])], [("y", FLOAT, ["n", 10])],
                 [(name, w.astype(np.float32)) for name, w in weights])


def free_port():
    """One that nobody has: another server that answered there would be measured."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"the server of port {port} ended")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()  # pylint: disable=R1732
            return
        except OSError:
            time.sleep(0.05)


def measure(port, path, body, kind, requests, at_once):
    """Requests a second, milliseconds by percentile, failed ones."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        text = subprocess.run(["ab", "-q", "-k", "-l", "-s", "120", "-n", str(requests), "-c", str(at_once), "-p", file.name,
                               "-T", kind, f"http://127.0.0.1:{port}{path}"],
                              capture_output=True, text=True, check=True).stdout
    def number(pattern):
        found = re.search(pattern, text)
        return float(found[1]) if found else 0.0
    times = {p: number(rf"\n +{p}% +(\d+)") for p in PERCENTILES}
    return number(r"Requests per second: +([\d.]+)"), times, number(r"Failed requests: +(\d+)") + number(
        r"Non-2xx responses: +(\d+)"), number(r"Complete requests: +(\d+)")


def answer(port, path, body, kind):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=120) as got:
        return got.read()


def say_the_same(ports, bodies):
    """Before anything is timed: both have the same numbers."""
    first, second = [np.array(list(json.loads(answer(port, "/predict", *bodies["json"]))["outputs"].values())[0])
                     for port in ports.values()]
    if not np.allclose(first, second, rtol=1e-3, atol=1e-3 * np.abs(second).max()):
        sys.exit(f"they differ by {np.abs(first - second).max()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--model")
    parser.add_argument("--shape", default="1,784")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--forms", default="json,npy")
    parser.add_argument("--options", default="--batch 32", help="more for tapedeck serve")
    args = parser.parse_args()
    if shutil.which("ab") is None:
        sys.exit("ab (apache2-utils) is not there")
    python = os.environ.get("TD_TEST_PYTHON", sys.executable)
    peer = subprocess.run([python, "-c", "import fastapi, uvicorn, onnxruntime"], capture_output=True, check=False).returncode == 0
    if not peer:
        print(f"{python} has no FastAPI, uvicorn and onnxruntime: measured alone")
    x = np.random.default_rng(2).random([int(d) for d in args.shape.split(",")], np.float32)
    bodies = {"json": (json.dumps({"inputs": np.round(x, 6).astype(np.float64).round(6).tolist()}).encode(), "application/json"),
              "npy": (npy(x), "application/x-npy")}
    processes, ports = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = args.model or folder + "/mlp.onnx"
        if not args.model:
            pathlib.Path(path).write_bytes(mlp())
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(args.threads), "OMP_NUM_THREADS": str(args.threads)}
        try:
            ours = subprocess.Popen([args.build + "/app/tapedeck", "serve", path, "--port", "0", *args.options.split()],  # pylint: disable=R1732
                                    stdout=subprocess.PIPE, text=True, env=environment)
            processes.append(ours)
            ports["tapedeck serve"] = int(ours.stdout.readline().rsplit(":", 1)[1])
            if peer:
                ports["FastAPI"] = free_port()
                processes.append(subprocess.Popen([python, HERE / "serve_peer.py", path, str(ports["FastAPI"]),  # pylint: disable=R1732
                                                   str(args.threads)], env=environment))
            for port, process in zip(ports.values(), processes):
                wait_for(port, process)
            if any(process.poll() is not None for process in processes):
                sys.exit("a server ended, and another answers at its port")
            if peer:
                say_the_same(ports, bodies)
            for form in args.forms.split(","):
                body, kind = bodies[form]
                found = {name: [] for name in ports}
                for round_ in range(args.rounds + 1):
                    for name, port in ports.items():
                        where = "/predict-npy" if name == "FastAPI" and form == "npy" else "/predict"
                        got = measure(port, where, body, kind, max(args.requests if round_ else args.requests // 10, args.at_once),
                                      args.at_once)
                        found[name] += [got] if round_ else []  # the first warms up
                medians = {}
                for name, rounds in found.items():
                    medians[name] = [statistics.median(r[0] for r in rounds)] + [
                        statistics.median(r[1][p] for r in rounds) for p in PERCENTILES]
                    print(f"{form:4} {name:15} {medians[name][0]:8.0f} requests/s   "
                          + "  ".join(f"p{p} {t:.0f} ms" for p, t in zip(PERCENTILES, medians[name][1:]))
                          + f"   {sum(r[3] for r in rounds):.0f} answered, {sum(r[2] for r in rounds):.0f} failed")
                if peer:
                    a, b = medians["tapedeck serve"], medians["FastAPI"]
                    print(f"{form:4} {a[0] / b[0]:.1f} times the requests, p99 {a[3] / b[3]:.2f} of its")
        finally:
            for process in processes:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
