#!/usr/bin/env python3
"""make.py: the small ONNX models of this folder, with the onnx package; what fuzz-onnx begins with.

operators.bundle has one model for each operator of tests/app/onnx-operators.py, the smallest: its length
(32 bits, little end first) and its bytes, one after the other.

SPDX-License-Identifier: MIT
"""
import importlib
import pathlib
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

RANDOM = np.random.default_rng(1)


def floats(name, *shape):
    return numpy_helper.from_array(np.abs(RANDOM.standard_normal(shape)).astype(np.float32), name)


def whole(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def write(name, opset, nodes, inputs, output, givens, rank):
    ports = [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in inputs]
    out = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)
    graph = helper.make_graph(nodes, name, ports, [out], givens)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    checker.check_model(model)
    save(model, name + ".onnx")


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="n/" + outputs.split()[0], **attributes)


write("pictures", 13, [
    node("Conv", "x w b", "c", pads=[1, 1, 1, 0], strides=[1, 2]),
    node("BatchNormalization", "c g be m v", "n"), node("Relu", "n", "r"),
    node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[1, 1], ceil_mode=1),
    helper.make_node("Resize", ["p", "", "s"], ["u"], name="n/u", mode="linear"),
    node("ConvTranspose", "u t", "d", strides=[2, 2], output_padding=[1, 1]),
    node("AveragePool", "d", "a", kernel_shape=[3, 3], pads=[0, 1, 1, 0]),
    node("Flatten", "a", "f"), node("ReduceMean", "f", "y", axes=[1]),
], [("x", TensorProto.FLOAT, ["n", 2, 5, 6])], "y", [
    floats("w", 3, 2, 3, 3), floats("b", 3), floats("g", 3), floats("be", 3), floats("m", 3), floats("v", 3),
    numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s"), floats("t", 3, 2, 2, 2)], 2)

write("words", 17, [
    node("Shape", "ids", "shape"), node("Gather", "shape one", "t"), node("Gather", "shape zero", "n"),
    node("Range", "zero t one", "places"), node("Gather", "wpe places", "p"), node("Gather", "wte ids", "e"),
    node("Add", "e p", "h"), node("LayerNormalization", "h g b", "l"), node("Reshape", "l rows", "flat"),
    node("Gemm", "flat w", "q", transB=1), node("Unsqueeze", "n axis", "n1"), node("Unsqueeze", "t axis", "t1"),
    node("Concat", "n1 t1 two", "s3", axis=0), node("Reshape", "q s3", "q3"), node("Transpose", "q3", "k", perm=[0, 2, 1]),
    node("MatMul", "q3 k", "a"), node("Concat", "t1 t1", "tt", axis=0),
    node("ConstantOfShape", "tt", "ones", value=helper.make_tensor("v", 1, [1], [1])), node("Trilu", "ones", "tri", upper=0),
    node("Equal", "tri nothing", "hidden"), node("Where", "hidden low a", "masked"), node("Softmax", "masked", "soft"),
    node("Slice", "soft zero1 big axis2", "cut"), node("ReduceSum", "cut", "y", keepdims=0),
], [("ids", TensorProto.INT64, ["batch", "time"])], "y", [
    floats("wte", 7, 4), floats("wpe", 5, 4), floats("g", 4), floats("b", 4), floats("w", 4, 4),
    numpy_helper.from_array(np.int64(0), "zero"), numpy_helper.from_array(np.int64(1), "one"), whole("rows", -1, 4),
    whole("axis", 0), whole("two", 4), whole("zero1", 0), whole("big", 2**63 - 1), whole("axis2", 2),
    numpy_helper.from_array(np.float32(0), "nothing"), numpy_helper.from_array(np.float32(-1e9), "low")], 0)

write("sequence", 11, [
    helper.make_node("LSTM", ["x", "w", "r", "b", "", "h"], ["ys", "h1"], name="n/lstm", hidden_size=2,
                     direction="bidirectional"),
    node("Squeeze", "h1", "s", axes=[1]), node("Slice", "s from to zero back", "c"), node("Pad", "c pads", "p", mode="edge"),
    node("Split", "p", "u v", axis=1, split=[1, 1]), node("Sub", "u v", "d"), node("Clip", "d low", "e"),
    node("Pow", "e three", "f"), node("Tile", "f reps", "y"),
], [("x", TensorProto.FLOAT, ["t", 1, 3])], "y", [
    floats("w", 2, 8, 3), floats("r", 2, 8, 2), floats("b", 2, 16), floats("h", 2, 1, 2), whole("from", -1),
    whole("to", -9), whole("zero", 0), whole("back", -1), whole("pads", 1, 0, 0, 0), whole("reps", 2, 1), numpy_helper.from_array(np.float32(0), "low"),
    numpy_helper.from_array(np.float32(3), "three")], 2)


def body(nodes, inputs, outputs):
    ports = [[helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in part] for part in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *ports)


FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BRANCHES = [body([node(op, "v", "r")], [], [("r", FLOAT, [2])]) for op in ("Tanh", "Neg")]
TURN = body([node("Less", "i two", "early"),
             helper.make_node("If", ["early"], ["v2"], name="n/if", then_branch=BRANCHES[0], else_branch=BRANCHES[1]),
             node("Identity", "go", "on"), node("Mul", "v2 x", "s")],
            [("i", INT, []), ("go", BOOL, []), ("v", FLOAT, [2])],
            [("on", BOOL, []), ("v2", FLOAT, [2]), ("s", FLOAT, [2])])
STEP = body([node("Add", "h e", "h2"), node("Tanh", "h2", "o")], [("h", FLOAT, [2]), ("e", FLOAT, [2])],
            [("h2", FLOAT, [2]), ("o", FLOAT, [2])])
write("control", 13, [
    helper.make_node("Loop", ["n", "", "x"], ["v", "rows"], name="n/loop", body=TURN),
    helper.make_node("Scan", ["v", "rows"], ["last", "y"], name="n/scan", body=STEP, num_scan_inputs=1,
                     scan_input_directions=[1], scan_output_axes=[1])],
      [("x", FLOAT, [2])], "y", [numpy_helper.from_array(np.int64(3), "n"), numpy_helper.from_array(np.int64(2), "two")], 2)

write("quantized", 13, [
    node("DynamicQuantizeLinear", "x", "q s z"), node("DequantizeLinear", "q s z", "x2"),
    node("QuantizeLinear", "x2 sx zx", "qx"), node("Transpose", "qx", "qt", perm=[0, 2, 1]),
    node("QLinearConv", "qt sx zx w sw zw sy zy b", "c", pads=[1, 1]), node("DequantizeLinear", "c sy zy", "d"),
    node("MatMulInteger", "c m zy zm", "mi"), node("Cast", "mi", "mf", to=1), node("ReduceMean", "mf", "r", axes=[0], keepdims=0),
    node("ReduceMean", "d", "e"), node("Add", "r e", "y0"), node("Squeeze", "y0 axis", "y"),
], [("x", FLOAT, [1, 4, 2])], "y", [
    numpy_helper.from_array(np.asarray(a), n) for n, a in (
        ("sx", np.float32(0.02)), ("zx", np.int8(-3)), ("w", np.arange(-12, 6, dtype=np.int8).reshape(3, 2, 3)),
        ("sw", np.array([0.1, 0.2, 0.05], np.float32)), ("zw", np.zeros(3, np.int8)), ("sy", np.float32(0.3)),
        ("zy", np.uint8(5)), ("b", np.array([10, -20, 30], np.int32)), ("m", np.arange(8, dtype=np.uint8).reshape(4, 2)),
        ("zm", np.uint8(2)), ("axis", np.array([0])))], 2)


def bundle():
    """The smallest row of each operator, at its highest opset."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app"))
    operators, smallest = importlib.import_module("onnx-operators"), {}
    for op, opsets, inputs, attributes, *rest in operators.ROWS:
        model = operators.model_of(op, opsets[-1], inputs, attributes, rest[0] if rest else 1).SerializeToString()
        if op not in smallest or len(model) < len(smallest[op]):
            smallest[op] = model
    with open("operators.bundle", "wb") as f:
        for _, model in sorted(smallest.items()):
            f.write(len(model).to_bytes(4, "little") + model)


bundle()
