"""`tapedeck import` of a reference: arrays that any framework has written, named by layer.

    reference.py TAPEDECK

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
import npz  # noqa: E402  # pylint: disable=wrong-import-position

tapedeck = sys.argv[1]
SIX = [1, -2, 3, 4, -5, 6]


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def imported(folder, arrays, **more):
    path, tape = os.path.join(folder, "ref.npz"), os.path.join(folder, "ref.tdtape")
    npz.write(path, arrays, **more)
    said = run("import", path, "-f", "-o", tape).stdout
    run("check", tape)
    return [json.loads(line) for line in run("cat", "--json", tape).stdout.splitlines()], said, tape


def lines(folder, arrays, **more):
    _, said, tape = imported(folder, arrays, **more)
    return run("cat", tape).stdout, said, tape


def names(folder):
    """What an array is stands in its name, with dots or slashes; gradients of outputs and of parameters."""
    text, said, _ = lines(folder, [
        ("h.0.ln/out", npz.npy(SIX, (2, 3))), ("h.0.ln/weight", npz.npy([1, 2, 3], (3,))),
        ("h.0.ln/weight/grad", npz.npy([4, 5, 6], (3,))), ("h.0.ln/grad", npz.npy(SIX, (2, 3))),
        ("head.out", npz.npy(SIX, (3, 2), "<f8")), ("head.W.grad", npz.npy(SIX, (3, 2)))])
    assert "6 arrays of 2 layers" in said, said
    for line in ("parameter h/0/ln/weight float32 (3)", "parameter head/W float32 (3, 2)",
                 "0 forward layer h/0/ln : v0'h.0.ln/weight'(3) -> v1'h.0.ln/out'(2, 3)",
                 "1 forward layer head :  -> v2'head.out'(3, 2)",
                 "2 backward layer head of 1 :  -> v3'head.W.grad'(3, 2)",
                 "3 backward layer h/0/ln of 0 : v4'h.0.ln/grad'(2, 3) -> v5'h.0.ln/weight/grad'(3)",
                 "stats v1 n=6 min=-5 max=6 mean=1.16666667"):
        assert line in text, (line, text)


def same_as_floats(folder, data, plain):
    paths = [os.path.join(folder, name) for name in ("one.npz", "plain.npz")]
    for path, array in zip(paths, (data, plain)):
        npz.write(path, [("l/out", array)])
    output = json.loads(run("diff", *paths, "--by", "layer", "--json").stdout)["layers"][0]["output"]
    assert output["verdict"] == "same" and output["elements"] == "compared", output


def elements(folder):
    """Statistics and elements are those of the file: of all types, packed, and column by column."""
    columns = [1, 4, -2, -5, 3, 6]  # of (2, 3)
    for key, data in (("f4", npz.npy(SIX, (2, 3))), ("f8", npz.npy(SIX, (2, 3), "<f8")),
                      ("i8", npz.npy(SIX, (2, 3), "<i8")), ("i4", npz.npy(SIX, (2, 3), "<i4")),
                      ("f2", npz.npy(SIX, (2, 3), "<f2")), ("unpadded", npz.npy(SIX, (2, 3), "<f8", padded=False)),
                      ("turned", npz.npy(columns, (2, 3), fortran=True))):
        for pack in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path = os.path.join(folder, key + ".npz")
            npz.write(path, [("l/out", data)], pack)
            text = run("cat", path).stdout  # given where a tape is expected
            assert "mean=1.16666667 l2=9.53939201" in text, text
        same_as_floats(folder, data, npz.npy(SIX, (2, 3)))


def small_whole(folder):
    """Bytes and truth values are the numbers that they are."""
    for descr in ("|u1", "|b1"):
        same_as_floats(folder, npz.npy([0, 1, 1, 0, 1, 1], (6,), descr), npz.npy([0, 1, 1, 0, 1, 1], (6,)))


def left_out(folder):
    """What has no such name, or no such elements, is left out, and said."""
    text, said, tape = lines(folder, [
        ("l/out", npz.npy(SIX, (6,))), ("step", npz.npy([3], (), "<i8")), ("a//out", npz.npy([3], ())),
        ("big/out", npz.npy(SIX, (6,), ">f4")), ("short/out", npz.npy(SIX, (7,))), ("x.grad", npz.npy([3], ())),
        ("none/out", b"nothing")])
    assert "1 array of 4 layers" in said and "6 arrays are left out" in said, said
    assert "6 of 7 arrays are left out: step.npy: no layer is named, ..." in text, text
    assert "6 of 7 arrays are left out" in run("info", tape).stdout


def wrong(folder):
    """What is no reference is no tape either; one line says why."""
    path, tape = os.path.join(folder, "wrong.npz"), os.path.join(folder, "wrong.tdtape")
    whole = [("l/out", npz.npy(SIX, (2, 3))), ("l/W/grad", npz.npy(SIX, (2, 3)))]
    for arrays, why in (([("l/out", npz.npy(SIX, (6,))), ("l.out", npz.npy(SIX, (6,)))], "two of its arrays are"),
                        ([("l/W/grad", npz.npy(SIX, (6,))), ("l.W.grad", npz.npy(SIX, (6,)))], "two of its arrays"),
                        ([("x.grad", npz.npy(SIX, (6,)))], "none of its arrays is called")):
        npz.write(path, arrays)
        error = run("import", path, "-o", tape, status=2).stderr
        assert why in error and error.count("\n") == 1, error
        assert not os.path.exists(tape)
    # weights, and other archives, are no reference: which names one has is said
    for arrays in ([("l.weight", npz.npy(SIX, (2, 3)))], [("foo", npz.npy([1], ()))], []):
        npz.write(path, arrays)
        for args in (("import", path, "-o", tape), ("diff", path, path, "--by", "layer"), ("info", path)):
            error = run(*args, status=2).stderr
            assert "zip file" in error and "LAYER/out, LAYER/grad or LAYER/PARAMETER/grad" in error, error
            assert path in error and error.count("\n") == 1, error
    npz.write(path, whole)
    with open(path, "rb") as file:
        data = file.read()
    for at in range(0, len(data), 7):
        for change in (data[:at], data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:]):
            with open(path, "wb") as file:
                file.write(change)
            result = subprocess.run([tapedeck, "import", path, "-f", "-o", tape], capture_output=True, text=True)
            assert result.returncode in (0, 2), (at, result)
            if result.returncode == 0:
                run("check", tape)
                os.unlink(tape)
            assert not os.path.exists(tape)


def main():
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    claims = (names, elements, small_whole, left_out, wrong)
    print("1..%d" % len(claims))
    for i, claim in enumerate(claims, 1):
        with tempfile.TemporaryDirectory() as folder:
            claim(folder)
        print("ok %d - %s" % (i, claim.__doc__.split("\n")[0]), flush=True)


main()
