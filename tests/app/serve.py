#!/usr/bin/env python3
"""serve.py TAPEDECK: `tapedeck serve`, its answers and what it refuses.

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
import shutil  # noqa: E402
import subprocess  # noqa: E402
import threading  # noqa: E402
from checks import Report  # noqa: E402
from serve_case import (JSON, NPY, RANDOM, W, Server, biased, centred, coupled, halves, linear,  # noqa: E402
                        npy, npy_arrays, of_type, post, rounds, small_beside_large, table, trained)


def expect(*pairs):
    """A line for each (what, got, want) that differs."""
    return [f"{what}: {got!r}, {want!r} expected" for what, got, want in pairs if got != want]


def near(what, got, want):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
        return []
    return [f"{what}: {got.tolist()!r:.300}, {want.tolist()!r:.300} expected"]


def refused(what, answer, status, word):
    """One line of text that names what is wrong."""
    got, said = answer
    if got == status and set(said) == {"error"} and word in said["error"] and "\n" not in said["error"]:
        return []
    return [f"{what}: {got} {said!r:.300}, {status} with {word!r} expected"]


# --- answers ---

def json_answers(server):
    x = RANDOM.standard_normal((5, 4)).astype(np.float32)
    status, said = server.predict({"x": x.tolist()})
    problems = expect(("status", status, 200)) or near("by name", said["outputs"]["y"], x @ W)
    status, said = server.predict(x.tolist())
    return problems + (expect(("status", status, 200)) or near("array alone", said["outputs"]["y"], x @ W))


def float32_comes_back(server):
    """Nine digits are enough for every bit of it."""
    x = RANDOM.standard_normal((64, 4)).astype(np.float32)
    exact = npy_arrays(server.ask("POST", "/predict", npy(x), NPY)[2])[0]
    status, said = server.predict(x.tolist())
    return expect(("status", status, 200), ("bits", np.float32(said["outputs"]["y"]).tobytes(), exact.tobytes()))


def npy_answers(server):
    problems = []
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    for what, array in [("f4", x), ("f8", x.astype(np.float64)), ("Fortran", np.asfortranarray(x)),
                        ("f2", x.astype(np.float16))]:
        status, headers, data = server.ask("POST", "/predict", npy(array), NPY)
        problems += expect((what, status, 200), ("type", headers.get("Content-Type"), "application/x-npy"))
        if status == 200:
            problems += near(what, npy_arrays(data)[0], np.asarray(array, np.float32) @ W)
    status, headers, data = server.ask("POST", "/predict", npy(x), {**NPY, "Accept": "application/json"})
    problems += expect(("status", status, 200), ("accepted", headers.get("Content-Type"), "application/json"))
    status, headers, data = server.ask("POST", "/predict", json.dumps({"inputs": x.tolist()}),
                                       {**JSON, "Accept": "text/html, application/x-npy;q=1"})
    problems += expect(("accepted", headers.get("Content-Type"), "application/x-npy"))
    return problems + near("the other way", npy_arrays(data)[0], x @ W)


def several_ports(server):
    x = np.float32([[1, 0], [-1, 2]])
    with np.errstate(all="ignore"):
        want = np.log(x)
    status, said = server.predict({"x": x.tolist(), "ids": [3, 0]})
    problems = expect(("status", status, 200)) or near("rows", said["outputs"]["rows"], W[[3, 0]])
    problems += expect(("not finite", said["outputs"]["log"][0][1], "-inf"),
                       ("no number", said["outputs"]["log"][1][0], "nan"))
    status, _, data = server.ask("POST", "/predict", npy(np.int64([3, 0]), x), NPY)
    problems += expect(("status", status, 200)) or near("npy", npy_arrays(data)[1], want)
    status, said = server.predict({"x": [["inf", "nan"]], "ids": [1]})
    return problems + expect(("words go in", (status, said["outputs"]["log"]), (200, [["inf", "nan"]])))


def half_floats(server):
    """1/3 as a half float, times two."""
    third = float(np.float16(1 / 3))
    status, said = server.predict([[1 / 3, "inf"]])
    y = said["outputs"]["y"][0]
    problems = expect(("JSON", (status, np.float32(y[0]), y[1]), (200, 2 * third, "inf")))
    for value in (70000, -1e6, 65520):
        problems += refused(f"JSON, {value}", server.predict([[1, value]]), 400, "element 1: a number that float16")
    status, _, data = server.ask("POST", "/predict", npy(np.float32([[1e6, 1]])), NPY)
    problems += refused("npy, 1e6", (status, json.loads(data)), 400, "element 0: a number that float16")
    problems += expect(("the largest", server.predict([[1, 65519]])[0], 200))
    status, _, data = server.ask("POST", "/predict", npy(np.float16([[1 / 3, 1]])), NPY)
    y = npy_arrays(data)[0]
    problems += expect(("npy", (status, y.dtype.name, y.tolist()), (200, "float32", [[2 * third, 2]])))
    said = json.loads(server.ask("GET", "/model")[2])["inputs"][0]
    return problems + expect(("/model", (said["dtype"], said["wire"]), ("f16", "f32")))


def left_out(program, path):
    """b has a default, comes behind x, and stops no gathering of those that leave it out."""
    problems = []
    x, b = np.float32([[1, 2, 3, 4]]), np.float32([1, 0, 0, 9])
    with Server(program, path, "--deadline", 200, "--batch", 64) as server:
        for what, sent, want in [("left out", {"x": x.tolist()}, x + 1), ("alone", x.tolist(), x + 1),
                                 ("given", {"x": x.tolist(), "b": b.tolist()}, x + b),
                                 ("given first", {"b": b.tolist(), "x": x.tolist()}, x + b)]:
            status, said = server.predict(sent)
            problems += expect((what, status, 200)) or near(what, said["outputs"]["y"], want)
        for what, body, want in [("npy, left out", npy(x), x + 1), ("npy, given", npy(x, b), x + b)]:
            status, _, data = server.ask("POST", "/predict", body, NPY)
            problems += expect((what, status, 200)) or near(what, npy_arrays(data)[0], want)
        problems += refused("x is none of these", server.predict({"b": b.tolist()}), 400, "input x is missing")
        problems += refused("a wrong one", server.predict({"x": x.tolist(), "b": [1]}), 400, "input b of shape (4,)")
        for _ in range(2):
            sent = [{"x": (x * i).tolist(), **({"b": (b * i).tolist()} if i % 3 == 0 else {})} for i in range(16)]
            for i, (status, said) in enumerate(at_once(server, sent)):
                want = x * i + (b * i if i % 3 == 0 else 1)
                problems += expect((f"request {i}", status, 200)) or near(f"request {i}", said["outputs"]["y"], want)
        said = json.loads(server.ask("GET", "/model")[2])
        problems += expect(("gathered", said["gathered"], "yes"),
                           ("optional", [i.get("optional", False) for i in said["inputs"]], [False, True]))
    return problems


def not_built(program, folder):
    """The program, without what lies beside it."""
    alone = pathlib.Path(folder, "build/app")
    alone.mkdir(parents=True)
    pathlib.Path(folder, "build/engine").symlink_to(pathlib.Path(program).resolve().parent.parent / "engine")
    copy = shutil.copy(program, alone)
    child = subprocess.run([copy, "serve", "x.onnx"], capture_output=True, text=True, timeout=60, check=False)
    return expect(("exit", child.returncode, 127), ("lines", len(child.stderr.splitlines()), 1),
                  ("says", "tapedeck-serve is not installed" in child.stderr, True))


def about(server):
    status, _, data = server.ask("GET", "/model")
    said = json.loads(data)
    problems = expect(("/model", status, 200), ("inputs", said["inputs"], [
        {"name": "ids", "dtype": "i64", "wire": "i64", "shape": [None]},
        {"name": "x", "dtype": "f32", "wire": "f32", "shape": [None, 2]}]))
    status, _, data = server.ask("GET", "/health")
    problems += expect(("/health", (status, json.loads(data)["status"]), (200, "ok")))
    status, _, data = server.ask("HEAD", "/health")
    problems += expect(("HEAD", (status, data), (200, b"")))
    before = server.metric('requests_total{code="200"}')
    server.predict({"x": [[1, 1]], "ids": [1]})
    server.predict({"x": [[1, 1]]})
    text = server.ask("GET", "/metrics")[2].decode()
    problems += expect(("counted", server.metric('requests_total{code="200"}'), before + 3))
    for line in text.splitlines():
        if not line.startswith("# ") and len(line.split()) != 2:
            problems.append(f"no line of Prometheus' format: {line}")
    return problems + expect(("buckets", server.metric('request_seconds_bucket{le="+Inf"}'),
                              server.metric("request_seconds_count")))


# --- refusals ---

def wrong_bodies(server):
    """x (n, 2) and ids (n)."""
    cases = [
        ("", "is empty"), ("{", "no JSON"), ("[]", '"inputs"'), ("{}", '"inputs"'), ("null", '"inputs"'),
        ('{"inputs":{}} x', "no JSON"), ('{"inputs":{"x":[[NaN,1]],"ids":[1]}}', '"nan"'),
        ('{"inputs":{"x":[[Infinity,1]],"ids":[1]}}', "no JSON"), ("\x00", "no JSON"), ("\xff\xfe", "no JSON"),
        ("[" * 100000, '"inputs"'), ('{"inputs":{"x":' + "[" * 100000, "8 axes"),
        ('{"inputs":{"x":' + "[" * 60 + "1" + "]" * 60 + ',"ids":[1]}}', "8 axes"),
        ('{"inputs":[[1,2]]}', "2 inputs"), ('{"inputs":{"x":[[1,2]]}}', "ids is missing"),
        ('{"inputs":{"x":[[1,2]],"ids":[1],"z":[1]}}', "no input z"),
        ('{"inputs":{"x":[[1,2]],"x":[[1,2]],"ids":[1]}}', "x comes twice"),
        ('{"inputs":{"x":[[1,2]],"ids":[1]},"more":1}', '"more"'),
        ('{"inputs":{"x":[[1,2]],"ids":[1]},"inputs":{}}', '"inputs" comes twice'),
        ('{"inputs":{"x":[[1,2],[3]],"ids":[1,2]}}', "one length"),
        ('{"inputs":{"x":[[1,2],3],"ids":[1,2]}}', "one length"),
        ('{"inputs":{"x":[[1,[2]]],"ids":[1]}}', "one length"),
        ('{"inputs":{"x":[[1,true]],"ids":[1]}}', "element 1: a number"),
        ('{"inputs":{"x":[[1,"2"]],"ids":[1]}}', "element 1: a number"),
        ('{"inputs":{"x":[[1,null]],"ids":[1]}}', "element 1: a number"),
        ('{"inputs":{"x":[[1,{}]],"ids":[1]}}', "element 1: a number"),
        ('{"inputs":{"x":[[1,1e999]],"ids":[1]}}', "float64"),
        ('{"inputs":{"x":[[1,1e39]],"ids":[1]}}', "float32"),
        ('{"inputs":{"x":[[1,2]],"ids":[1.5]}}', "whole number"),
        ('{"inputs":{"x":[[1,2]],"ids":[9223372036854775808]}}', "can hold"),
        ('{"inputs":{"x":[[1,2]],"ids":["nan"]}}', "whole number"),
        ('{"inputs":{"x":[1,2],"ids":[1]}}', "shape (?, 2) expected, got (2,)"),
        ('{"inputs":{"x":[[1,2,3]],"ids":[1]}}', "got (1, 3)"), ('{"inputs":{"x":1,"ids":[1]}}', "got ()"),
        ('{"inputs":{"x":[],"ids":[1]}}', "got (0,)"), ('{"inputs":{"x":[[],[]],"ids":[1,1]}}', "got (2, 0)"),
        ('{"inputs":{"x":[[1,2]],"ids":[]}}', "no elements"),
        ('{"inputs":{"x":[[1,2]],"ids":[1,2]}}', "n of 2 expected, as in input ids, got 1"),
        ('{"inputs":{"x":[[1,2]],"ids":[4]}}', ""), ('{"inputs":{"x":[[1,2]],"ids":[-5]}}', ""),
    ]
    problems = []
    for body, word in cases:
        problems += refused(f"{body:.60}", server.predict(body.encode("latin-1")), 400, word)
    x, ids = np.ones((1, 2), np.float32), np.int64([1])
    good = npy(ids, x)
    for what, body, word in [("empty", b"", "missing"), ("one of two", npy(ids), "x is missing"),
                             ("cut", good[:-1], "elements"), ("more", good + b"1", "1 bytes too many"),
                             ("no npy", b"x" * 300, "not an npy"), ("pickled", npy(np.array([None])), "pickled"),
                             ("float ids", npy(np.float32([1.5]), x), "does not fit"),
                             ("text", npy(np.array(["a"])), "element type"), ("shape", npy(ids, x[0]), "shape"),
                             ("scalar", npy(np.int64(1), x), "shape"),
                             ("large", good.replace(b"(1,)", b"(9,)"), "not")]:
        status, _, data = server.ask("POST", "/predict", body, NPY)
        problems += refused(f"npy, {what}", (status, json.loads(data)), 400, word)
    status, said = server.predict({"x": [[1, 1]], "ids": [2]})
    return problems + expect(("after all that", (status, said["outputs"]["log"]), (200, [[0, 0]])))


def wrong_requests(server):
    problems = []
    for method, path, headers, status, word in [
            ("GET", "/predict", {}, 405, "takes POST"), ("DELETE", "/predict", {}, 405, "DELETE"),
            ("POST", "/health", JSON, 405, "GET"), ("PUT", "/model", JSON, 405, "PUT"), ("GET", "/", {}, 404, "/predict"),
            ("GET", "/predict/..%2f", {}, 404, "/predict"), ("OPTIONS", "/predict", {}, 405, "OPTIONS"),
            ("POST", "/predict", {}, 415, "Content-Type"), ("POST", "/predict", {"Content-Type": "text/plain"}, 415, "json"),
            ("POST", "/predict", {"Content-Type": "application/jsonx"}, 415, "json"),
            ("POST", "/predict", {**JSON, "Content-Encoding": "gzip"}, 415, "Encoding"),
            ("POST", "/predict", {**JSON, "X-Tapedeck-Record": "1"}, 400, "--record")]:
        body = '{"inputs":{"x":[[1,1]],"ids":[1]}}' if method in ("POST", "PUT") else None
        got, said_headers, data = server.ask(method, path, body, headers)
        problems += refused(f"{method} {path}", (got, json.loads(data)), status, word)
        if status == 405 and "Allow" not in said_headers:
            problems.append(f"{method} {path}: Allow is missing")
    status, _, _ = server.ask("POST", "/predict?x=1", '{"inputs":{"x":[[1,1]],"ids":[1]}}',
                              {"Content-Type": "Application/JSON; charset=utf-8"})
    return problems + expect(("a query, a charset", status, 200))


def wrong_lengths(server):
    """Refused or waited for; what is no HTTP at all is closed, what follows a whole request is the next."""
    good = post('{"inputs":{"x":[[1,1]],"ids":[1]}}')
    problems = []
    for what, data in [("a length of letters", good.replace(b"Length: 34", b"Length: x")),
                       ("below 0", good.replace(b"Length: 34", b"Length: -1")),
                       ("beyond all", good.replace(b"Length: 34", b"Length: 99999999999999999999999")),
                       ("both", good.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nContent-Length")
                        .replace(b'{"inputs', b'2\r\n{}\r\n0\r\n\r\n{"inputs')),
                       ("no version", b"GET /health\r\n\r\n"), ("a chunk of letters", good.replace(
                           b"Content-Length: 34", b"Transfer-Encoding: chunked"))]:
        got = server.raw(data, 5)
        if not got.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")):
            problems.append(f"{what}: {got[:200]!r}")
    problems += expect(("no HTTP", server.raw(b"hello\r\n\r\n", 5), b""))
    got = server.raw(good[:-5], 0.5)  # five bytes are missing: it waits for them
    problems += expect(("too short", got, b"<broken>"))
    got = server.raw(good.replace(b"Length: 34", b"Length: 30"), 5)
    problems += expect(("too long", (got.count(b"HTTP/1.1 400"), b"no JSON" in got), (1, True)))
    return problems + expect(("after that", server.predict({"x": [[1, 1]], "ids": [2]})[0], 200))


def chunks(server):
    body = b"".join(b"%x\r\n%s\r\n" % (1, b'{"inputs":{"x":[[1,1]],"ids":[1]}}'[i:i + 1]) for i in range(34))
    got = server.raw(b"POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
    return expect(("chunks of a byte", got.startswith(b"HTTP/1.1 200"), True))


def pipelined(server):
    """Answers in the order of the requests, good and bad ones."""
    data, want = b"", []
    for i in range(50):
        bad = i % 7 == 3
        body = "[1" if bad else json.dumps({"inputs": {"x": [[1, i + 1]], "ids": [i % 4]}})
        data += post(body, "Connection: close\r\n" if i == 49 else "")
        want.append(None if bad else [0, float(np.log(np.float32(i + 1)))])
    got = server.raw(data)
    answers = [json.loads(part.split(b"\r\n\r\n", 1)[1]) for part in got.split(b"HTTP/1.1 ")[1:]]
    problems = expect(("answers", len(answers), 50))
    for i, (said, x) in enumerate(zip(answers, want)):
        if (x is None) != ("error" in said):
            problems.append(f"answer {i}: {said}")
        elif x is not None:
            problems += near(f"answer {i}", said["outputs"]["log"][0], x)
    return problems


def main():
    report = Report()
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in [("linear", linear()), ("table", table()), ("centred", centred()), ("halves", halves()),
                           ("biased", biased()), ("new", coupled(400)), ("while", coupled(4)), ("trained", trained())]:
            paths[name] = pathlib.Path(folder, name + ".onnx")
            paths[name].write_bytes(data)
        with Server(program, paths["linear"]) as server:
            report.claim("JSON goes in and out, by name or alone", json_answers(server))
            report.claim("JSON gives every bit of a float32", float32_comes_back(server))
            report.claim("npy goes in and out, Accept decides", npy_answers(server))
            report.claim("SIGTERM: exit 0", expect(("exit", server.stop(), 0)))
        with Server(program, paths["table"], "--queue", 64) as server:
            report.claim("several inputs and outputs, and numbers that are not finite", several_ports(server))
            report.claim("/model, /health and /metrics say what is so", about(server))
            report.claim("each wrong body gets one line that names what is wrong", wrong_bodies(server))
            report.claim("each wrong request gets one line", wrong_requests(server))
            report.claim("each wrong length is refused or waited for", wrong_lengths(server))
            report.claim("chunks of a byte are put together", chunks(server))
            report.claim("pipelined requests are answered in order, none is lost", pipelined(server))
            report.claim("SIGINT: exit 0", expect(("exit", server.stop(2), 0)))
        with Server(program, paths["halves"]) as server:
            report.claim("half floats are float32 on the wire", half_floats(server))
        report.claim("a build without it says so in one line, exit 127", not_built(program, folder))
        report.claim("gathered answers are each one's own", gathered(program, paths["linear"]))
        report.claim("rows that depend on each other are not gathered", not_gathered(program, paths["centred"]))
        report.claim("an input that has a default may be left out", left_out(program, paths["biased"]))
        report.claim("a gathered answer that differs is found where numbers are new", held(program, paths["new"], 400))
        report.claim("a gathered answer that differs is found in a while", held(program, paths["while"], 4))
        for shape in [(1, 4), (2, 4, 3)]:
            paths["small"] = pathlib.Path(folder, f"small{len(shape)}.onnx")
            paths["small"].write_bytes(small_beside_large(len(shape)))
            report.claim(f"small numbers beside large ones are held against small ones, {len(shape)} axes",
                         small_ones(program, paths["small"], shape))
        paths["rounds"] = pathlib.Path(folder, "rounds.onnx")
        paths["rounds"].write_bytes(rounds())
        report.claim("what is rounded otherwise is gathered on", rounding_alone(program, paths["rounds"]))
        report.claim("one bad request of a batch spoils no other", spoils_none(program, paths["table"]))
        report.claim("what cannot be served is said in one line, exit 2", wrong_starts(program, folder, paths))
    report.end()


# --- gathering ---

def at_once(server, inputs):
    """Answers to all inputs, asked for at the same moment."""
    answers = [None] * len(inputs)
    gate = threading.Barrier(len(inputs))

    def one(i):
        gate.wait()
        answers[i] = server.predict(inputs[i])

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answers


def gathered(program, path):
    problems = []
    with Server(program, path, "--deadline", 200, "--batch", 64) as server:
        inputs = [RANDOM.standard_normal((1 + i % 3, 4)).astype(np.float32) for i in range(32)]
        for _ in range(3):
            for x, (status, said) in zip(inputs, at_once(server, [x.tolist() for x in inputs])):
                problems += expect(("status", status, 200)) or near("rows", said["outputs"]["y"], x @ W)
        problems += expect(("gathered", json.loads(server.ask("GET", "/model")[2])["gathered"], "yes"))
        batches = server.metric("batches_total")
        if batches > 48:
            problems.append(f"{batches} calls for 96 requests")
    return problems


def not_gathered(program, path):
    problems = []
    with Server(program, path, "--deadline", 100, "--batch", 32) as server:
        inputs = [RANDOM.standard_normal((3, 4)).astype(np.float32) for _ in range(16)]
        for _ in range(2):
            for x, (status, said) in zip(inputs, at_once(server, [x.tolist() for x in inputs])):
                problems += expect(("status", status, 200)) or near("rows", said["outputs"]["y"], x - x.mean(0))
        said = json.loads(server.ask("GET", "/model")[2])
        problems += expect(("gathered", said["gathered"], "no"), ("why", "depend" in said.get("why", ""), True))
    return problems


def held(program, path, limit):
    """Rows depend on each other for some numbers alone: found where numbers are beyond those before, at once and
    with right answers; where they are not, after some calls."""
    problems = []
    in_range = limit < 25
    quiet = [[[5, -5]], [[-5, 5]], [[1, -2]], [[-3, 1]]] * 2
    loud = quiet[:5] + [[[3, 3]] if in_range else [[200, 3]]] + quiet[6:]
    # All of them together, however busy the machine is: a batch that is full waits for no more.
    with Server(program, path, "--deadline", 1000, "--batch", len(quiet)) as server:
        for _ in range(4):
            for x, (status, said) in zip(quiet, at_once(server, quiet)):
                problems += expect(("status", status, 200)) or near("quiet", said["outputs"]["y"], x)
        said = json.loads(server.ask("GET", "/model")[2])
        tried = server.metric("gathered_tried_total")
        problems += expect(("gathered", said["gathered"], "yes"), ("tried", said["tried"], tried + 2))
        if not 2 <= tried <= 24:
            problems.append(f"{tried} of 32 requests were run alone too")
        for i in range(40):
            answers = at_once(server, loud)
            said = json.loads(server.ask("GET", "/model")[2])
            if said["gathered"] == "no" or not in_range:
                for x, (status, y) in zip(loud, answers):
                    want = x if x in quiet else [[0, 0]]
                    problems += expect(("status", status, 200)) or near(f"round {i}, {x}", y["outputs"]["y"], want)
            if said["gathered"] == "no":
                break
        problems += expect(("gathered", said["gathered"], "no"), ("why", "alone had another" in said.get("why", ""), True),
                           ("counted", server.metric("gathered_differed_total"), 1),
                           ("said", server.said().count("not gathered any more"), 1))
    return problems[:8]


def small_ones(program, path, shape):
    """Rows that depend on each other in numbers that are a millionth of those beside them: found before the first
    answers are out, alone as well as among requests that are larger."""
    problems = []
    with Server(program, path, "--deadline", 200, "--batch", 64) as server:
        scale = np.array([1e6, 1, 1, 1e-1]).reshape((1, 4) + (1,) * (len(shape) - 2))
        inputs = [RANDOM.uniform(-1, 1, shape) * (100 if i == 3 else 1) for i in range(8)]
        for _ in range(2):
            for x, (status, said) in zip(inputs, at_once(server, [x.tolist() for x in inputs])):
                got = np.array(said.get("outputs", {}).get("y", np.nan))
                want = (x + np.array([0, 0, 0, 1]).reshape(scale.shape) * x.max(0, keepdims=True)) * scale
                if status != 200 or got.shape != want.shape or not np.allclose(got / scale, want / scale, rtol=1e-4, atol=1e-5):
                    problems.append(f"{x.tolist()}: {status} {got.tolist()}, {want.tolist()} expected")
        said = json.loads(server.ask("GET", "/model")[2])
        problems += expect(("gathered", said["gathered"], "no"))
    return problems[:6]


def rounding_alone(program, path):
    """Numbers that are differences of larger ones, half of them 0: gathered as long as it is only rounding."""
    problems = []
    with Server(program, path, "--deadline", 20, "--batch", 64) as server:
        for i in range(30):
            inputs = [RANDOM.standard_normal((1, 512)).astype(np.float32) * (1 + i) for _ in range(2 + i % 5)]
            for x, (status, said) in zip(inputs, at_once(server, [x.tolist() for x in inputs])):
                want = np.maximum(x, 0)
                if status != 200 or not np.allclose(said["outputs"]["y"], want, rtol=1e-4, atol=1e-5 * np.abs(want).max()):
                    problems.append(f"round {i}: {status}")
        said = json.loads(server.ask("GET", "/model")[2])
        problems += expect(("gathered", said["gathered"], "yes"))
        if said["tried"] < 40:
            problems.append(f"{said['tried']} requests were held, 40 expected")
    return problems[:6]


def spoils_none(program, path):
    problems = []
    with Server(program, path, "--deadline", 200, "--batch", 32) as server:
        inputs = [{"x": [[1, 1]], "ids": [99 if i == 5 else i % 4]} for i in range(16)]
        for _ in range(2):
            for i, (status, said) in enumerate(at_once(server, inputs)):
                if i == 5:
                    problems += refused("the bad one", (status, said), 400, "")
                else:
                    problems += expect(("status", status, 200)) or near("row", said["outputs"]["rows"], W[[i % 4]])
    return problems


# --- starts ---

def wrong_starts(program, folder, paths):
    broken = pathlib.Path(folder, "broken.onnx")
    broken.write_bytes(paths["linear"].read_bytes()[:60])
    taken = pathlib.Path(folder, "taken.tdtape")
    taken.write_bytes(b"mine")
    good = str(paths["linear"])
    problems = []
    with Server(program, good) as server:
        cases = [([], "model expected"), ([folder + "/none.onnx"], "none.onnx"), ([str(broken)], "broken.onnx"),
                 ([folder + "/model.c"], "td_static_save"), ([good, good], "one model"), ([good, "--port"], "--port"),
                 ([good, "--port", "70000"], "65535"), ([good, "--batch", "0"], "--batch"), ([good, "--what"], "--what"),
                 ([good, "--port", str(server.port)], "in use"), ([good, "--host", "300.1.1.1"], "300.1.1.1"),
                 ([good, "--record", str(taken)], "exists"), ([good, "--record-slow", "1"], "--record"),
                 ([good, "--record", "-"], "tape"), ([good, "--record", folder + "/no/t.tdtape"], "no/t.tdtape: No such"),
                 ([str(paths["trained"])], "training_mode (export in evaluation mode")]
        for number, name in [(3, "int8"), (4, "uint16"), (5, "int16"), (8, "text"), (12, "uint32"), (13, "uint64")]:
            path = pathlib.Path(folder, f"type{number}.onnx")
            path.write_bytes(of_type(number))
            cases.append(([str(path)], f"not there: input x of {name}\n"))
        for arguments, word in cases:
            child = subprocess.run([program, "serve", *arguments], capture_output=True, text=True, timeout=60, check=False)
            if child.returncode != 2 or word not in child.stderr or len(child.stderr.splitlines()) > 2 or child.stdout:
                problems.append(f"{arguments}: exit {child.returncode}: {child.stdout!r} {child.stderr!r}")
            if "not there" in child.stderr and len(child.stderr.splitlines()) != 1 or "unrecorded" in child.stderr:
                problems.append(f"{arguments}: one line expected: {child.stderr!r}")
    return problems + expect(("taken", taken.read_bytes(), b"mine"))


if __name__ == "__main__":
    main()
