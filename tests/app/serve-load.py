#!/usr/bin/env python3
"""serve-load.py TAPEDECK: `tapedeck serve` with many clients and bad ones: reload, stop, limits, tapes.

SPDX-License-Identifier: MIT
"""
import http.client
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from numpy_here import np  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from checks import Report  # noqa: E402
from serve_case import JSON, NPY, RANDOM, W, Server, heavy, linear, npy, npy_arrays, post, read_all, table  # noqa: E402

ROW = RANDOM.standard_normal((1, 4)).astype(np.float32)
HEAVY_ROWS = RANDOM.standard_normal((8, 512)).astype(np.float32)


class Clients:
    """Threads that ask the same again and again, each on a connection of its own."""

    def __init__(self, server, n, body, headers):
        self.server, self.body, self.headers = server, body, headers
        self.ends, self.answers, self.broken = False, [], []
        self.threads = [threading.Thread(target=self.one) for _ in range(n)]
        for t in self.threads:
            t.start()

    def one(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while not self.ends:
            try:
                connection.request("POST", "/predict", self.body, self.headers)
                answer = connection.getresponse()
                self.answers.append((answer.status, answer.read()))
            except OSError as error:
                self.broken.append(repr(error))
                return
            except http.client.HTTPException as error:
                self.broken.append(repr(error))
                return
        connection.close()

    def end(self):
        self.ends = True
        for t in self.threads:
            t.join()

    def wait(self, n):
        until = time.monotonic() + 120
        while len(self.answers) < n and time.monotonic() < until:
            time.sleep(0.005)


def reload_under_load(program, folder):
    """Each answer is the old model's or the new one's, and all are the new one's in the end."""
    path = pathlib.Path(folder, "reload.onnx")
    path.write_bytes(linear())
    problems = []
    with Server(program, path) as server:
        clients = Clients(server, 16, npy(ROW), NPY)
        clients.wait(100)
        for k in range(1, 11):
            path.write_bytes(linear(W * np.float32(k + 1)))
            server.send(signal.SIGHUP)
            if not server.wait_for("reloads_total", k):
                problems.append(f"reload {k} does not come")
            clients.wait(len(clients.answers) + 50)
        asked = len(clients.answers)
        clients.wait(asked + 100)
        clients.end()
        wrong = [a for a in clients.answers if a[0] != 200]
        factors = [float(np.median(npy_arrays(data)[0] / (ROW @ W))) for status, data in clients.answers if status == 200]
        odd = [f for f in factors if abs(f - round(f)) > 1e-4 or not 1 <= round(f) <= 11]
        problems += clients.broken[:3] + [f"status {a}" for a in wrong[:3]] + [f"answer times {f}" for f in odd[:3]]
        if any(round(f) != 11 for f in factors[asked + 32:]):
            problems.append("answers of an older model after the last reload")
        # Files that cannot be loaded: the old one stays.
        path.write_bytes(b"broken")
        server.send(signal.SIGHUP)
        if not server.wait_for("reloads_failed_total", 1):
            problems.append("the failure is not counted")
        status, said = server.predict(ROW.tolist())
        if status != 200 or not np.allclose(said["outputs"]["y"], ROW @ W * 11, rtol=1e-4):
            problems.append(f"after a broken file: {status} {said}")
        if "the model from before stays" not in server.said():
            problems.append(f"it says {server.said()!r}")
        # Another signature: requests are held against the new one.
        path.write_bytes(table())
        server.send(signal.SIGHUP)
        server.wait_for("reloads_total", 11)
        status, said = server.predict({"x": [[1, 1]], "ids": [2]})
        if status != 200 or server.predict(ROW.tolist())[0] != 400:
            problems.append(f"another signature: {status} {said}")
        stopped = server.stop()
    return problems + ([f"exit {stopped}"] if stopped != 0 else [])


def many(program, path):
    """Each answer is held against the product; nothing is counted as anything but 200."""
    with Server(program, path) as server:
        clients = Clients(server, 64, npy(ROW), NPY)
        clients.wait(10000)
        clients.end()
        wrong = [a for a in clients.answers if a[0] != 200
                 or not np.allclose(npy_arrays(a[1])[0], ROW @ W, rtol=1e-4, atol=1e-5)]
        counted = server.metric("request_seconds_count")
        problems = clients.broken[:3] + [repr(a)[:200] for a in wrong[:3]]
        if len(clients.answers) < 10000 or counted != len(clients.answers):
            problems.append(f"{len(clients.answers)} answers, {counted} counted")
    return problems


def stop_under_load(program, path):
    """What was asked before is answered; then 503, or nobody listens."""
    problems = []
    with Server(program, path) as server:
        clients = Clients(server, 16, npy(HEAVY_ROWS), NPY)
        clients.wait(50)
        begin = time.monotonic()
        status = server.stop()
        took = time.monotonic() - begin
        clients.end()
        others = {a[0] for a in clients.answers} - {200, 503}
        if status != 0 or others or took > 8:
            problems.append(f"exit {status} after {took:.1f} s, statuses {others}")
        # A connection that is closed between two requests is no lost request; one in the middle is.
        lost = [b for b in clients.broken if "refused" not in b and "RemoteDisconnected" not in b
                and "ConnectionReset" not in b and "BrokenPipe" not in b]
        problems += lost[:3]
    return problems


def stop_answers_what_waits(program, path):
    """Twelve requests in the queue and a half one when the signal comes."""
    problems = []
    with Server(program, path, "--batch", 1) as server:
        body = npy(np.repeat(HEAVY_ROWS, 8, 0))
        request = post(body).replace(b"application/json", b"application/x-npy")
        open_ones = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(13)]
        for s in open_ones[:12]:
            s.sendall(request)
        open_ones[12].sendall(request[:-100])
        until = time.monotonic() + 20
        while (server.metric("connections_busy") or 0) < 13 and time.monotonic() < until:
            time.sleep(0.005)
        server.send(signal.SIGTERM)
        time.sleep(0.2)
        open_ones[12].sendall(request[-100:])
        got = [read_all(s) for s in open_ones]
        problems += [f"answer {g[:60]!r}" for g in got if not g.startswith(b"HTTP/1.1 200")]
        after = [b"Connection: close" in g for g in got]  # the others were answered before the signal
        if not after[12] or sum(after) < 6:
            problems.append(f"answers that end the connection: {after}")
        status = server.process.wait(30)
        if status != 0:
            problems.append(f"exit {status}")
    return problems


def full_queue(program, path):
    problems = []
    with Server(program, path, "--queue", 2, "--batch", 1) as server:
        clients = Clients(server, 12, npy(HEAVY_ROWS), NPY)
        clients.wait(100)
        clients.end()
        statuses = {a[0] for a in clients.answers}
        said = [json.loads(data)["error"] for status, data in clients.answers if status == 503]
        if statuses != {200, 503} or not all("wait already" in s for s in said) or clients.broken:
            problems.append(f"statuses {statuses}, {said[:2]}, {clients.broken[:2]}")
        if server.ask("POST", "/predict", npy(HEAVY_ROWS), NPY)[0] != 200:
            problems.append("no answer afterwards")
    return problems


def late_ones(program, path):
    """In the queue for longer than --timeout."""
    with Server(program, path, "--timeout", 300, "--batch", 1) as server:
        clients = Clients(server, 40, npy(np.repeat(HEAVY_ROWS, 8, 0)), NPY)
        clients.wait(80)
        clients.end()
        late = [json.loads(data)["error"] for status, data in clients.answers if status == 503]
        # On a busy machine they come late, too, and connections are idle for as long.
        others = {a[0] for a in clients.answers} - {200, 503, 408}
        broken = [b for b in clients.broken if "RemoteDisconnected" not in b]
        if not late or not all("waited longer than 300 ms" in s for s in late) or others or broken:
            return [f"{len(late)} late of {len(clients.answers)}, {late[:1]}, statuses {others}, {broken[:2]}"]
    return []


def slow_ones(program, path):
    """Half-open clients, and those that send or read a byte now and then, hold nobody up."""
    problems, request = [], post(json.dumps({"inputs": ROW.tolist()}))
    with Server(program, path, "--timeout", 1500, "--connections", 40) as server:
        begin = time.monotonic()
        silent = [socket.create_connection(("127.0.0.1", server.port), 20) for _ in range(10)]
        half = [socket.create_connection(("127.0.0.1", server.port), 20) for _ in range(10)]
        drips = [socket.create_connection(("127.0.0.1", server.port), 20) for _ in range(10)]
        for s in half:
            s.sendall(request[:-5])
        for i in range(12):
            for s in drips:  # headers that never end
                try:
                    s.sendall(b"POST /predict HTTP/1.1\r\n" if i == 0 else b"X-A: b\r\n")
                except OSError:
                    pass
            if server.predict(ROW.tolist())[0] != 200:
                problems.append("no answer beside them")
            time.sleep(0.05)
        for what, many in [("silent", silent), ("half a body", half)]:
            for s in many:
                got = read_all(s)
                if b" 408 " not in got or b"within 1500 ms" not in got:
                    problems.append(f"{what}: {got!r}")
        for s in drips:
            got = read_all(s)
            if b" 408 " not in got and b"<broken>" not in got:
                problems.append(f"drips: {got!r}")
        if time.monotonic() - begin > 20:
            problems.append(f"they were held for {time.monotonic() - begin:.1f} s")
        dropped = server.metric("clients_dropped_total")
        if dropped < 30:
            problems.append(f"{dropped} of 30 dropped")
        # A connection without a request is closed, and says nothing.
        with socket.create_connection(("127.0.0.1", server.port), 20) as s:
            s.sendall(request)
            got = read_all(s)
            if got.count(b"HTTP/1.1") != 1 or b" 200 " not in got:
                problems.append(f"kept alive: {got!r}")
    return problems[:8]


def slow_reader(program, folder):
    """An answer of 40 MB that nobody takes is given up, and what others ask is answered."""
    path = pathlib.Path(folder, "reader.onnx")
    path.write_bytes(heavy(1))
    with Server(program, path, "--timeout", 5000) as server:
        body = npy(np.zeros((20000, 512), np.float32))
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.sendall(post(body).replace(b"application/json", b"application/x-npy"))
            begin = time.monotonic()
            if not server.wait_for("clients_dropped_total", 1, 60):
                return ["it is never given up"]
            if time.monotonic() - begin > 30:
                return ["it is held for long"]
        return [] if server.ask("GET", "/health")[0] == 200 else ["no answer afterwards"]


def large_bodies(program, path):
    problems = []
    with Server(program, path, "--max-body", 100000, "--timeout", 20000) as server:
        # All of 1 GB is sent by a client that does not look: it is read, kept nowhere, refused.
        with socket.create_connection(("127.0.0.1", server.port), 60) as s:
            s.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Connection: close\r\nContent-Length: 1073741824\r\n\r\n")
            part = b"1" * (1 << 20)
            for _ in range(1024):
                s.sendall(part)
            got = read_all(s)
        if b" 413 " not in got or b"100000 bytes" not in got:
            problems.append(f"1 GB: {got[:200]!r}")
        memory = int(pathlib.Path(f"/proc/{server_pid(server)}/status").read_text(encoding="utf-8")
                     .split("VmHWM:")[1].split()[0])
        if memory > 1000000:
            problems.append(f"{memory} kB were used")
        # One that asks first is told at once.
        got = server.raw(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Expect: 100-continue\r\nContent-Length: 1073741824\r\n\r\n", 5)
        if not got.startswith(b"HTTP/1.1 413") or b"100 Continue" in got:
            problems.append(f"asked first: {got[:200]!r}")
        # In chunks nobody knows before.
        got = server.raw(b"POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n" + (b"8000\r\n" + b" " * 32768 + b"\r\n") * 8 + b"0\r\n\r\n")
        if b" 413 " not in got:
            problems.append(f"chunks: {got[:200]!r}")
        if server.predict(ROW.tolist())[0] != 200:
            problems.append("no answer afterwards")
    return problems


def server_pid(server):
    return server.process.pid


def killed(program, path, folder):
    """SIGKILL: the tape is whole up to the last request, and the port is free again."""
    tape = str(pathlib.Path(folder, "killed.tdtape"))
    with Server(program, path, "--record", tape) as server:
        port = server.port
        status = [server.predict(ROW.tolist(), **{"X-Tapedeck-Record": "1"})[0] for _ in range(3)]
        server.process.kill()
        server.process.wait()
    info = subprocess.run([program, "info", tape, "--json"], capture_output=True, text=True, check=False)
    problems = [] if status == [200] * 3 and info.returncode == 0 else [f"{status}, info: {info.stderr}"]
    with Server(program, path, "--port", port) as server:
        if server.port != port:
            problems.append(f"port {port} is taken: {server.said()}")
    return problems


def recorded(program, path, folder):
    """Requests that ask for it, and only those, with their numbers; the header says where."""
    tape = str(pathlib.Path(folder, "asked.tdtape"))
    problems, iterations = [], []
    with Server(program, path, "--record", tape) as server:
        for i in range(12):
            x = ROW + i
            ask = {"X-Tapedeck-Record": "1"} if i % 4 == 1 else {}
            status, headers, data = server.ask("POST", "/predict", npy(x), {**NPY, **ask})
            if status != 200 or not np.allclose(npy_arrays(data)[0], x @ W, rtol=1e-4, atol=1e-5):
                problems.append(f"answer {i}: {status}")
            if ("X-Tapedeck-Iteration" in headers) != (i % 4 == 1):
                problems.append(f"answer {i}: {headers}")
            iterations += [int(headers["X-Tapedeck-Iteration"])] if "X-Tapedeck-Iteration" in headers else []
        live = subprocess.run([program, "cat", tape], capture_output=True, text=True, check=False).stdout
        if live.count("asked to be recorded") != 3:
            problems.append(f"the tape lacks them while it grows: {live[:500]}")
        status = server.stop()
        problems += [f"exit {status}"] if status != 0 else []
    about = json.loads(subprocess.run([program, "info", tape, "--json"], capture_output=True, text=True, check=False).stdout)
    if about["program"] != "tapedeck serve" or about["device"] != "cpu" or len(about["parameters"]) != 1:
        problems.append(f"info: {about!r:.400}")
    check = subprocess.run([program, "check", tape], capture_output=True, text=True, check=False)
    if check.returncode != 0:
        problems.append(f"check: {check.stdout} {check.stderr}")
    text = subprocess.run([program, "cat", tape, "--json"], capture_output=True, text=True, check=False).stdout
    rows = [json.loads(line) for line in text.splitlines()]
    numbers = [row["number"] for row in rows if row["record"] == "iteration"]
    noted = [row["iteration"] for row in rows if row["record"] == "notice" and "asked" in row["text"]]
    if not numbers == noted == iterations or len(numbers) != 3:
        problems.append(f"iterations {numbers} on the tape, words of {noted}, {iterations} told")
    if "matmul" not in text.lower():
        problems.append("no product on the tape")
    return problems


def slow_recorded(program, path, folder):
    tape = str(pathlib.Path(folder, "slow.tdtape"))
    problems = []
    with Server(program, path, "--record", tape, "--record-slow", 5) as server:
        for rows in (1, 4096):
            status, _, _ = server.ask("POST", "/predict", npy(np.ones((rows, 512), np.float32)), NPY)
            problems += [f"status {status}"] if status != 200 else []
        if not server.wait_for("recorded_total", 1):
            problems.append("the slow one was not recorded")
        server.stop()
    text = subprocess.run([program, "cat", tape], capture_output=True, text=True, check=False).stdout
    if "run again" not in text or "waited" not in text:
        problems.append(f"the tape does not say why: {text[:400]}")
    return problems


def main():
    report = Report()
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in [("linear", linear()), ("heavy", heavy(40))]:
            paths[name] = pathlib.Path(folder, name + ".onnx")
            paths[name].write_bytes(data)
        report.claim("10,000 requests and more of 64 clients at once, no error", many(program, paths["linear"]))
        report.claim("SIGHUP under load loses no request, a broken file changes nothing", reload_under_load(program, folder))
        report.claim("SIGTERM under load ends it soon, with whole answers", stop_under_load(program, paths["heavy"]))
        report.claim("SIGTERM answers what waits and what is half there", stop_answers_what_waits(program, paths["heavy"]))
        report.claim("a full queue is said, and nothing else is lost", full_queue(program, paths["heavy"]))
        report.claim("who waits too long is told", late_ones(program, paths["heavy"]))
        report.claim("slow and half-open clients are dropped with a word", slow_ones(program, paths["linear"]))
        report.claim("a client that reads nothing is given up", slow_reader(program, folder))
        report.claim("bodies beyond --max-body are refused, 1 GB too", large_bodies(program, paths["linear"]))
        report.claim("SIGKILL leaves a tape that can be read, and a free port", killed(program, paths["linear"], folder))
        report.claim("requests that ask for it are on the tape", recorded(program, paths["linear"], folder))
        report.claim("a slow request is run again, recorded", slow_recorded(program, paths["heavy"], folder))
    report.end()


if __name__ == "__main__":
    main()
