#!/usr/bin/env python3
"""serve.py TAPEDECK [ROUNDS [SEED]]: requests to `tapedeck serve` that may be anything.

Good requests, one, chunked or several in a row, are changed: bytes, pieces missing or there twice, an
end too early, a connection that is reset.  What comes back begins as an answer, or is nothing; the
server answers a good request in between, ends with 0, and has freed every connection.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/meta"), str(ROOT / "tests/app")]
# pylint: disable=wrong-import-position
import numpy_here  # noqa: E402, F401  # pylint: disable=unused-import
import random  # noqa: E402
import socket  # noqa: E402
import time  # noqa: E402
from checks import Report  # noqa: E402
from serve_case import W, Server, linear, npy, post  # noqa: E402

GOOD = '{"inputs": {"x": [[1, 2, 3, 4], ["nan", -0.5e2, 1e-3, 0]]}}'
ARRAY = npy(W.T.copy())
RESET = b"\1\0\0\0\0\0\0\0"
SEEDS = [
    post(GOOD), post(GOOD, "Accept: application/x-npy\r\nConnection: close\r\n"), post(GOOD) * 3,
    post(ARRAY).replace(b"application/json", b"application/x-npy"),
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /model HTTP/1.0\r\n\r\n",
    post("", "Expect: 100-continue\r\n").replace(b"Length: 0", b"Length: 64") + GOOD.encode(),
    b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (GOOD[:9].encode(), GOOD[9:].encode())) + b"0\r\n\r\n",
    post('{"inputs": [%s]}' % ",".join(["[1, 2, 3, 4]"] * 6000)),
    post(GOOD, "Accept: application/x-npy;q=0.5, */*;q=0.1\r\n").replace(b"POST /", b"POST http://x/")]


def change(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(0, 5)):
        at, n = rng.randrange(len(data) + 1), rng.randint(1, 12)
        how = rng.randrange(5)
        if how == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at:at + n]
        elif how == 2:
            data[at:at] = data[at:at + n]
        elif how == 3:
            data[at:at] = rng.choice([b"\r\n", b"\0", b"-1", b"99999999999", b"[[[[", b"chunked", b": ", b"\x93NUMPY",
                                      b" :", b"\r\n ", b"\r", b"\r\nContent-Length: 5", b"\r\nHost: y", b";q=0.", b"http://"])
        elif rng.random() < 0.2:
            del data[at:]
    return bytes(data)


def send(port, data, rng):
    """What came back in a moment."""
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        try:
            s.sendall(data)
            how = rng.random()
            if how < 0.2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return b""
            if how < 0.6:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(0.01)
            return s.recv(65536)
        except OSError:
            return b""


def main():
    report = Report()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    problems, n_answers = [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "linear.onnx")
        path.write_bytes(linear())
        with Server(sys.argv[1], path, "--timeout", 1000) as server:
            for i in range(rounds):
                data = change(rng.choice(SEEDS), rng)
                got = send(server.port, data, rng)
                n_answers += got != b""
                if got and not got.startswith(b"HTTP/1."):
                    problems.append(f"round {i}: {data!r:.300} gives {got!r:.200}")
                if i % 100 == 99 and server.predict([[1, 2, 3, 4]])[0] != 200:
                    problems.append(f"round {i}: no answer to a good one")
            until = time.monotonic() + 30
            n_open = server.metric("connections")
            while n_open != 1 and time.monotonic() < until:  # the one that asks
                time.sleep(0.05)
                n_open = server.metric("connections")
            if n_open != 1:
                problems.append(f"{n_open} connections are still there")
            status = server.stop()
            if status != 0:
                problems.append(f"exit {status}: {server.said()[:2000]}")
    report.claim(f"{rounds} requests were answered ({n_answers} at once) or closed, and the server is whole", problems[:8])
    report.end()


if __name__ == "__main__":
    main()
