#!/usr/bin/env python3
"""onnx-search.py TAPEDECK [COUNT [SEED]]: random ONNX operators, against onnxruntime and the reference.

A searcher: begins with a row of onnx-operators.py and changes it, opset, attributes (those of the
standard that the row does not use, too), shapes, types, special numbers, which inputs are there and
which the file has.  What onnx's checker allows and onnxruntime runs is either what `tapedeck eval`
gives, or refused in one line (or one for each thing that is not there); nothing else may come, whatever the model says.  Where onnxruntime and
onnx's reference differ, either answer will do.

COUNT models (TD_SEARCH_KEEP: a folder for those that fail).  SPDX-License-Identifier: MIT
"""
import collections
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
operators = importlib.import_module("onnx-operators")  # leaves with 77 where onnx is not there
# pylint: disable=wrong-import-position
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

G = operators.Given
COUNT, SEED = 600, 1
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 0.5, 1.5, -2.5, 88.8, -104.0]
FLOATS, WHOLE = (np.float32, np.float64, np.float16), (np.int64, np.int32, np.uint8, np.int8)
# What texts an attribute takes, where the standard's schema says it in prose only.
TEXTS = {
    "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], "mode": ["constant", "reflect", "edge", "wrap", "nearest",
    "linear", "cubic", "DCR", "CRD"], "direction": ["forward", "reverse", "bidirectional"], "reduction": ["none", "mean", "sum",
    "add", "mul", "max", "min"], "coordinate_transformation_mode": ["half_pixel", "pytorch_half_pixel", "align_corners",
    "asymmetric", "half_pixel_symmetric", "tf_crop_and_resize"], "nearest_mode": ["round_prefer_floor", "round_prefer_ceil",
    "floor", "ceil"], "approximate": ["none", "tanh"], "keep_aspect_ratio_policy": ["stretch", "not_larger", "not_smaller"],
    "equation": ["ij,jk->ik", "bij,bjk->bik", "ij,ij->i", "ij,j", "...ij,...jk->...ik", "bij,bij->", "ii->i", "ij->ji"],
}
# Random by their nature, or with a random part: not for comparing.
RANDOM_OPS = {"RandomNormal", "RandomUniform", "Multinomial", "Bernoulli"}


# What infinity, NaN and 1e30 become depends on the order of sums or on what a rounding sees there.
TAME = {"Cast", "MaxPool", "QuantizeLinear", "DynamicQuantizeLinear", "Resize", "Upsample", "LRN", "BatchNormalization"}


class Case:
    """One node with what it is given."""

    def __init__(self, rng, row):
        op, _, inputs, attributes, *rest = row
        self.op, self.n_out = op, rest[0] if rest else 1
        self.opset = int(rng.integers(7, 22))
        self.inputs = [None if i is None else (np.array(i.array if isinstance(i, G) else i), isinstance(i, G)) for i in inputs]
        self.attributes = dict(attributes)

    def said(self):
        return (f"{self.op} opset {self.opset} {self.attributes} " +
                ", ".join("-" if i is None else f"{i[0].dtype}{list(i[0].shape)}{' in the file' if i[1] else ''}" +
                          (f" {i[0].tolist()}" if i[0].size <= 6 and i[0].dtype.kind in "iu" else "") for i in self.inputs))

    def model(self):
        inputs = [None if i is None else G(i[0]) if i[1] else i[0] for i in self.inputs]
        return operators.model_of(self.op, self.opset, inputs, self.attributes, self.n_out)

    def arrays(self):
        return [i[0] for i in self.inputs if i is not None and not i[1]]


def other_number(rng, value):
    if isinstance(value, float):
        return float(rng.choice([0.0, 1.0, -1.0, 0.3, 2.5, value * 2]))
    return int(value + rng.integers(-2, 3)) if rng.random() < 0.7 else int(rng.integers(-4, 8))


def random_attribute(rng, case, name, schema):
    """Of the kind that the standard says."""
    old = case.attributes.get(name)
    kind = str(schema.attributes[name].type).rsplit(".", maxsplit=1)[-1]
    if kind == "STRING":
        return str(rng.choice(TEXTS.get(name, ["none"])))
    if kind == "INT":
        return other_number(rng, old if old is not None else int(rng.integers(0, 2)))
    if kind == "FLOAT":
        return other_number(rng, float(old if old is not None else 1.0))
    if kind in ("INTS", "FLOATS"):
        old = list(old) if old is not None else [1] * int(rng.integers(1, 5))
        how = rng.random()
        if how < 0.2:
            rng.shuffle(old)
        elif how < 0.3:
            old = old[:-1]
        elif how < 0.4:
            old = old + old[-1:]
        else:
            old = [other_number(rng, v) if rng.random() < 0.5 else v for v in old]
        return [float(v) if kind == "FLOATS" else int(v) for v in old]
    return old


def change_attribute(rng, case):
    try:
        schema = onnx.defs.get_schema(case.op, case.opset)
    except onnx.defs.SchemaError:
        return
    names = [n for n in schema.attributes if n not in ("body", "then_branch", "else_branch")]
    if not names:
        return
    name = str(rng.choice(names))
    if name in case.attributes and rng.random() < 0.25:
        del case.attributes[name]
    elif (value := random_attribute(rng, case, name, schema)) is not None:
        case.attributes[name] = value


def resized(rng, array, shape):
    out = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    if array.dtype.kind == "f":
        out = rng.permutation(out.reshape(-1)).reshape(shape)
    return np.asarray(out, array.dtype)


def change_size(rng, case):
    """A size wherever it stands, so that shapes go on fitting each other."""
    there = sorted({d for i in case.inputs if i is not None and i[0].dtype.kind == "f" for d in i[0].shape})
    if not there:
        return
    old, new = int(rng.choice(there)), int(rng.choice([0, 1, 2, 3, 5, 6, 7]))
    case.inputs = [i if i is None or i[0].dtype.kind != "f" else (
        resized(rng, i[0], tuple(new if d == old else d for d in i[0].shape)), i[1]) for i in case.inputs]


def change_input(rng, case):
    """Shape, values or place of one."""
    at = int(rng.integers(len(case.inputs)))
    if case.inputs[at] is None:
        return
    array, given = case.inputs[at]
    how = rng.random()
    if how < 0.15 and at > 0:
        case.inputs[at] = None
        return
    if how < 0.3:
        given = not given
    elif how < 0.5 and array.ndim:
        shape = list(array.shape)
        axis = int(rng.integers(array.ndim))
        shape[axis] = int(rng.choice([0, 1, 1, 2, 3, 4]))
        array = resized(rng, array, tuple(shape))
    elif how < 0.6:
        array = array[None]
    elif how < 0.7 and array.ndim:
        array = resized(rng, array, array.shape[1:])
    elif array.dtype.kind in "iu" and array.size:
        array = array.copy()
        spot = int(rng.integers(array.size))
        value = int(array.reshape(-1)[spot]) + int(rng.integers(-3, 4))
        limits = np.iinfo(array.dtype)
        array.reshape(-1)[spot] = min(max(value, int(limits.min)), int(limits.max))
    elif array.dtype.kind == "f" and array.size and case.op not in TAME:
        array = array.copy()
        with np.errstate(over="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = rng.choice(SPECIAL)
    case.inputs[at] = (array, given)


def change_type(rng, case):
    """All numbers of one kind at once."""
    kind = rng.choice(["f", "i"])
    to = rng.choice(FLOATS + WHOLE) if kind == "f" else rng.choice(WHOLE)
    with np.errstate(all="ignore"), warnings.catch_warnings():  # what integers cannot hold
        warnings.simplefilter("ignore")
        case.inputs = [i if i is None or i[0].dtype.kind != kind else (np.nan_to_num(i[0]).astype(to), i[1])
                       for i in case.inputs]


CHANGES = [change_attribute, change_attribute, change_size, change_input, change_input, change_type]


def answer_of_onnxruntime(case):
    """None where the standard or onnxruntime refuses it."""
    try:
        model = case.model()
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return model, session.run(None, {i.name: a for i, a in zip(session.get_inputs(), case.arrays())})
    except Exception:  # pylint: disable=broad-except # whatever it says: no answer to compare with
        return model if "model" in locals() else None, None


def answer_of_reference(model, arrays):
    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, {i.name: a for i, a in zip(model.graph.input, arrays)})
    except Exception:  # pylint: disable=broad-except
        return None


def same(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype.kind != "f":
        return bool((got == want).all())
    bound = {2: 4e-3, 4: 1e-5, 8: 1e-5}[got.dtype.itemsize]  # of a half: its own step, twice
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not (np.isfinite(a) == finite).all() or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    scale = 1 + (np.abs(b[finite]).max() if finite.any() else 0)
    return not finite.any() or bool(np.abs(a[finite] - b[finite]).max() <= bound * scale)


def ours(program, model, arrays, folder):
    """Status, outputs and stderr of `tapedeck eval`."""
    onnx.save(model, f"{folder}/m.onnx")
    command = [program, "eval", f"{folder}/m.onnx", "-o", f"{folder}/out"]
    for i, array in enumerate(arrays):
        np.save(f"{folder}/{i}.npy", array)
        command += ["--in", f"{folder}/{i}.npy"]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=60)
        outs = [np.load(f"{folder}/out/out{k}.npy") for k in range(len(model.graph.output))] if child.returncode == 0 else []
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:  # it hangs, or has not written what it says
        return None, [], str(error)
    return child.returncode, outs, child.stderr.strip()


def is_disputed(case):
    """Where onnxruntime does not do what the standard says, and the reference does nothing."""
    return case.op == "MaxPool" and "dilations" in case.attributes and "SAME" in case.attributes.get("auto_pad", "")


def judge(program, case, counts):
    """None, or what is wrong."""
    model, want = answer_of_onnxruntime(case)
    if model is None:
        counts["no model"] += 1
        return None
    with tempfile.TemporaryDirectory() as folder:
        status, got, text = ours(program, model, case.arrays(), folder)
    lines = text.splitlines()
    if status not in (0, 1, 2) or (status != 0 and (not lines or any(": not there: " not in l for l in lines[1:]))):
        return f"status {status}: {text}"
    if want is None or is_disputed(case):
        counts["onnxruntime refuses it"] += 1
        return None
    if status != 0:
        counts["refused"] += 1
        counts[f"refused: {case.op}: {text.split(': ', 2)[-1][:100]}"] += 1
        return None
    if all(same(a, b) for a, b in zip(got, want)):
        counts["equal"] += 1
        return None
    other = answer_of_reference(model, case.arrays())
    if other is not None and all(same(a, np.asarray(b)) for a, b in zip(got, other)):
        counts["as the reference"] += 1
        return None
    return "differs: " + "; ".join(f"{a.dtype}{list(a.shape)} {a.reshape(-1)[:4]}, {b.dtype}{list(b.shape)} {b.reshape(-1)[:4]} expected"
                                   for a, b in zip(got, want) if not same(a, b))[:600]


def search(program, seed, numbers, keep, say):
    """Each model of these numbers; `say` is told of each, so that a process which dies has said how far it came."""
    rows = [r for r in operators.ROWS if r[0] not in RANDOM_OPS]
    for k in numbers:
        rng = np.random.default_rng([seed, k])
        case, counts = Case(rng, rows[int(rng.integers(len(rows)))]), collections.Counter()
        for _ in range(int(rng.integers(1, 4))):
            rng.choice(CHANGES)(rng, case)
        problem = judge(program, case, counts)
        if problem is not None and keep:
            onnx.save(case.model(), f"{keep}/{seed}-{k}.onnx")
        say({"k": k, "counts": counts, "problem": problem and f"{seed}/{k} {case.said()}: {problem}"})


def told(program, seed, numbers, keep):
    """What a process of its own says: onnxruntime ends by a signal at some of these."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w") as pipe, open(os.devnull, "w", encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 2)
            try:
                search(program, seed, numbers, keep, lambda what: print(json.dumps(what), file=pipe, flush=True))
            except BaseException:  # pylint: disable=broad-except # not the parent's code a second time
                print(traceback.format_exc(), flush=True)
                os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        yield from map(json.loads, pipe)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status) and status != 0:
        sys.exit(f"not ok - the search itself ended with {os.waitstatus_to_exitcode(status)}")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    counts, failed, k = collections.Counter(), 0, 0
    while k < count:
        for what in told(sys.argv[1], seed, range(k, count), os.environ.get("TD_SEARCH_KEEP")):
            counts.update(what["counts"])
            k = what["k"] + 1
            if what["problem"] is not None:
                failed += 1
                print(f"not ok - {what['problem']}", flush=True)
        if k < count:
            counts["onnxruntime ends the process"] += 1
            k += 1
    for what, n in sorted(counts.items(), key=lambda item: (item[0].startswith("refused:"), -item[1])):
        print(f"# {n} {what}")
    print(f"{'not ok' if failed else 'ok'} - of {count} models {counts['equal'] + counts['as the reference']} are equal, "
          f"{counts['refused']} refused in one line, {failed} wrong")
    if counts["equal"] < count // 5:
        failed += 1
        print(f"not ok - only {counts['equal']} of {count} could be compared")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
