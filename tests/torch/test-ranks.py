#!/usr/bin/env python3
"""Ranks of PyTorch are compared: test-ranks.py TAPEDECK PRODUCER-LIBRARY PACKAGE-FOLDER.

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

sys.dont_write_bytecode = True
import claims  # noqa: E402  # pylint: disable=wrong-import-position
from claims import claim  # noqa: E402  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS, ODD = 3, 2
tapedeck, producer, package = map(os.path.abspath, sys.argv[1:4])
python = claims.find_python()
# Ranks on one machine need no network, and containers allow no reading of each other's memory.
environment = claims.environment(
    package, TAPEDECK_PRODUCER=producer, TAPEDECK_PYTHON=python, HWLOC_COMPONENTS="-gl", OMPI_MCA_btl="self,vader",
    OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm="isolated", OMPI_MCA_plm_rsh_agent="false",
    GLOO_SOCKET_IFNAME="lo")


def run(*args, status=0):
    result = subprocess.run(args, capture_output=True, text=True, env=environment, cwd=HERE)
    assert result.returncode == status, (args, result.returncode, result.stdout[-1000:], result.stderr[-1000:])
    return result


def weights(text):
    """What each rank has in the end."""
    found = sorted(re.findall(r"weights (?:nan|-?0x[0-9a-f.]+p[+-][0-9]+)", text))  # mpirun may put two on a line
    assert len(found) == RANKS, text
    return found


def record(folder, mistake="", level="graph"):
    tapes, store = (os.path.join(folder, "%s.%s.%s" % (mistake or "none", level, kind)) for kind in ("ranks", "store"))
    said = run(tapedeck, "run", "-q", "-n", str(RANKS), "--level", level, "-o", tapes, "ddp.py", store, *filter(None, [mistake]))
    assert "not on the tape" not in said.stderr, said.stderr
    return tapes, weights(said.stdout)


def findings(tapes, status):
    said = json.loads(run(tapedeck, "ranks", "--json", tapes, status=status).stdout)
    return said, [f for f in said["findings"] if f["level"] != "note"]


def clean(folder, mistake, level="graph"):
    tapes, _ = record(folder, mistake, level)
    said, found = findings(tapes, 0)
    assert not found, found
    assert [rank["updates"] for rank in said["ranks"]] == [5] * RANKS, said["ranks"]
    text = run(tapedeck, "ranks", tapes).stdout
    assert "5 steps with updates of %d ranks compared" % RANKS in text, text
    for rank in range(RANKS):
        run(tapedeck, "check", os.path.join(tapes, "rank-%d.tdtape" % rank))


def same_graph(folder):
    """Not the order in which unused parameters are looked at, nor which examples a rank draws, is another graph."""
    said, _ = findings(record(folder, "unused")[0], 0)
    assert not [f for f in said["findings"] if f["cause"] == "different graphs"], said["findings"]


def other_graph(folder):
    said, _ = findings(record(folder, "other")[0], 0)
    note = next(f for f in said["findings"] if f["cause"] == "different graphs")
    assert (note["iteration"], note["ranks"]) == (2, [RANKS - 1]) and "only rank 2 runs mul at ddp.py:" in note["sentence"], note
    assert "loss * 2" in open(os.path.join(HERE, "ddp.py")).readlines()[int(note["site"].split(":")[1]) - 1], note


def joined(folder, mistake):
    """Ranks with fewer batches make the calls of the others, under names of their own."""
    tapes, found = record(folder, mistake)
    assert len(set(found)) == 1, found
    said, found = findings(tapes, 0)
    assert not found, found
    assert [rank["updates"] for rank in said["ranks"]] == [10, 8, 6], said["ranks"]
    told = run(tapedeck, "cat", os.path.join(tapes, "rank-2.tdtape")).stdout
    assert "join: c10d.all_reduce" in told, told[-2000:]
    assert "join: " not in run(tapedeck, "cat", os.path.join(tapes, "rank-0.tdtape")).stdout.replace("join: dist.all_reduce", "")


def joined_write(folder):
    said, found = findings(record(folder, "join-write")[0], 1)
    assert (found[0]["cause"], found[0]["ranks"]) == ("parameters", [RANKS - 1]), found
    assert found[0]["array"].endswith("0/bias"), found


def joined_leave(folder):
    said, found = findings(record(folder, "join-leave")[0], 1)
    assert {"parameters", "update counts"} & {f["cause"] for f in found if RANKS - 1 in f["ranks"]}, found


def behind(folder, mistake):
    """The others' sums meet those of its next iteration, until it does not come to the last."""
    tapes = os.path.join(folder, mistake + ".ranks")
    told = subprocess.run(
        [tapedeck, "run", "-q", "-n", str(RANKS), "--hang-after", "5", "-o", tapes, "ddp.py", tapes + ".store", mistake],
        capture_output=True, text=True, env=environment, cwd=HERE)
    assert "what connects them" not in told.stderr, told.stderr  # another one is elsewhere
    return findings(tapes, 1)[1]


def left_out(folder):
    found = behind(folder, "leave")
    assert (found[0]["cause"], found[0]["iteration"], found[0]["ranks"]) == ("update counts", ODD, [RANKS - 1]), found
    assert "leaves an iteration out" in found[0]["sentence"] and "ddp.py:" in found[0]["site"], found


def ended(folder, mistake, how):
    """It has left the call before, which came no more to the tape of one that was killed."""
    found = behind(folder, mistake)
    assert [f["cause"] for f in found] == ["hang"], found
    assert (found[0]["iteration"], found[0]["ranks"]) == (ODD, [RANKS - 1]), found
    assert "rank 2 never came: it " + how in found[0]["sentence"], found
    assert "its last call was dist.all_reduce at ddp.py:" in found[0]["sentence"], found


def never_averaged(folder):
    _, found = findings(os.path.join(folder, "alone.graph.ranks"), 1)  # that the claim before has recorded
    assert "they never average: each trains a model of its own" in found[0]["sentence"], found


def mismatched(folder, mistake, said):
    """Nobody is said to wait for another reason."""
    found = behind(folder, mistake)
    assert (found[0]["cause"], found[0]["iteration"], found[0]["ranks"]) == ("mismatch", ODD, [RANKS - 1]), found
    assert said in found[0]["sentence"] and "what connects them" not in json.dumps(found), found


def average_loaded(folder):
    _, found = findings(record(folder, "average-load")[0], 1)
    assert [(f["cause"], f["iteration"], f["ranks"]) for f in found] == [("parameters", ODD, [RANKS - 1])], found


def inside_one(folder):
    found = behind(folder, "inside-one")
    assert (found[0]["cause"], found[0]["iteration"], found[0]["ranks"]) == ("not averaged", 2, [RANKS - 1]), found
    assert "was called by itself at ddp.py:" in found[0]["sentence"], found


def untold_share(folder):
    said, found = findings(record(folder, "share-tensor")[0], 0)
    assert not found and any("weighted by that is not on the tapes" in f["sentence"] for f in said["findings"]), said["findings"]


def same(folder):
    store = os.path.join(folder, "plain.store")
    plain = run("mpirun", "--allow-run-as-root", "--oversubscribe", "-q", "-n", str(RANKS), python, "ddp.py", store)
    assert weights(plain.stdout) == record(folder)[1] and len(set(weights(plain.stdout))) == 1, plain.stdout


def named(folder, mistake, cause, iteration, ranks, array, advice="", level="graph", line=""):
    said, found = findings(record(folder, mistake, level)[0], 1)
    first = found[0]
    assert "0x" not in json.dumps(said["findings"]), said  # where an object lies is no difference
    assert (first["cause"], first["iteration"], first["ranks"]) == (cause, iteration, ranks), found
    assert (first["array"] or "").endswith(array), first
    assert advice in (first["advice"] or ""), first
    # a line of the program is said by what is on it
    assert not line or first["site"], first
    assert not line or line in open(os.path.join(HERE, "ddp.py")).readlines()[int(first["site"].split(":")[1]) - 1], first
    assert not line or len({f["cause"] for f in found} - {cause, "not finite"}) == 0, found  # what comes of it is said with it
    assert not re.search(r"\btd_", json.dumps(said["findings"])), said  # those are no names of PyTorch


def without(folder):
    """One process has nobody to be compared with, and no sums."""
    tape = os.path.join(folder, "one.tdtape")
    run(python, "-c", "import torch, tapedeck\nnet = torch.nn.Linear(7, 3)\n"
        "with tapedeck.record(%r, net):\n    net(torch.ones(1, 7)).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n" % tape)
    assert "rank sum" not in run(tapedeck, "cat", tape).stdout


def main():
    claims.skip_without_ranks(python)
    with tempfile.TemporaryDirectory() as folder:
        claim("ranks that do the same have nothing found, and whole tapes", clean, folder, "")
        claim("nor with Adam, whose states are compared too", clean, folder, "adam")
        claim("nor with an average of the weights that is kept beside them", clean, folder, "average", "stats")
        claim("nor with sequences of another length in each step", clean, folder, "lengths")
        claim("recorded or not they have the same weights, bit for bit", same, tempfile.mkdtemp(dir=folder))
        claim("a weight that one rank writes is named, with rank, iteration and line", named, folder, "write",
              "parameters", 2, [RANKS - 1], "/0/bias", "torch.manual_seed", "graph", "net[0].bias.add_(0.5)")
        claim("another learning rate is", named, folder, "rate", "optimizer numbers", 0, [RANKS - 1], "lr", "optimizer.param_groups")
        claim("and so are ranks of which each trains alone", named, folder, "alone", "optimizer state", 0, list(range(RANKS)),
              "momentum_buffer", "Wrap the model in DistributedDataParallel")
        claim("also where only a loss is summed, for the log", named, folder, "log-apart", "plain optimizer", 0, list(range(RANKS)), "",
              "Wrap the model in", "graph", "optimizer.step()")
        claim("and what their states differ by is said", never_averaged, folder)
        claim("ranks that read the same examples are, with PyTorch's way to deal them out", named, folder, "copies", "same data",
              0, list(range(RANKS)), "", "DistributedSampler, whose set_epoch")
        claim("and where gradients lie in the buckets", named, folder, "view", "same data", 0, list(range(RANKS)), "", "DistributedSampler")
        claim("unequal batches are, in all steps", named, folder, "short", "unequal batches", 0, [0, RANKS - 1], "", "drop_last=True")
        claim("and in the last one", named, folder, "last", "unequal batches", 4, [0, RANKS - 1], "", "drop_last=True")
        claim("not those whose losses are weighted by their shares", clean, folder, "share")
        claim("nor by numbers of which only level stats knows", clean, folder, "share-tensor", "stats")
        claim("and without it that is said", untold_share, folder)
        claim("a NaN that one rank brings into the means is, with the rank", named, folder, "nan", "not finite", 2,
              [RANKS - 1], "0/weight")
        for mistake, line in (("nan-write", "net[2].weight.data[1]"), ("nan-under", "mul_("), ("nan-load", "load_state_dict")):
            claim("one that it writes into a weight is, with the line: " + mistake, named, folder, mistake, "not finite", 2,
                  [RANKS - 1], "0/weight", "mend the operation", "graph", line)
        claim("an average of the weights that one rank loads is no batch of its own", average_loaded, folder)
        claim("a step that one rank leaves out is, where it is", named, folder, "skip", "update counts", 2, [RANKS - 1], "",
              "optimizer.step () as often", "graph", "optimizer.step()")
        claim("and one that it takes twice, too", named, folder, "twice", "update counts", 2, [RANKS - 1], "",
              "optimizer.step () as often", "graph", "optimizer.step()")
        claim("a mean that one rank clips is, with the line", named, folder, "clip", "means differ", 2, [RANKS - 1], "0/weight",
              "clip_grad_norm_", "graph", "clip_grad_norm_")
        claim("and one that it writes to by hand", named, folder, "hand", "means differ", 2, [RANKS - 1], "0/bias",
              "all_reduce must be the same", "graph", 'grad[1] = float("nan")')
        claim("examples drawn by their numbers, and unused parameters, are no other graph", same_graph, folder)
        claim("where there is another one, it is named, and not which examples were drawn", other_graph, folder)
        claim("what one rank prints makes no other model, whatever examples each reads", clean, folder, "log")
        for mistake, line in (("log-scale", "4.0 if odd"), ("slope", "(model.module if")):
            claim("a number of an operator that is another one on one rank is named: " + mistake, named, folder, mistake,
                  "different graphs", 0, [RANKS - 1], "", "same model", "graph", line)
        claim("not which part a rank takes, nor what comes of its examples", clean, folder, "own-part")
        claim("a rank that brings another length to a sum is named", mismatched, folder, "length",
              "rank 2 brings another length than the others to a sum in iteration 2 (call ")
        claim("and one that makes a call of its own", mismatched, folder, "barrier", "rank 2 in dist.barrier at ddp.py:")
        for how, said in (("dies", "was killed by SIGKILL in iteration 2"), ("hangs", "was in iteration 2"),
                          ("raises", "ended with status 1 in iteration 2")):
            claim("of a rank that %s no more is said than that, and where" % how, ended, folder, "log-" + how, said)
        claim("ranks with fewer batches, which join, are healthy", joined, folder, "join")
        claim("and those that sum gradients over batches", joined, folder, "join-twice")
        claim("what one of them writes is named nevertheless", joined_write, folder)
        claim("and that one has left out more steps than it had joined for", joined_leave, folder)
        claim("a NaN of one of two models of the same size is, with the rank", named, folder, "pair-nan", "not finite", 2,
              [RANKS - 1], "Parallel2/module/0/weight")
        claim("also in one backward of both", named, folder, "pair-joint-nan", "not finite", 2, [RANKS - 1], "Parallel2/module/0/weight")
        claim("and where gradients lie in their buckets", named, folder, "pair-view-nan", "not finite", 2, [RANKS - 1], "Parallel2/module/0/weight")
        claim("two that are healthy are", clean, folder, "pair")
        everyone, once = list(range(RANKS)), "(model.module if"
        claim("a module that is called by itself inside of DistributedDataParallel is told as that", named, folder, "inside",
              "not averaged", 0, everyone, "0/weight", "Call what DistributedDataParallel returns", "graph", once)
        claim("also once", named, folder, "inside-once", "not averaged", 2, everyone, "0/weight", "and not the module inside",
              "graph", once)
        claim("also on one rank", inside_one, folder)
        claim("and a step after no_sync", named, folder, "no-sync", "not averaged", 2, everyone, "0/weight", "under no_sync", "graph",
              once)
        claim("gradients that are gathered under no_sync before a backward that averages them are healthy", clean, folder,
              "accumulate")
        claim("also where a hook of the program's sends them", clean, folder, "accumulate-hook")
        claim("a rank that leaves an iteration out is named, with that iteration", left_out, folder)
        claim("where the program averages what came of it, it is healthy", clean, folder, "inside-hand")
        claim("and where nothing came of it", clean, folder, "inside-look")
        claim("one process alone has no sums", without, folder)
    claims.end()


main()
