#!/usr/bin/env python3
"""Collectives of PyTorch are recorded: test-collectives.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

Runs with the Python that TD_TEST_TORCH names, else with the first of the usual ones that has PyTorch;
without one, without gloo in it or without mpirun it is skipped.  Prints TAP lines.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
python = claims.find_python()
# Ranks on one machine need no network, and containers allow no reading of each other's memory.
environment = claims.environment(
    package, TAPEDECK_PRODUCER=producer, TAPEDECK_PYTHON=python, HWLOC_COMPONENTS="-gl", OMPI_MCA_btl="self,vader",
    OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm="isolated", OMPI_MCA_plm_rsh_agent="false",
    GLOO_SOCKET_IFNAME="lo")
ALL_REDUCE, BUCKET = "dist.all_reduce", "DDP all_reduce bucket 0"
_recorded = {}  # (what, ranks, with ctypes) -> its tapes, and what its ranks said


def run(*args, status=0, env=None):
    result = subprocess.run(args, capture_output=True, text=True, env=dict(environment, **(env or {})), cwd=HERE)
    assert status is None or result.returncode == status, (args, result.returncode, result.stdout[-1000:],
                                                           result.stderr[-1000:])
    return result


def weights(text, n):
    found = sorted(re.findall(r"weights [0-9a-f]{64}", text))  # mpirun may put two on a line
    assert len(found) == n, text
    return found


def record(folder, what, n, status=0, ctypes=False):
    """Once; what is asked of a recording comes in several claims."""
    key = (what, n, ctypes)
    if key not in _recorded:
        tapes, store = (os.path.join(folder, "%s.%d.%s" % (what, n, kind)) for kind in ("ranks", "store"))
        tapes += "c" if ctypes else ""
        said = run(tapedeck, "run", "-q", "-n", str(n), "-o", tapes, "collectives.py", store + str(ctypes), what,
                   status=status, env={"TAPEDECK_EXTENSION": ""} if ctypes else None)
        assert "not on the tape" not in said.stderr, said.stderr
        _recorded[key] = tapes, said.stdout
    return _recorded[key]


def findings(tapes, status):
    said = json.loads(run(tapedeck, "ranks", "--json", tapes, status=status).stdout)
    return said, [f for f in said["findings"] if f["level"] != "note"]


def view(tapes, name, iteration):
    return json.loads(run(tapedeck, "ranks", "--view", name, "--iteration", str(iteration), "--json", tapes,
                          status=None).stdout)


def rows(tapes, rank):
    """Every collective of a rank's tape, as `tapedeck cat` has it."""
    lines = run(tapedeck, "cat", "--json", os.path.join(tapes, "rank-%d.tdtape" % rank)).stdout.splitlines()
    return [row for row in map(json.loads, lines) if row.get("record", row.get("type")) == "collective"]


def kinds(folder, n):
    """Each of calls() in collectives.py, in its order: kind, bytes of this rank's part, root, dtype, place."""
    tapes, _ = record(folder, "calls", n)
    calls = view(tapes, "ladder", 1)["calls"]
    found = [(c["seq"], c["ranks"][0]["call"], c["ranks"][0]["wait"], c["ranks"][0]["bytes"],
              c["ranks"][0].get("peer"), c["ranks"][0].get("dtype")) for c in calls if c["size"] == n]
    wanted = [("all_reduce", "sum", 32, None), ("all_reduce", "sum", 32, None), ("broadcast", "bcast", 32, 1),
              ("reduce", "sum", 32, 0), ("all_gather", "gather", 32, None), ("gather", "gather", 32, 0),
              ("scatter", "bcast", 32, 0), ("all_to_all_single", "exchange", 8 * n, None), ("barrier", "meet", 0, None)]
    wanted = [(i + 1, "dist." + call, wait, size, peer, None if wait == "meet" else "float32")
              for i, (call, wait, size, peer) in enumerate(wanted)]
    assert [f for f in found if f[1:3] != (ALL_REDUCE, "sum") or f[3] == 32] == wanted, (found, wanted)
    for call in calls:
        members = list(range(n)) if call["size"] == n else [0, 1]
        assert [r["rank"] for r in call["ranks"]] == members and all(r["state"] == "left" for r in call["ranks"]), call
        assert all(r["site"].startswith("collectives.py:") and r["left_ns"] >= r["entered_ns"]
                   for r in call["ranks"]), call
    text = run(tapedeck, "ranks", "--view", "ladder", "--iteration", "1", tapes).stdout
    assert "dist.all_to_all_single" in text and "exchange float32 %d B" % (8 * n) in text, text


def groups(folder):
    """A call of two of four ranks is one of theirs: the others are not missing in it."""
    tapes, _ = record(folder, "calls", 4)
    calls = [c for c in view(tapes, "ladder", 1)["calls"] if c["size"] == 2]
    assert len(calls) == 1 and len(calls[0]["ranks"]) == 2 and calls[0]["seq"] == 1, calls
    assert calls[0]["ranks"][0]["bytes"] == 24 and calls[0]["ranks"][0]["dtype"] == "float64", calls
    text = run(tapedeck, "ranks", "--view", "ladder", "--iteration", "1", tapes).stdout
    assert " 0:left 1:left 2:- 3:- " in text, text


def asynchronous(folder):
    """What runs meanwhile hides it: it is behind, and what it is waited for then is another element of no bytes."""
    mine = [row for row in rows(record(folder, "calls", 2)[0], 0) if row["call"] == ALL_REDUCE and row["seq"] == 2]
    assert [(row["behind"], row["bytes"]) for row in mine] == [(True, 32), (False, 0)], mine
    assert all("ns" in row for row in mine), mine
    sent, waited = mine
    assert sent["start_ns"] < waited["start_ns"], mine
    assert sent["start_ns"] + sent["ns"] == waited["start_ns"] + waited["ns"], mine


def letters(folder):
    tapes, _ = record(folder, "calls", 2)
    sent = [row for row in rows(tapes, 0) if row["wait"] == "send"]
    come = [row for row in rows(tapes, 1) if row["wait"] == "receive"]
    assert [(row["call"], row["peer"], row["seq"], row["bytes"]) for row in sent if row["bytes"]] == [
        ("dist.send", 1, 1, 32), ("dist.send", 1, 2, 32)], sent
    assert [(row["call"], row.get("peer"), row["seq"], row["bytes"]) for row in come] == [
        ("dist.recv", 0, 1, 32), ("dist.recv", 0, 2, 32)], come


def buckets(folder, n, ctypes=False):
    """DDP's own: what its constructor gives to all, its buffers, its buckets in backward, behind it."""
    tapes, _ = record(folder, "train", n, ctypes=ctypes)
    said, found = findings(tapes, 0)
    assert not found and [rank["updates"] for rank in said["ranks"]] == [6] * n, found
    calls = view(tapes, "ladder", 3)["calls"]
    assert [c["ranks"][0]["call"] for c in calls].count(BUCKET) == 1, calls
    bucket = next(c for c in calls if c["ranks"][0]["call"] == BUCKET)
    assert [r["rank"] for r in bucket["ranks"]] == list(range(n)), bucket
    size = 4 * (16 * 32 + 32 + 32 + 32 + 32 * 2 + 2)
    assert all((r["wait"], r["bytes"], r["dtype"], r["state"]) == ("sum", size, "float32", "left")
               and r["site"].startswith("collectives.py:") for r in bucket["ranks"]), bucket
    assert [c["ranks"][0]["call"] for c in calls].count("DDP broadcast buffers") == 2, calls
    first = rows(tapes, 0)
    made = [row["call"] for row in first if row["before"]]
    assert made[:2] == ["DDP verify parameters"] * 2 and "DDP broadcast parameters" in made, made
    assert sum(row["bytes"] for row in first if row["call"] == "DDP broadcast parameters") == size + 4 * 64 + 8, first
    for rank in range(n):  # each call has the same number, name and bytes on all ranks
        assert [(row["comm"], row["seq"], row["call"], row["bytes"]) for row in rows(tapes, rank)] == [
            (row["comm"], row["seq"], row["call"], row["bytes"]) for row in first]
        run(tapedeck, "check", os.path.join(tapes, "rank-%d.tdtape" % rank))


def same(folder, what, n):
    """Weights of a run without are those of one with, whatever runs with each operator."""
    store = os.path.join(folder, what + ".plain.store")
    plain = run("mpirun", "--allow-run-as-root", "--oversubscribe", "-q", "-n", str(n), python, "collectives.py", store, what)
    wanted = weights(plain.stdout, n)
    assert weights(record(folder, what, n)[1], n) == wanted and len(set(wanted)) == 1, wanted
    if what == "train":
        assert weights(record(folder, what, n, ctypes=True)[1], n) == wanted


def lanes(folder, n):
    """Until rank 1 has come the others wait, behind what they have sent; from then on they take part."""
    tapes, _ = record(folder, "slow", n)
    waits, late = [0] * n, 5 * 0.3e9
    for iteration in range(1, 6):
        for lane in view(tapes, "lanes", iteration)["lanes"]:
            pieces = [p for p in lane["pieces"] if p.get("call") == BUCKET]
            behind = [p for p in pieces if p["kind"] == "behind"]
            assert len(behind) == 1 and behind[0]["bytes"] > 0, pieces
            waits[lane["rank"]] += sum(p["ns"] for p in pieces if p["kind"] == "waits")
            assert sum(p["ns"] for p in pieces if p["kind"] != "behind") <= behind[0]["ns"], pieces
    assert waits[1] < late / 3, waits
    assert all(ns > 2 * late / 3 for rank, ns in enumerate(waits) if rank != 1), waits
    text = run(tapedeck, "ranks", "--view", "lanes", "--iteration", "3", tapes).stdout
    assert "rank 1: begins at" in text and "waits for others" in text, text


def waited_for(folder, what, rank, n):
    tapes, _ = record(folder, what, n)
    said, found = findings(tapes, 0)
    assert not found, found
    assert max(said["ranks"], key=lambda r: r["waited_for_ns"])["rank"] == rank, said["ranks"]
    assert max(r["waited_for_ns"] for r in said["ranks"]) > 6 * 0.2e9 * (n - 1), said["ranks"]
    assert min(said["ranks"], key=lambda r: r["waited_ns"])["rank"] == rank, said["ranks"]
    assert [f["ranks"] for f in said["findings"] if f["cause"] == "straggler"] == [[rank]], said["findings"]


def missing(folder, n):
    tapes, _ = record(folder, "missing", n, status=None)
    said, found = findings(tapes, 1)
    others = [rank for rank in range(n) if rank != 1]
    first = found[0]
    assert (first["cause"], first["iteration"], first["ranks"]) == ("hang", 2, [1]), found
    assert first["site"].startswith("collectives.py:"), first
    last = said["last_calls"][-1]
    assert [(r["rank"], r["state"]) for r in last["ranks"]] == [
        (rank, "missing" if rank == 1 else "waits") for rank in range(n)], last
    assert all(r["call"] == ALL_REDUCE and r["left_ns"] is None for r in last["ranks"] if r["rank"] in others), last
    text = run(tapedeck, "ranks", "--view", "ladder", tapes, status=None).stdout
    assert "1:MISSING" in text and "rank 1" in first["sentence"], text


def hang(folder, what, n, how, call, until):
    """Within the time that is set it is on standard error, and then all end, or are left."""
    tapes, begun = os.path.join(folder, "%s.%d.%s.hang" % (what, n, how)), time.monotonic()
    said = run(tapedeck, "run", "-q", "-n", str(n), "--hang-after", "2", "--on-hang", how, "-o", tapes, "collectives.py",
               tapes + ".store", what, status=1).stderr
    took = time.monotonic() - begun
    line = next((line for line in said.splitlines() if "has waited 2 s in " + call in line), "")
    assert "collectives.py:" in line and " for rank 1; rank 1 (pid " in line and line.endswith(until), said[-3000:]
    assert " is elsewhere" in line and took < 40, (took, line)
    assert said.count("has waited 2 s in") == 1, said[-3000:]
    subprocess.run(["sleep", "0.5"], check=True)
    assert subprocess.run(["pgrep", "-f", tapes], capture_output=True).returncode == 1, "a process is left"
    if what != "unmet":  # before there is a layer there is no iteration that it could be of
        _, found = findings(tapes, 1)
        assert (found[0]["cause"], found[0]["ranks"]) == ("hang", [1]), found
        assert how == "stop" or "has waited 2 s in" in json.dumps(found[0]), found[0]


def patient(folder):
    """Ranks that are late, but come within the time."""
    tapes = os.path.join(folder, "patient")
    said = run(tapedeck, "run", "-q", "-n", "2", "--hang-after", "20", "-o", tapes, "collectives.py", tapes + ".store", "slow")
    assert "has waited" not in said.stderr and not findings(tapes, 0)[1], said.stderr


def different(folder, n):
    tapes, _ = record(folder, "other", n, status=None)
    _, found = findings(tapes, 1)
    first = found[0]
    assert first["cause"] == "mismatch" and first["iteration"] == 2, found
    assert "dist.barrier" in first["sentence"] and ALL_REDUCE in first["sentence"], first
    assert n == 2 or first["ranks"] == [1], first


def wrong(folder):
    """The process may die of it: the call was on the tape before it was made."""
    _, found = findings(record(folder, "wrong", 2, status=None)[0], 1)
    assert found[0]["cause"] == "mismatch" and found[0]["iteration"] == 2, found
    assert "rank 1 in %s at collectives.py:" % ALL_REDUCE in found[0]["sentence"], found


def transformer(folder, n):
    """Of 3 million parameters: the buckets are those of the gradients, in the order of backward."""
    tapes, _ = record(folder, "transformer", n)
    _, found = findings(tapes, 0)
    assert not found, found
    names = {}
    for call in view(tapes, "ladder", 2)["calls"]:
        assert all(r["state"] == "left" for r in call["ranks"]) and len(call["ranks"]) == n, call
        names[call["ranks"][0]["call"]] = call["ranks"][0]["bytes"]
    of_ddp = {name: size for name, size in names.items() if name.startswith("DDP all_reduce bucket")}
    assert len(of_ddp) > 3 and sum(of_ddp.values()) == 4 * 3054184, names


def elastic(folder):
    """What torchrun says of a rank, and a recording that begins when ranks have met."""
    program = ("import sys, torch, tapedeck\nimport torch.distributed as dist\nfrom os import environ as e\n"
               "torch.set_num_threads(1)\n"
               "dist.init_process_group('gloo', init_method='file://' + sys.argv[1] + '/store', rank=int(e['RANK']),\n"
               "                        world_size=int(e['WORLD_SIZE']))\n"
               "torch.manual_seed(3)\nnet = torch.nn.Linear(4, 2)\n"
               "with tapedeck.record(sys.argv[1] + '/rank-%s.tdtape' % e['RANK'], net):\n"
               "    model = torch.nn.parallel.DistributedDataParallel(net)\n"
               "    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
               "    torch.manual_seed(int(e['RANK']))\n"
               "    for _ in range(3):\n        model(torch.randn(6, 4)).square().mean().backward()\n"
               "        optimizer.step()\n")
    tapes = os.path.join(folder, "elastic")
    os.mkdir(tapes)
    ranks = [subprocess.Popen([python, "-c", program, tapes], cwd=folder, env=dict(
        environment, TORCHELASTIC_RUN_ID="none", RANK=str(rank), WORLD_SIZE="2")) for rank in range(2)]
    assert [rank.wait() for rank in ranks] == [0, 0]
    said, found = findings(tapes, 0)
    assert not found and said["started"] == 2 and said["steps"] == 3, said
    calls = view(tapes, "ladder", 2)["calls"]
    assert [(c["ranks"][0]["call"], len(c["ranks"])) for c in calls] == [(BUCKET, 2)], calls


def plain(folder):
    """A script that leaves it all to init_process_group; what it has set itself stays."""
    script, said = os.path.join(folder, "plain.py"), "import os, torch\nimport torch.distributed as dist\n"
    with open(script, "w") as out:
        out.write(said + "dist.init_process_group('gloo')\none = torch.ones(1)\ndist.all_reduce(one)\nprint('is', dist.get_rank(), "
                  "int(one), *[os.environ[n] for n in ('LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR')])\n")
    told = run(tapedeck, "run", "-q", "-n", "2", "-o", os.path.join(folder, "plain.ranks"), script).stdout
    assert sorted(re.findall(r"is \d 2 \d 2 127\.0\.0\.1", told)) == ["is 0 2 0 2 127.0.0.1", "is 1 2 1 2 127.0.0.1"], told
    own = run(tapedeck, "run", "-q", "-f", "-n", "2", "-o", os.path.join(folder, "plain.ranks"), script,
              env={"MASTER_ADDR": "localhost"}).stdout
    assert own.count("localhost") == 2, own


def alone(folder):
    """A program without ranks has none of it, and no thread that waits."""
    tape = os.path.join(folder, "one.tdtape")
    said = run(python, "-c", "import threading, torch, tapedeck\nnet = torch.nn.Linear(7, 3)\n"
               "before = torch.distributed.ProcessGroup.__dict__.get('allreduce')\n"
               "with tapedeck.record(%r, net) as session:\n    net(torch.ones(1, 7)).sum().backward()\n"
               "    torch.optim.SGD(net.parameters(), lr=1).step()\n"
               "    print(threading.active_count(), len(session.recorder.instead))\n"
               "print(torch.distributed.ProcessGroup.__dict__.get('allreduce') is before)\n" % tape)
    assert said.stdout.split() == ["1", "0", "True"], said.stdout
    assert "collective" not in run(tapedeck, "cat", tape).stdout


def main():
    claims.skip_without_ranks(python)
    with tempfile.TemporaryDirectory() as folder:
        claim("every call of a program of 2 ranks is in the ladder, with kind, bytes, root, dtype and line", kinds, folder, 2)
        claim("and of 4", kinds, folder, 4)
        claim("one of a group is its members' alone", groups, folder)
        claim("one that is waited for later is behind what runs meanwhile", asynchronous, folder)
        claim("letters are numbered by their pair, and who sent one is known when it has come", letters, folder)
        claim("DistributedDataParallel's own are there with 2 ranks, whole and without findings", buckets, folder, 2)
        claim("and with 4", buckets, folder, 4)
        claim("and without the extension module", buckets, folder, 2, True)
        claim("weights are those of a run that is not recorded, bit for bit", same, folder, "train", 2)
        claim("those of a transformer, too", same, folder, "transformer", 2)
        claim("whose buckets have every gradient", transformer, folder, 2)
        claim("with 2 ranks a slow one is whom the other waits for", waited_for, folder, "slow", 1, 2)
        claim("and with 4 the others", waited_for, folder, "slow", 1, 4)
        claim("lanes have what they wait, until it comes, apart from what they bring", lanes, folder, 4)
        claim("a root that is late is waited for in what it gives to all", waited_for, folder, "late-root", 0, 4)
        claim("who leaves out a call of 2 is missing", missing, folder, 2)
        claim("and of 4", missing, folder, 4)
        claim("it is named within the time that is set, and all are ended", hang, folder, "missing", 2, "abort", ALL_REDUCE,
              "; all are ended")
        claim("and of 3", hang, folder, "missing", 3, "abort", ALL_REDUCE, "; all are ended")
        claim("or left, as is said, for PyTorch to end", hang, folder, "missing", 2, "stop", ALL_REDUCE,
              "; all are left as they are")
        claim("so is who never comes to the others at all", hang, folder, "unmet", 2, "abort", "init_process_group", "; all are ended")
        claim("and who does not send what is waited for", hang, folder, "lonely", 2, "abort", "dist.recv from rank 1",
              "; all are ended")
        claim("who comes within the time is not", patient, folder)
        claim("who comes to another call is named with both", different, folder, 4)
        claim("one that a rank makes wrongly is named, though it dies of it", wrong, folder)
        claim("ranks that torchrun has started are known as those of mpirun", elastic, folder)
        claim("a script that takes all from the environment has what torchrun would set", plain, folder)
        claim("a program without ranks has nothing of it, nor costs it anything", alone, folder)
    claims.end()


main()
