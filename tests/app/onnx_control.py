"""Models with control flow, as ONNX's helper writes them: name -> (model, inputs by name); and such as are refused.

All that run are of double precision, so that differences of onnxruntime's results are gradients.
SPDX-License-Identifier: MIT
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(11)
DOUBLE, INT, BOOL = TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
X = RANDOM.standard_normal((3, 4))
W = RANDOM.standard_normal(4)


def port(name, shape, kind=DOUBLE):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, [i.strip("-") for i in inputs.split()], outputs.split(), **attributes)


def body(nodes, inputs, outputs, givens=()):
    return helper.make_graph(nodes, "body", inputs, outputs,
                             [numpy_helper.from_array(np.asarray(a), n) for n, a in givens])


def model(nodes, inputs, outputs, givens=(), opset=13):
    ports = [port(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "control", ports, [helper.make_empty_tensor_value_info(o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in givens])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    for out in made.graph.output:
        out.CopyFrom(port(out.name, None))
    return made


def branches():
    """Both see names from outside; the condition is computed, given, or known when the file is read."""
    then = body([node("Mul", "x w", "p"), node("Tanh", "p", "r")], [], [port("r", None)])
    other = body([node("Constant", "", "half", value=numpy_helper.from_array(np.array(0.5))), node("Mul", "x half", "r")], [],
                 [port("r", None)])
    asks = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c")]
    for sign in (1, -1):
        x = np.abs(X) * sign
        choose = node("If", "c", "y", then_branch=then, else_branch=other)
        yield f"If of a sum that is {'above' if sign > 0 else 'below'} 0", model(
            [*asks, choose], {"x": x, "w": W}, ["y"], [("zero", 0.0)]), {"x": x, "w": W}
        given = {"x": x, "w": W, "c": np.array(sign > 0)}
        yield f"If of an input that is {sign > 0}", model([choose], given, ["y"]), given
        yield f"If of an initializer that is {sign > 0}", model(
            [choose], {"x": x, "w": W}, ["y"], [("c", np.array(sign > 0))]), {"x": x, "w": W}


def nested():
    """An If in an If in a Loop, with names from every level, and one that branches share."""
    inner = [body([node(op, "v w", "r")], [], [port("r", None)]) for op in ("Add", "Mul")]
    outer = [body([node("If", "odd", "r", then_branch=inner[0], else_branch=inner[1])], [], [port("r", None)]),
             body([node("Sin", "v", "r")], [], [port("r", None)])]
    turn = body([node("Mod", "i two", "m"), node("Cast", "m", "odd", to=BOOL), node("Less", "i two", "early"),
                 node("If", "early", "v2", then_branch=outer[0], else_branch=outer[1]), node("Identity", "go", "on")],
                [port("i", [], INT), port("go", [], BOOL), port("v", [3, 4])], [port("on", [], BOOL), port("v2", [3, 4])])
    yield "If in If in Loop", model([node("Loop", "n - x", "y", body=turn)], {"x": X, "w": W}, ["y"],
                                    [("n", 5), ("two", 2)]), {"x": X, "w": W}


def loops():
    turn = body([node("Mul", "v w", "a"), node("Tanh", "a", "v2"), node("Cast", "i", "t", to=DOUBLE),
                 node("Mul", "v2 t", "s"), node("Identity", "go", "on")],
                [port("i", [], INT), port("go", [], BOOL), port("v", [3, 4])],
                [port("on", [], BOOL), port("v2", [3, 4]), port("s", [3, 4])])
    for n in (0, 1, 4):
        both = {"x": X, "w": W, "n": np.array(n)}
        yield f"Loop of {n} turns, an input", model([node("Loop", "n - x", "y s", body=turn)], both, ["y", "s"]), both
        del both["n"]
        yield f"Loop of {n} turns, an initializer", model(
            [node("Loop", "n - x", "y s", body=turn)], both, ["y", "s"], [("n", n)]), both
    grows = body([node("Mul", "v w", "v2"), node("ReduceMax", "v2", "top", keepdims=0), node("Less", "top most", "on")],
                 [port("i", [], INT), port("go", [], BOOL), port("v", [4])],
                 [port("on", [], BOOL), port("v2", [4]), port("top", [])])
    w = np.abs(W) + 1.1
    for count in ("-", "n"):
        yield f"Loop while a maximum is small, {'with' if count == 'n' else 'without'} a count", model(
            [node("Loop", f"{count} yes w", "y tops", body=grows), node("Shape", "tops", "turns")], {"w": w},
            ["y", "tops"], [("yes", True), ("most", 50.0), ("n", 3)]), {"w": w}
    sizes = body([node("Add", "i one", "j"), node("Identity", "go", "on")],
                 [port("i", [], INT), port("go", [], BOOL)], [port("on", [], BOOL), port("j", [], INT)])
    yield "Loop that makes a shape", model(
        [node("Loop", "n -", "sizes", body=sizes), node("Reshape", "x sizes", "y")], {"x": X[:1, :2]}, ["y"],
        [("n", 2), ("one", 1)]), {"x": X[:1, :2]}


def scans():
    turn = body([node("Mul", "h w", "a"), node("Add", "a e", "b"), node("Tanh", "b", "h2"), node("Mul", "h2 h2", "o")],
                [port("h", [4]), port("e", [4])], [port("h2", [4]), port("o", [4])])
    h = RANDOM.standard_normal(4)
    for axis, backward, to, last_first in ((0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1), (-1, 1, -1, 1)):
        x = X if axis == 0 else X.T.copy()
        given = {"h": h, "x": x, "w": W}
        yield f"Scan along {axis}, {'backward' if backward else 'forward'}, to {to}{', last first' * last_first}", model(
            [node("Scan", "h x", "y o", body=turn, num_scan_inputs=1, scan_input_axes=[axis],
                  scan_input_directions=[backward], scan_output_axes=[to], scan_output_directions=[last_first])],
            given, ["y", "o"]), given


def cases():
    for of in (branches, nested, loops, scans):
        yield from of()


def refused():
    """Name, model, inputs, what is said."""
    turn = body([node("Add", "v late", "v2"), node("Identity", "go", "on")],
                [port("i", [], INT), port("go", [], BOOL), port("v", [3, 4])], [port("on", [], BOOL), port("v2", [3, 4])])
    yield "a body that takes what is made later", model(
        [node("Loop", "n - x", "y", body=turn), node("Mul", "x x", "late")], {"x": X}, ["y"], [("n", 2)]), \
        "takes late, which nothing makes"
    fine = body([node("Add", "v v", "v2"), node("Identity", "go", "on")],
                [port("i", [], INT), port("go", [], BOOL), port("v", [3, 4])], [port("on", [], BOOL), port("v2", [3, 4])])
    yield "a Loop that never ends", model([node("Loop", "- - x", "y", body=fine)], {"x": X}, ["y"]), \
        "an end (a count or a condition) of Loop"
    yield "a Loop without what it carries", model([node("Loop", "n", "y", body=fine)], {"x": X}, ["y"], [("n", 2)]), \
        "inputs that fit the body of Loop"
    yield "a count that is damaged", model(
        [node("Loop", "n -", "y", body=body([node("Identity", "go", "on"), node("Identity", "i", "j")],
                                            [port("i", [], INT), port("go", [], BOOL)],
                                            [port("on", [], BOOL), port("j", [], INT)]))], {}, ["y"], [("n", 2**62)]), \
        "more than 262144 turns in a call"
    lacking = body([node("Det", "x", "r")], [], [port("r", None)])
    yield "an operator that is not there, in a branch", model(
        [node("If", "c", "y", then_branch=lacking, else_branch=lacking)], {"x": X}, ["y"], [("c", True)]), \
        "not there: operator Det (node r)"
    quantized = node("QuantizeLinear", "x one zero", "q")
    single, givens = {"x": X.astype(np.float32)}, [("one", np.float32(1)), ("zero", np.int8(0))]
    yield "arithmetic with int8", model([quantized, node("Add", "q q", "y")], single, ["y"], givens), \
        "input 0 of int8 of Add (node y)"
    yield "an output of int8", model([quantized, node("Identity", "q", "y")], single, ["y"], givens), "output y of int8"
    kept = body([node("Identity", "q", "r")], [], [port("r", None)])
    yield "int8 that a branch hands out", model(
        [quantized, node("If", "c", "y", then_branch=kept, else_branch=kept)], single, ["y"], [*givens, ("c", True)]), \
        "output r of int8"
    yield "an array that becomes int8", model([node("Cast", "x", "q", to=3), node("DequantizeLinear", "q one", "y")], single,
                                              ["y"], givens[:1]), "a constant expected to become int8, got an array"
    yield "bounds that are no numbers", model([node("Clip", "x low", "y")], single, ["y"], [("low", np.float32(np.nan))]), \
        "bounds that are numbers expected, got nan and inf"
    yield "a window in the padding alone", model([node("MaxPool", "x", "y", kernel_shape=[2], pads=[2, 0])],
                                                 {"x": np.ones((1, 1, 4), np.float32)}, ["y"]), \
        "padding less than the window of 2 expected, got 2"
    yield "sequences of none", model([node("RNN", "x w u", "y", hidden_size=2)], {"x": np.ones((3, 0, 2), np.float32)}, ["y"],
                                     [("w", np.ones((1, 2, 2), np.float32)), ("u", np.ones((1, 2, 2), np.float32))]), \
        "a sequence and more expected, got a batch of 0"
    yield "a label that is none", model([node("SoftmaxCrossEntropyLoss", "x t", "y")], {"x": np.ones((2, 3), np.float32)}, ["y"],
                                         [("t", np.array([0, -1]))]), "got -1"
    yield "between integers", model([node("Resize", "x - s", "y", mode="linear")], {"x": np.ones((1, 1, 2, 2), np.int32)}, ["y"],
                                    [("s", np.array([1, 1, 2, 2], np.float32))]), "floating-point numbers expected"
    yield "scales of blocks", model(
        [node("DequantizeLinear", "q s", "y", block_size=2)], {"q": np.zeros((4, 4), np.uint8)}, ["y"],
        [("s", np.ones((2, 4), np.float32))], 21), "attribute block_size of this value of DequantizeLinear (node y)"


def lacking():
    """Name, model, what is said: what loading and `tapedeck info` know without a call."""
    x = {"x": np.ones((1, 2, 6, 6), np.float32)}
    whole = {"x": np.ones((2, 3), np.int64)}
    says = " (node y) of an array: it is there of "
    for op in ("Round", "Ceil", "Floor"):
        yield op + " of an array", model([node("Add", "x x", "z"), node(op, "z", "y")], x, ["y"]), \
            op + says + "sizes and constants only"
    yield "Mod of an array", model([node("Mod", "two x", "y")], whole, ["y"], [("two", np.int64(2))]), \
        "Mod" + says + "integers that are sizes or constants only"
    yield "AveragePool with gaps", model([node("AveragePool", "x", "y", kernel_shape=[2, 2], dilations=[2, 1])], x, ["y"],
                                         opset=19), "dilations of AveragePool (node y)"
    weights = [("w", np.ones((2, 2, 1, 1), np.float32))]
    yield "ConvTranspose that leaves gaps", model(
        [node("ConvTranspose", "x w", "y", kernel_shape=[1, 1], strides=[2, 2], auto_pad="SAME_UPPER")], x, ["y"], weights), \
        "an output larger than its windows reach of ConvTranspose (node y)"
    yield "a flag that is neither 0 nor 1", model([node("ReduceMax", "x", "y", keepdims=3)], x, ["y"]), \
        "attribute keepdims of this value of ReduceMax (node y)"
    yield "Celu of a negative alpha", model([node("Celu", "x", "y", alpha=-1.0)], x, ["y"]), "alpha of 0 or less of Celu (node y)"
    yield "a loss with a reduction of its own", model(
        [node("SoftmaxCrossEntropyLoss", "x t", "y", reduction="mul")], {"x": np.ones((2, 3), np.float32)}, ["y"],
        [("t", np.zeros(2, np.int64))]), "the reduction of SoftmaxCrossEntropyLoss (node y)"
    yield "LRN of an even size", model([node("LRN", "x", "y", size=2)], x, ["y"]), "an even size of LRN (node y)"
    yield "GRU with a clip", model([node("GRU", "s v u", "y", hidden_size=2, clip=1.0)], {"s": np.ones((3, 1, 2), np.float32)},
                                   ["y"], [("v", np.ones((1, 6, 2), np.float32)), ("u", np.ones((1, 6, 2), np.float32))]), \
        "attribute clip of GRU (node y)"
