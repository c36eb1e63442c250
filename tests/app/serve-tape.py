#!/usr/bin/env python3
"""serve-tape.py TAPEDECK: `tapedeck serve --record`, what the tape says of a model that is loaded anew.

SPDX-License-Identifier: MIT
"""
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
import subprocess  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from checks import Report  # noqa: E402
from serve_case import NPY, RANDOM, Server, heavy, linear, npy  # noqa: E402

ROW = [[1, 2, 3, 4]]
RECORD = {"X-Tapedeck-Record": "1"}


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


def records(program, tape):
    return [json.loads(line) for line in run(program, "cat", tape, "--json").stdout.splitlines()]


def ends(rows):
    """Bytes that live at the end of each iteration, by what is allocated and freed on the tape."""
    live, out = 0, []
    for row in rows:
        if row["record"] == "iteration":
            out.append(live)
        elif row["record"] == "memory":
            live += row["bytes"] if row["kind"] == "alloc" else -row["bytes"]
    return out[1:] + [live]


def reload(server):
    """Load the file anew; how often that was done, and how often refused."""
    def counts():
        return [server.metric(name) or 0 for name in ("reloads_total", "reloads_failed_total")]

    before = now = counts()
    server.send(signal.SIGHUP)
    until = time.monotonic() + 30
    while now == before and time.monotonic() < until:
        time.sleep(0.005)
        now = counts()
    return [b - a for a, b in zip(before, now)]


def one_model(program, folder):
    """The same file five times: one graph, two names, and the memory of one model alone."""
    path, tape = pathlib.Path(folder, "again.onnx"), pathlib.Path(folder, "again.tdtape")
    path.write_bytes(linear())
    problems = []
    with Server(program, path, "--record", tape) as server:
        for _ in range(5):
            server.predict(ROW, **RECORD)
            if reload(server) != [1, 0]:
                problems.append("it is not loaded anew")
        for _ in range(2):
            server.predict(ROW, **RECORD)
        server.stop()
    about = json.loads(run(program, "info", tape, "--json").stdout)
    rows = records(program, tape)
    iterations = [row for row in rows if row["record"] == "iteration"]
    if len(iterations) != 7 or about["distinct_graphs"] != 1 or len(about["parameters"]) != 1:
        problems.append(f"{len(iterations)} iterations, {about['distinct_graphs']} graphs, parameters {about['parameters']}")
    paths = {row["link"] for row in rows if row["record"] == "event"}
    if len(paths) != 1 or "#" in str(paths) or "replaced" in str(paths):
        problems.append(f"layers {paths}")
    live = ends(rows)
    if len(set(live)) != 1 or live[0] == 0:
        problems.append(f"{live} bytes at the ends of iterations")
    if iterations[-1]["peak_bytes"] != iterations[0]["peak_bytes"]:
        problems.append(f"peaks of {[row['peak_bytes'] for row in iterations]} bytes")
    return problems


def one_line(program, folder):
    """Five requests that asked for it are one line for `check`, and one a side for `diff`, with how many there are."""
    path, tape = pathlib.Path(folder, "five.onnx"), pathlib.Path(folder, "five.tdtape")
    path.write_bytes(linear())
    with Server(program, path, "--record", tape) as server:
        for _ in range(5):
            server.predict(ROW, **RECORD)
        server.stop()
    problems, where = [], f"{tape}: iteration 0: request 0 asked to be recorded"
    others = " (and 4 more of that sort, the last of iteration 4: request 4 asked to be recorded)"
    said = [line for line in run(program, "check", tape).stdout.splitlines() if "asked" in line]
    if said != [where + others]:
        problems.append(f"check: {said}")
    diff = run(program, "diff", tape, tape, "--by", "layer")
    said = [line for line in diff.stdout.splitlines() if "asked" in line]
    if diff.returncode == 127:
        print("# diff is skipped: a build without tapedeck-viz")
    elif said != [f"{side}: request 0 asked to be recorded{others}" for side in "AB"]:
        problems.append(f"diff: {said} {diff.stderr}")
    return problems


def only_one(program, folder):
    """X-Tapedeck-Record: 1 records, 0 does not, and what is neither is refused."""
    path, tape = pathlib.Path(folder, "asked.onnx"), pathlib.Path(folder, "asked.tdtape")
    path.write_bytes(linear())
    problems = []
    with Server(program, path, "--record", tape) as server:
        for value, status in [("1", 200), ("0", 200), ("", 400), ("true", 400), ("yes", 400), ("2", 400), ("01", 400)]:
            got, said = server.predict(ROW, **{"X-Tapedeck-Record": value})
            if got != status or (status == 400 and "X-Tapedeck-Record: 1 expected" not in said["error"]):
                problems.append(f"{value!r}: {got} {said}, {status} expected")
        server.stop()
    n = sum(row["record"] == "iteration" for row in records(program, tape))
    return problems + ([] if n == 1 else [f"{n} iterations"])


def not_loaded(program, folder):
    """Of a file that cannot be loaded the tape has no iteration, no parameter and no memory."""
    path, tape = pathlib.Path(folder, "broken.onnx"), pathlib.Path(folder, "broken.tdtape")
    path.write_bytes(linear())
    problems = []
    with Server(program, path, "--record", tape) as server:
        server.predict(ROW, **RECORD)
        for data in (b"junk", linear()[:-40], linear().replace(b"MatMul", b"MatMux"), b""):
            path.write_bytes(data)
            if reload(server) != [0, 1]:
                problems.append(f"{data[:9]!r} is loaded")
        server.predict(ROW, **RECORD)
        server.stop()
    rows = records(program, tape)
    iterations = [row for row in rows if row["record"] == "iteration"]
    if len(iterations) != 2 or any(row["events"] != 1 for row in iterations):
        problems.append(f"iterations {[(row['number'], row['events']) for row in iterations]}")
    elif iterations[0]["peak_bytes"] != iterations[1]["peak_bytes"]:
        problems.append(f"peaks of {[row['peak_bytes'] for row in iterations]} bytes")
    if [row for row in rows if row["record"] == "notice" and row["kind"] == "error"]:
        problems.append("an error of no iteration is on the tape")
    return problems


def with_the_old_one(program, folder):
    """A request that waits while the model is loaded anew runs with the old one, which has another name then."""
    path, tape = pathlib.Path(folder, "old.onnx"), pathlib.Path(folder, "old.tdtape")
    path.write_bytes(heavy(4))
    rows = npy(RANDOM.standard_normal((16384, 512)).astype(np.float32))
    problems, got = [], {}
    with Server(program, path, "--record", tape) as server:
        def ask(name, body, headers):
            got[name] = server.ask("POST", "/predict", body, {**NPY, **headers})[0]

        slow = threading.Thread(target=ask, args=("slow", rows, {}))
        slow.start()
        while (server.metric("connections_busy") or 0) < 2 and slow.is_alive():
            time.sleep(0.002)
        waits = [threading.Thread(target=ask, args=(name, npy(np.ones((1, 512), np.float32)), RECORD)) for name in "ab"]
        for t in waits:
            t.start()
        while (server.metric("queue_length") or 0) < 2 and slow.is_alive():
            time.sleep(0.002)
        reload(server)
        for t in waits + [slow]:
            t.join()
        ask("new", npy(np.ones((1, 512), np.float32)), RECORD)
        server.stop()
    layers = {}
    for row in records(program, tape):
        if row["record"] == "event":
            layers.setdefault(row["iteration"], set()).add(row["link"].split("/")[0])
    names = [min(layers[i]) for i in sorted(layers)]
    if set(got.values()) != {200} or len(names) != 3 or any(len(of) != 1 for of in layers.values()):
        problems.append(f"statuses {got}, layers {layers}")
    elif "replaced" in names[2] or {name.replace(" (replaced)", "") for name in names} != {names[2]}:
        problems.append(f"the old, the old and the new one are {names}")
    return problems


def main():
    report = Report()
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        report.claim("a model that is loaded anew is the same one on the tape", one_model(program, folder))
        report.claim("only X-Tapedeck-Record: 1 records", only_one(program, folder))
        report.claim("many that asked to be recorded are one line", one_line(program, folder))
        report.claim("a file that cannot be loaded leaves nothing on the tape", not_loaded(program, folder))
        report.claim("who waited while it was loaded has the old one, by another name", with_the_old_one(program, folder))
    report.end()


if __name__ == "__main__":
    main()
