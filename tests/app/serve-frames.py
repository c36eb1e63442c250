#!/usr/bin/env python3
"""serve-frames.py TAPEDECK: `tapedeck serve`, where a request ends, who holds a connection, and how it stops.

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
import re  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from checks import Report  # noqa: E402
from serve_case import JSON, NPY, RANDOM, W, Server, heavy, linear, npy, npy_arrays, post, read_all  # noqa: E402

BODY = b'{"inputs":[[1,2,3,4]]}'
CHUNKS = b"16\r\n" + BODY + b"\r\n0\r\n\r\n"
NEXT = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def request(headers, body=BODY, line=b"POST /predict HTTP/1.1", host=b"Host: x\r\n"):
    return line + b"\r\n" + host + b"Content-Type: application/json\r\n" + headers + b"\r\n" + body


def answers(got):
    """Statuses and bodies of what came back; a body that is no JSON as it is."""
    out = []
    for part in got.split(b"HTTP/1.1 ")[1:]:
        body = part.split(b"\r\n\r\n", 1)[1] if b"\r\n\r\n" in part else b""
        try:
            out.append((int(part[:3]), json.loads(body)))
        except ValueError:
            out.append((int(part[:3]), body))
    return out


def ambiguous(server):
    """What two programs could read in two ways has one answer, 400 or 501, and nothing behind it is a request."""
    problems = []
    for what, headers, body, status, word in [
            ("two lengths", b"Content-Length: 5\r\nContent-Length: 22\r\n", BODY, 400, "Content-Length: one"),
            ("the longer first", b"Content-Length: 22\r\nContent-Length: 5\r\n", BODY, 400, "Content-Length: one"),
            ("two equal ones", b"Content-Length: 22\r\ncontent-length: 22\r\n", BODY, 400, "Content-Length: one"),
            ("a blank before the colon", b"Content-Length : 22\r\n", BODY, 400, '"Content-Length "'),
            ("a tab before the colon", b"Transfer-Encoding\t: chunked\r\n", CHUNKS, 400, "without blanks"),
            ("two encodings", b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS, 501, "chunked expected"),
            ("an unknown one", b"Transfer-Encoding: xchunked\r\n", CHUNKS, 501, "chunked expected"),
            ("chunked twice", b"Transfer-Encoding: chunked\r\n" * 2, CHUNKS, 501, "chunked expected"),
            ("both", b"Content-Length: 22\r\nTransfer-Encoding: chunked\r\n", CHUNKS, 400, "one of the two"),
            ("a length on the next line", b"Content-Length:\r\n 22\r\n", BODY, 400, "one line"),
            ("an encoding on the next line", b"Transfer-Encoding:\r\n\tchunked\r\n", CHUNKS, 400, "one line"),
            ("a name that goes on", b"Content-Len: 22\r\n gth\r\n", BODY, 400, "one line"),
            ("a CR in a value", b"X: a\rContent-Length: 22\r\n", BODY, 400, '"X"'),
            ("an empty name in the middle", b": foo\r\nContent-Length: 22\r\n", BODY, 400, "a name before each colon"),
            ("an empty name at the end", b"Content-Length: 22\r\n:\r\n", BODY, 400, "a name before each colon"),
            ("a line that begins with NUL", b"X: y\r\n\0foo: bar\r\nContent-Length: 22\r\n", BODY, 400, "without NUL"),
            ("NUL in a coding", b"Transfer-Encoding: chunked\0x\r\n", CHUNKS, 400, "without NUL"),
            ("NUL in a coding in the middle", b"Transfer-Encoding: chunked\0x\r\nX: y\r\n", CHUNKS, 400, "without NUL"),
            ("NUL behind a coding", b"Transfer-Encoding: chunked\0\r\n", CHUNKS, 400, "without NUL"),
            ("NUL in a length", b"Content-Length: 22\0 1\r\n", BODY, 400, "without NUL"),
            ("NUL behind a header", b"X: y\0\r\nContent-Length: 22\r\n", BODY, 400, "without NUL"),
            ("lines that end in LF", b"X: y\nContent-Length: 22\r\n", BODY, 400, "end in CR LF"),
            ("blanks behind a coding", b"Transfer-Encoding: chunked \r\n", CHUNKS, 501, "chunked expected"),
            ("neither a length nor a coding", b"", BODY, 411, "Content-Length, or")]:
        got = answers(server.raw(request(headers, body + NEXT)))
        if len(got) != 1 or got[0][0] != status or word not in got[0][1].get("error", ""):
            problems.append(f"{what}: {got!r:.300}, one {status} with {word!r} expected")
    for what, data in [("no Host", request(b"Content-Length: 22\r\n", host=b"")),
                       ("two Hosts", request(b"Content-Length: 22\r\n", host=b"Host: a\r\nHost: b\r\n"))]:
        got = answers(server.raw(data))
        if len(got) != 1 or got[0][0] != 400 or "Host: one expected" not in got[0][1].get("error", ""):
            problems.append(f"{what}: {got!r:.300}")
    for what, line, host, word in [
            ("an empty name", b"GET /health HTTP/1.1", b"Host: x\r\n: foo\r\n", "a name before each colon"),
            ("an empty name, and no more", b"GET /health HTTP/1.1", b"Host: x\r\n:\r\n", "a name before each colon"),
            ("an empty name first", b"GET /health HTTP/1.1", b":\r\nHost: x\r\n", 'header ""'),
            ("NUL in Host", b"GET /health HTTP/1.1", b"Host: x\0y\r\n", "without NUL"),
            ("a blank in Host", b"GET /health HTTP/1.1", b"Host: x y\r\n", "Host: a name"),
            ("a user in Host", b"GET /health HTTP/1.1", b"Host: a@x\r\n", "Host: a name"),
            ("an empty Host", b"GET http://x/health HTTP/1.1", b"Host:\r\n", "Host: a name"),
            ("NUL in the path", b"GET /health\0x HTTP/1.1", b"Host: x\r\n", "without NUL"),
            ("NUL behind an escape", b"GET /health%00x HTTP/1.1", b"Host: x\r\n", "a path without blanks and NUL"),
            ("a blank in the path", b"GET /health x HTTP/1.1", b"Host: x\r\n", "a path without blanks and NUL"),
            ("lines that end in CR", b"GET /health HTTP/1.1\rHost: x\r\rGET /x HTTP/1.1", b"Host: x\r\n", "a path without")]:
        got = answers(server.raw(line + b"\r\n" + host + b"\r\n" + NEXT))
        if len(got) != 1 or got[0][0] != 400 or word not in got[0][1].get("error", ""):
            problems.append(f"{what}: {got!r:.300}, one 400 with {word!r} expected")
    # Behind the chunks too a line that begins with a colon is taken for the end.
    trailer = CHUNKS[:-2] + b"X: y\r\n: foo\r\n"
    got = server.raw(request(b"Transfer-Encoding: chunked\r\n", trailer + NEXT))
    if [s for s, _ in answers(got)] != [200] or b"Connection: close" not in got:
        problems.append(f"a trailer: {got!r:.300}")
    close = b"Connection: close\r\n"
    for what, data in [("HTTP/1.0 needs no Host", b"GET /health HTTP/1.0\r\n\r\n"),
                       ("lines that all end in LF", request(b"Content-Length: 22\r\n" + close).replace(b"\r\n", b"\n")),
                       ("an empty Host of a path", b"GET /health HTTP/1.1\r\nHost: \r\n" + close + b"\r\n"),
                       ("a Host with a port", b"GET /health HTTP/1.1\r\nHost: [::1]:80 \r\n" + close + b"\r\n"),
                       ("a query and escapes", b"GET /hea%6cth?a=%20%00&b HTTP/1.1\r\nHost: x\r\n" + close + b"\r\n"),
                       ("a cookie, and 50 kB", b"GET /health HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=\"d\"\r\nX: " + b"a" * 50000
                        + b"\r\nY:\r\n" + close + b"\r\n"),
                       ("empty lines before it", b"\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n" + close + b"\r\n"),
                       ("a header that is empty", request(b"X-A:\r\nContent-Length: 22\r\n" + close)),
                       ("blanks around a value", request(b"X-A: \t b c \t\r\nContent-Length:  22\r\n" + close)),
                       ("chunked in capitals", request(b"Transfer-Encoding: Chunked\r\n" + close, CHUNKS)),
                       ("a whole URL", request(b"Content-Length: 22\r\n" + close, line=b"POST http://x:1/predict HTTP/1.1")),
                       ("a host alone", request(close, b"", b"GET HTTPS://x/health HTTP/1.1"))]:
        got = answers(server.raw(data))
        if [status for status, _ in got] != [200]:
            problems.append(f"{what}: {got!r:.300}, 200 expected")
    got = answers(server.raw(request(close, b"", b"GET http://x HTTP/1.1")))
    return problems + ([] if [s for s, _ in got] == [404] else [f"a URL without a path: {got!r:.300}"])


def counted(server):
    """Also what libmicrohttpd refuses, which is no request."""
    problems = []
    for status, data in [(400, request(b"no colon\r\n")), (400, request(b"Content-Length: -1\r\n")),
                         (400, request(b"Content-Length: 22, 22\r\n")), (400, request(b"Content-Length: 1e30\r\n")),
                         (431, request(b"X: " + b"a" * 100000 + b"\r\n")),
                         (505, request(b"Content-Length: 22\r\n", line=b"POST /predict HTTP/2.0")),
                         (501, request(b"Transfer-Encoding: gzip\r\n")), (400, request(b"Content-Length: 1\r\n", b"1"))]:
        before = server.metric(f'requests_total{{code="{status}"}}') or 0
        got = server.raw(data, 5)
        after = server.metric(f'requests_total{{code="{status}"}}')
        if not re.match(rb"HTTP/1\.[01] %d " % status, got) or after != before + 1:
            problems.append(f"{data[:90]!r}: {got[:60]!r}, counted {before} and then {after}")
    for body, status in [("[1", 400), ('{"inputs":[[1,2,3,4]]}', 200)]:
        before = server.metric("request_seconds_count")
        got = server.predict(body)[0]
        after = server.metric("request_seconds_count")
        if got != status or after != before + 1:
            problems.append(f"{body}: {got}, timed {before} and then {after}")
    return problems


def byte_by_byte(server):
    """Three requests on one connection, in pieces of one byte and of seven: the heads lie in one piece nevertheless. So
    they are where they are cut in two, at each byte; the second part waits until the first has been read."""
    problems = []
    data = (request(b"X: y\r\nContent-Length: 22\r\n") + request(b"Transfer-Encoding: chunked\r\n", CHUNKS)
            + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    for n in (1, 7, len(data)):
        with connect(server) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(0, len(data), n):
                s.sendall(data[i:i + n])
            got = answers(read_all(s))
        if [status for status, _ in got] != [200] * 3:
            problems.append(f"pieces of {n}: {got!r:.300}")
    for cut in range(1, len(data)):
        with connect(server) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(data[:cut])
            time.sleep(0.002)
            s.sendall(data[cut:])
            got = answers(read_all(s))
        if [status for status, _ in got] != [200] * 3:
            problems.append(f"cut at {data[:cut][-30:]!r}: {got!r:.300}")
    return problems


def too_long(program, path):
    """A length beyond --max-body: told at once, before any of the body, and also who sends it all without reading."""
    problems = []
    head = request(b"Content-Length: 50000000\r\n", b"")
    with Server(program, path, "--max-body", 1000) as server:
        start = time.monotonic()
        got = server.raw(head)
        if [s for s, _ in answers(got)] != [413] or b"Connection: close" not in got or time.monotonic() - start > 10:
            problems.append(f"without a body: {got!r:.200}")
        with connect(server) as s:
            try:
                s.sendall(head)
                for _ in range(50):
                    s.sendall(b"1" * 1000000)
                got = read_all(s)
            except OSError as error:
                got = repr(error).encode()
            if [status for status, _ in answers(got)] != [413] or b"<broken>" in got:
                problems.append(f"with all of it: {got!r:.200}")
        got = server.raw(head.replace(b"/predict", b"/nowhere"))
        if [s for s, _ in answers(got)] != [413]:
            problems.append(f"another path: {got!r:.200}")
        if server.predict(BODY)[0] != 200:
            problems.append("no answer afterwards")
    return problems


def accepted(server):
    problems = []
    for lines, want in [(["application/json;q=0.1", "application/x-npy;q=0.2"], "x-npy"),
                        (["application/x-npy;q=0.2", "application/json;q=0.1"], "x-npy"),
                        (["text/html", "application/json"], "json"), (["", "application/x-npy"], "x-npy")]:
        got = server.raw(request("".join(f"Accept: {line}\r\n" for line in lines).encode()
                                 + b"Content-Length: 22\r\nConnection: close\r\n"))
        if not got.startswith(b"HTTP/1.1 200") or b"Content-Type: application/" + want.encode() not in got:
            problems.append(f"Accept in lines {lines}: {got[:200]!r}, {want} expected")
    x = np.ones((1, 4), np.float32)
    for sent, accept, want in [
            (JSON, "application/x-npy;q=0", "json"), (NPY, "application/json; q=0.0", "x-npy"),
            (NPY, "application/x-npy;q=0", "json"), (JSON, "application/x-npy;q=0.1, application/json", "json"),
            (JSON, "application/x-npy;q=0.9, */*;q=0.5", "x-npy"), (JSON, "application/*;q=0.3, application/json;q=0.2", "x-npy"),
            (JSON, "text/html, application/x-npy;level=1;q=1", "x-npy"), (NPY, "text/html", "x-npy"),
            (NPY, "*/*", "x-npy"), (JSON, "application/x-npyz", "json"), (NPY, "", "x-npy")]:
        body = BODY if sent is JSON else npy(x)
        status, headers, _ = server.ask("POST", "/predict", body, {**sent, "Accept": accept})
        if status != 200 or headers.get("Content-Type") != "application/" + want:
            problems.append(f"{sent['Content-Type']}, Accept: {accept}: {status} {headers.get('Content-Type')}, {want} expected")
    return problems


def places(server):
    problems = []
    for body, word in [("", "the body is empty"), ('{"inputs":', "line 1, byte 11, its end"), ("\n\n  nan", "line 3, byte 3;"),
                       ('{"inputs":\n[[1,2,,4]]}', "line 2, byte 7;"), ('{"inputs":[[1]]}\n}', "line 2, byte 1;"),
                       ('{"inputs":[[1,"a\tb"]]}', "line 1, byte 17;"), ('{"inputs":[[01]]}', "line 1, byte 15;")]:
        status, said = server.predict(body)
        if status != 400 or word not in said["error"]:
            problems.append(f"{body!r}: {status} {said}, {word!r} expected")
    return problems


# --- connections ---

def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 60)


def half(server):
    s = connect(server)
    s.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Le")
    return s


def crowded(program, path):
    """All connections are held by clients that say nothing, half a line, half a head or nothing more."""
    problems = []
    with Server(program, path, "--connections", 16, "--timeout", 60000) as server:
        for what, begin, keep in [("nothing", b"", False), ("half a line", b"POST /pre", False),
                                  ("half a head", b"POST /predict HTTP/1.1\r\nHost: x\r\n", False),
                                  ("one request", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", True)]:
            held = [connect(server) for _ in range(16)]
            for s in held:
                s.sendall(begin)
                if keep:
                    s.recv(1000)
            start = time.monotonic()
            status = server.ask("GET", "/health")[0]
            took = time.monotonic() - start
            if status != 200 or took > 10:
                problems.append(f"{what}: /health has {status} after {took:.1f} s")
            for s in held:
                s.close()
            until = time.monotonic() + 20
            while server.metric("connections") > 1 and time.monotonic() < until:
                time.sleep(0.02)
        if not server.metric("clients_dropped_total"):
            problems.append("the closed ones are not counted")
        # One that works is never closed, however many wait.
        held = [connect(server) for _ in range(15)]
        s = connect(server)
        s.sendall(post(BODY)[:-1])
        time.sleep(1.3)
        s.sendall(BODY[-1:])
        if not s.recv(1000).startswith(b"HTTP/1.1 200"):
            problems.append("a request that was under way is lost")
        for s in held:
            s.close()
    return problems


def stops_at_once(program, path):
    """One client has sent half a head: nobody waits for the rest of it."""
    with Server(program, path) as server:
        s = half(server)
        while server.metric("connections_busy") < 2:  # and the one that asks
            time.sleep(0.01)
        start = time.monotonic()
        status = server.stop()
        took = time.monotonic() - start
        got = read_all(s)
    return [] if status == 0 and took < 10 and got.startswith(b"HTTP/1.1 503") else [
        f"exit {status} after {took:.1f} s, it is told {got[:100]!r}"]


def bodies_have_a_moment(program, path):
    """A body that comes no further holds it for two seconds, not for --timeout."""
    with Server(program, path) as server:
        s = connect(server)
        s.sendall(post(BODY)[:-3])
        while server.metric("connections_busy") < 2:
            time.sleep(0.01)
        start = time.monotonic()
        status = server.stop()
        took = time.monotonic() - start
        got = read_all(s)
    return [] if status == 0 and 1.5 < took < 15 and got.startswith(b"HTTP/1.1 503") else [
        f"exit {status} after {took:.1f} s, it is told {got[:100]!r}"]


def second_signal(program, path):
    """Requests in the queue that take a minute: told once more, it runs none of them."""
    rows = npy(RANDOM.standard_normal((2048, 512)).astype(np.float32))
    with Server(program, path, "--batch", 1, "--queue", 256) as server:
        start = time.monotonic()
        server.ask("POST", "/predict", rows, NPY)
        one = time.monotonic() - start
        clients = [connect(server) for _ in range(24)]
        senders = [threading.Thread(target=s.sendall, args=(post(rows).replace(b"application/json", b"application/x-npy"),))
                   for s in clients]
        for t in senders:
            t.start()
        for t in senders:
            t.join()
        until = time.monotonic() + 20
        while (server.metric("queue_length") or 0) < 20 and time.monotonic() < until:
            time.sleep(0.01)
        start = time.monotonic()
        server.send(signal.SIGTERM)
        time.sleep(0.2)
        status = server.stop(signal.SIGINT)
        took = time.monotonic() - start
        got = [read_all(s)[:12] for s in clients]
    problems = [] if status == 0 else [f"exit {status} after {took:.1f} s, one takes {one:.1f} s"]
    if sum(g == b"HTTP/1.1 503" for g in got) < 10:
        problems.append(f"the others are told {got}")
    return problems


def large_ones(program, path):
    """Bodies that take long to read, more of them than threads: a small request is not behind them."""
    big = RANDOM.standard_normal((100000, 4)).astype(np.float32)
    body = json.dumps({"inputs": big.tolist()})
    problems = []
    with Server(program, path, "--threads", 2) as server:
        start = time.monotonic()
        status, said = server.predict(body)
        alone = time.monotonic() - start
        if status != 200 or not np.allclose(said["outputs"]["y"], big @ W, rtol=1e-4, atol=1e-4):
            problems.append(f"a large one: {status}")
        sent, done = [0], []

        def one():
            done.append(server.ask("POST", "/predict", body, JSON)[0])

        threads = [threading.Thread(target=one) for _ in range(8)]
        for t in threads:
            t.start()
        worst = 0
        while any(t.is_alive() for t in threads):
            start = time.monotonic()
            sent[0] += server.ask("GET", "/health")[0] == 200
            worst = max(worst, time.monotonic() - start)
        status, _, data = server.ask("POST", "/predict", npy(big), NPY)
        if status != 200 or not np.allclose(npy_arrays(data)[0], big @ W, rtol=1e-4, atol=1e-4):
            problems.append(f"a large npy: {status}")
        status, said = server.predict(body[:-2])
        if status != 400 or "its end" not in said["error"]:
            problems.append(f"a large one that is cut: {status} {said!r:.200}")
        if done != [200] * 8 or sent[0] < 3:  # one after the other, the small ones would come last
            problems.append(f"statuses {done}, {sent[0]} small ones between them, "
                            f"the slowest {worst:.2f} s, a large one alone {alone:.2f} s")
        print(f"# a large one alone {alone:.2f} s; eight at once: {sent[0]} of /health, the slowest {worst * 1000:.0f} ms")
    return problems


def main():
    report = Report()
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in [("linear", linear()), ("heavy", heavy(40))]:
            paths[name] = pathlib.Path(folder, name + ".onnx")
            paths[name].write_bytes(data)
        with Server(program, paths["linear"]) as server:
            report.claim("where a body ends is said in one way, or refused", ambiguous(server))
            report.claim("a head may come in pieces", byte_by_byte(server))
            report.claim("every answer is counted, those of malformed requests too", counted(server))
            report.claim("Accept is weighed", accepted(server))
            report.claim("what is no JSON is named by line and byte", places(server))
        report.claim("a body that is too long is refused at once", too_long(program, paths["linear"]))
        report.claim("clients that ask nothing leave room for one that does", crowded(program, paths["linear"]))
        report.claim("SIGTERM waits for no head that has not come", stops_at_once(program, paths["linear"]))
        report.claim("SIGTERM waits two seconds for a body", bodies_have_a_moment(program, paths["linear"]))
        report.claim("a second signal ends it now", second_signal(program, paths["heavy"]))
        report.claim("large bodies hold up no others", large_ones(program, paths["linear"]))
    report.end()


if __name__ == "__main__":
    main()
