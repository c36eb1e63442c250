#!/usr/bin/env python3
"""onnx-operators.py TAPEDECK: single operators that ONNX's helper writes, against onnxruntime.

Each row is a node with its inputs, at one or several opsets; what `tapedeck eval` gives has to be
what onnxruntime gives, within 1e-5.  TD_TEST_PYTHON names a Python that has onnx and onnxruntime.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    other = os.environ.get("TD_TEST_PYTHON", "")
    if other and os.path.exists(other) and os.environ.get("TD_TEST_AGAIN") is None:
        os.environ["TD_TEST_AGAIN"] = "1"
        os.execv(other, [other, *sys.argv])
    print("onnx and onnxruntime are not there, skipped")
    sys.exit(77)

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/meta"))
# pylint: disable=wrong-import-position
from checks import Report  # noqa: E402
from onnx_control import cases, lacking, refused  # noqa: E402

onnxruntime.set_default_logger_severity(3)
RANDOM = np.random.default_rng(7)


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape):
    return np.abs(f(*shape)) + np.float32(0.1)


def ints(*values):
    return np.array(values, np.int64)


def mask(*shape):
    return f(*shape) > 0


class Given:
    """An input that the file has, as an initializer."""

    def __init__(self, array):
        self.array = np.asarray(array)


G = Given
ALL, NEW = (7, 11, 13, 17, 21), (13, 17, 21)
IMAGE = f(2, 3, 9, 8)


def sizes(*values):
    return G(ints(*values))


def scales(*values):
    return G(np.array(values, np.float32))


# Operator, opsets, inputs, attributes[, outputs].
ROWS = [
    *[(op, ALL, [f(3, 4)], {}) for op in
      ("Abs", "Cos", "Exp", "Neg", "Relu", "Sigmoid", "Sin", "Softplus", "Softsign", "Tanh",
       "Identity", "Elu", "Selu", "LeakyRelu", "HardSigmoid")],
    *[(op, ALL, [positive(3, 4)], {}) for op in ("Log", "Sqrt", "Reciprocal")],
    *[(op, (9, 13, 17), [f(3, 4)], {}) for op in ("Erf", "Sign")],
    ("HardSwish", (14, 17), [f(3, 4)], {}), ("Mish", (18, 21), [f(3, 4)], {}),
    ("Celu", (12, 17), [f(3, 4)], {"alpha": 0.7}),
    ("Elu", ALL, [f(3, 4)], {"alpha": 0.5}), ("LeakyRelu", ALL, [f(3, 4)], {"alpha": 0.3}),
    ("HardSigmoid", ALL, [f(3, 4)], {"alpha": 0.3, "beta": 0.4}),
    ("Selu", ALL, [f(3, 4)], {"alpha": 1.5, "gamma": 1.1}),
    ("Gelu", (20, 21), [f(3, 4)], {}), ("Gelu", (20,), [f(3, 4)], {"approximate": "tanh"}),
    ("PRelu", (13,), [f(2, 3), G(np.array([np.inf, 0, -1], np.float32))], {}),
    ("PRelu", ALL, [f(2, 3, 4), G(f(3, 1))], {}), ("PRelu", ALL, [f(2, 4), f(4)], {}),
    ("Clip", (7,), [f(3, 4)], {"min": -0.5, "max": 0.25}),
    ("Clip", (7, 10), [np.array([-np.inf, 1, np.inf], np.float32)], {}),
    ("Clip", (11, 13), [f(3, 4), G(np.float32(-0.5)), G(np.float32(0.25))], {}),
    ("Clip", (11, 13), [f(3, 4), None, G(np.float32(0.25))], {}),
    ("Clip", (13,), [f(3, 4), G(np.float32(2)), G(np.float32(1))], {}),
    *[(op, ALL, [f(2, 3, 4), f(3, 1)], {}) for op in ("Add", "Sub", "Mul", "Div")],
    *[(op, ALL, [f(2, 3), G(np.float32(1.7))], {}) for op in ("Add", "Sub", "Mul", "Div")],
    *[(op, ALL, [G(np.float32(1.7)), f(2, 3)], {}) for op in ("Add", "Sub", "Mul", "Div")],
    *[(op, ALL, [f(3), G(np.full((1, 1), 1.7, np.float32))], {}) for op in ("Add", "Div")],
    ("Pow", ALL, [positive(2, 3), f(2, 3)], {}), ("Pow", ALL, [f(2, 3), G(np.float32(2))], {}),
    ("Pow", (12, 13), [positive(2, 3), G(ints(3))], {}),
    *[(op, (8, 13), [f(2, 3), f(3), f(2, 1)], {}) for op in ("Max", "Min", "Sum", "Mean")],
    *[(op, (8, 13), [f(2, 3)], {}) for op in ("Max", "Min", "Sum", "Mean")],
    *[(op, (7,), [f(2, 3), f(2, 3)], {}) for op in ("Max", "Min", "Sum", "Mean")],
    *[(op, (9, 13), [f(3, 4), f(3, 4)], {}) for op in ("Less", "Greater")],
    ("Equal", (11, 13), [np.round(f(3, 4)), np.round(f(4))], {}),
    *[(op, (12, 16), [np.round(f(3, 4)), np.round(f(4))], {}) for op in ("LessOrEqual", "GreaterOrEqual")],
    *[(op, ALL, [mask(3, 4), mask(4)], {}) for op in ("And", "Or", "Xor")],
    ("Not", ALL, [mask(3, 4)], {}),
    ("Where", (9, 16), [mask(3, 4), f(4), f(3, 1)], {}),
    ("Cast", ALL, [f(3, 4) * 3], {"to": 7}), ("Cast", ALL, [ints(1, 0, 3)], {"to": 1}),
    ("Cast", ALL, [f(3, 4)], {"to": 11}), ("Cast", ALL, [ints(0, 2)], {"to": 9}),
    *[(op, (7, 11, 13, 17), [positive(2, 3, 4)], {"axes": [0, 2]}) for op in
      ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
       "ReduceMin", "ReduceProd", "ReduceSumSquare")],
    *[(op, (18, 21), [positive(2, 3, 4), sizes(-1)], {"keepdims": 0}) for op in
      ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
       "ReduceMin", "ReduceProd", "ReduceSumSquare")],
    *[(op, (13, 18), [np.array(3, np.float32)], {"keepdims": k}) for k in (0, 1) for op in
      ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")],
    *[(op, (18,), [G(np.array([[1, 7], [5, 2], [3, 4]], np.int64)), sizes(*axes)], {"keepdims": k})
      for op in ("ReduceMax", "ReduceMin", "ReduceProd") for k in (0, 1) for axes in ((0,), (1,), (0, 1))],
    # Over no axes nothing is reduced, but what is done to each element beside is done.
    *[(op, (18, 21), [f(2, 3) if op != "ReduceLogSum" else positive(2, 3), *axes], {"noop_with_empty_axes": 1})
      for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceSumSquare")
      for axes in ((), (sizes(),))],
    ("ReduceSumSquare", (18,), [np.array(3, np.float32)], {"noop_with_empty_axes": 1}),
    ("ReduceSum", (7, 11), [f(2, 3, 4)], {"axes": [1], "keepdims": 0}),
    ("ReduceSum", NEW, [f(2, 3, 4), sizes(0, -1)], {}), ("ReduceSum", NEW, [f(2, 3, 4)], {}),
    ("ReduceSum", NEW, [f(2, 3, 4), sizes()], {"noop_with_empty_axes": 1}),
    *[(op, ALL, [f(3, 5)], {"axis": 1, "keepdims": k}) for op in ("ArgMax", "ArgMin") for k in (0, 1)],
    ("CumSum", (11, 14), [f(3, 5), G(np.int64(1))], {}),
    ("CumSum", (11, 14), [f(3, 5), G(np.int64(0))], {"reverse": 1}),
    *[(op, (7, 12, *NEW), [f(2, 3, 4)], attributes) for op in ("Softmax", "LogSoftmax")
      for attributes in ({}, {"axis": 1}, {"axis": 2})],
    ("Reshape", ALL, [f(2, 3, 4), sizes(0, -1)], {}), ("Reshape", ALL, [f(2, 6), sizes(3, 2, 2)], {}),
    *[("Flatten", ALL, [f(2, 3, 4)], {"axis": axis}) for axis in (0, 1, 2, 3)],
    ("Transpose", ALL, [f(2, 3, 4)], {}), ("Transpose", ALL, [f(2, 3, 4)], {"perm": [1, 0, 2]}),
    ("Concat", ALL, [f(2, 3), f(2, 1), f(2, 2)], {"axis": 1}), ("Concat", NEW, [f(2, 3), f(1, 3)], {"axis": -2}),
    ("Split", (7, 11), [f(2, 6)], {"axis": 1, "split": [1, 3, 2]}, 3), ("Split", (7, 11), [f(4, 6)], {}, 2),
    ("Split", (13, 17), [f(2, 6), sizes(1, 3, 2)], {"axis": 1}, 3),
    ("Split", (18, 21), [f(2, 7)], {"axis": 1, "num_outputs": 3}, 3),
    ("Squeeze", (7, 11), [f(2, 1, 3, 1)], {"axes": [1]}), ("Squeeze", ALL, [f(2, 1, 3, 1)], {}),
    ("Squeeze", NEW, [f(2, 1, 3, 1), sizes(-1)], {}),
    ("Unsqueeze", (7, 11), [f(2, 3)], {"axes": [0, 3]}), ("Unsqueeze", NEW, [f(2, 3), sizes(1, -1)], {}),
    ("Expand", (8, 13), [f(3, 1), sizes(2, 1, 4)], {}), ("Tile", ALL, [f(2, 3), sizes(2, 2)], {}),
    ("Shape", ALL, [f(2, 3, 4)], {}), ("Shape", (15, 21), [f(2, 3, 4)], {"start": 1, "end": -1}),
    ("Size", ALL, [f(2, 3, 4)], {}),
    ("Range", (11, 13), [G(np.int64(2)), G(np.int64(11)), G(np.int64(3))], {}),
    ("Range", (11, 13), [G(np.float32(2)), G(np.float32(-1)), G(np.float32(-0.5))], {}),
    ("ConstantOfShape", (9, 13), [sizes(2, 3)], {}),
    ("ConstantOfShape", (9, 13), [sizes(2, 3)], {"value": helper.make_tensor("v", 7, [1], [5])}),
    *[("Gather", ALL, [f(4, 3), G(ints(2, 0, 2))], {"axis": axis}) for axis in (0, 1)],
    ("Gather", (11, 13), [f(4, 3), G(ints(-1, 0))], {}), ("Gather", ALL, [f(2, 4, 3), ints(2, 0)], {"axis": 1}),
    ("Gather", ALL, [f(4, 3), G(np.int64(1))], {"axis": 1}), ("Gather", ALL, [f(4, 3), ints(1, 3).reshape(2, 1)], {}),
    ("GatherElements", (11, 13), [f(3, 4), ints(0, 2, 1, 1, 0, 2).reshape(2, 3)], {"axis": 0}),
    ("GatherElements", (11, 13), [f(3, 4), G(ints(0, -1, 1, 1, 0, 2).reshape(3, 2))], {"axis": 1}),
    ("GatherND", (12, 13), [f(3, 4, 2), ints(0, 3, 2, 1).reshape(2, 2)], {}),
    ("ScatterElements", (11, 13, 16, 18), [f(3, 4), ints(0, 2, 1, 1, 0, 2).reshape(2, 3), f(2, 3)], {"axis": 0}),
    ("ScatterElements", (11, 18), [f(3, 4), G(ints(0, -1, 1, 2, 0, 2).reshape(3, 2)), f(3, 2)], {"axis": 1}),
    ("ScatterElements", (16, 18), [f(3, 4), ints(0, 2, 1, 0, 2, 1).reshape(2, 3), f(2, 3)], {"reduction": "add"}),
    # Two updates for one place: the standard leaves it open, and the last one counts there and here.
    *[("ScatterElements", (11, 18), [f(3, 4), place(ints(0, 2, 0, 2, 0, 1).reshape(3, 2)), f(3, 2)], {"axis": axis})
      for axis in (0, 1) for place in (G, np.asarray)],
    *[("ScatterND", (11, 18), [f(3, 4, 2), place(ints(0, 3, 2, 1, 0, 3).reshape(3, 2)), f(3, 2)], {}) for place in (G, np.asarray)],
    ("ScatterND", (11, 13, 16, 18), [f(3, 4, 2), ints(0, 3, 2, 1).reshape(2, 2), f(2, 2)], {}),
    ("ScatterND", (11, 18), [f(3, 4), ints(2, 0).reshape(2, 1), f(2, 4)], {}),
    ("ScatterND", (16, 18), [f(3, 4, 2), ints(0, 3, 0, 3).reshape(2, 2), f(2, 2)], {"reduction": "add"}),
    ("OneHot", (9, 11), [ints(0, 2, 1), G(np.int64(4)), G(np.array([-1, 3], np.float32))], {}),
    ("OneHot", (9, 11), [ints(0, 2, 1), G(np.int64(4)), G(np.array([0, 1], np.float32))], {"axis": 0}),
    ("Slice", (7,), [f(4, 5)], {"starts": [1, -3], "ends": [4, 1000], "axes": [0, 1]}),
    ("Slice", (10, 13), [f(4, 5), sizes(1), sizes(2**63 - 1), sizes(1), sizes(2)], {}),
    ("Slice", (10, 13), [f(4, 5), sizes(-1, 4), sizes(-(2**63), 0), sizes(0, 1), sizes(-1, -2)], {}),
    ("Slice", (10, 13), [f(4, 5), sizes(0), sizes(2)], {}),
    ("Slice", (10, 13), [f(5), sizes(-9), sizes(-100), sizes(0), sizes(-1)], {}),
    ("Pad", (7,), [f(2, 3)], {"pads": [0, 1, 2, 0], "value": 1.5}),
    *[("Pad", (11, 13), [f(4, 5), sizes(1, 0, 2, 1)], {"mode": mode}) for mode in ("constant", "reflect", "edge")],
    ("Pad", (11, 13), [f(4, 5), sizes(1, -1, 0, -2), G(np.float32(2))], {}),
    ("Pad", (18, 21), [f(4, 5), sizes(1, 2), None, sizes(-1)], {}),
    *[("Trilu", (14,), [f(2, 4, 5), G(np.int64(k))], {"upper": upper}) for k in (-1, 0, 1) for upper in (0, 1)],
    ("DepthToSpace", (11, 13), [f(2, 8, 3, 2)], {"blocksize": 2}),
    ("DepthToSpace", (11, 13), [f(2, 8, 3, 2)], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", ALL, [f(2, 2, 4, 6)], {"blocksize": 2}),
    ("Upsample", (7,), [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    ("Upsample", (9,), [IMAGE, scales(1, 1, 2, 2)], {"mode": "linear"}),
    ("Resize", (10,), [IMAGE, scales(1, 1, 2, 2)], {}),
    *[("Resize", (11, 13, 19), [IMAGE, None, None, sizes(2, 3, 13, 17)],
       {"mode": mode, "coordinate_transformation_mode": where})
      for mode in ("nearest", "linear")
      for where in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")],
    *[("Resize", (11, 13), [IMAGE, None, scales(1, 1, 2, 3)], {"nearest_mode": mode}) for mode in
      ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")],
    ("Resize", (13,), [f(1, 2, 5), None, scales(1, 1, 0.6)], {"mode": "linear"}),
    ("MatMul", ALL, [f(2, 3, 4), f(4, 5)], {}), ("MatMul", ALL, [f(4), f(4)], {}),
    ("Gemm", ALL, [f(3, 4), G(f(5, 4)), G(f(5))], {"transB": 1}),
    ("Gemm", ALL, [f(4, 3), G(f(4, 5)), G(f(1, 5))], {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", (11, 13), [f(3, 4), G(f(4, 5))], {}),
    ("Gemm", (11, 13), [f(3, 4), G(f(4, 5)), G(np.full(5, np.nan, np.float32))], {"beta": 0.0}),
    ("Einsum", (12,), [f(2, 3, 4), f(2, 4, 5)], {"equation": "bij,bjk->bik"}),
    ("Conv", ALL, [IMAGE, G(f(4, 3, 3, 3)), G(f(4))], {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ("Conv", ALL, [IMAGE, G(f(4, 3, 3, 2))], {"pads": [0, 1, 2, 1]}),
    ("Conv", ALL, [f(2, 4, 9, 8), G(f(6, 2, 3, 3))], {"group": 2, "dilations": [2, 1]}),
    *[("Conv", ALL, [IMAGE, G(f(4, 3, 4, 3))], {"auto_pad": how, "strides": [2, 2]}) for how in
      ("SAME_UPPER", "SAME_LOWER", "VALID")],
    ("Conv", ALL, [f(2, 3, 9), G(f(4, 3, 3))], {"pads": [1, 1]}),
    ("Conv", ALL, [f(1, 2, 5, 6, 4), G(f(3, 2, 2, 3, 2))], {}),
    ("ConvTranspose", ALL, [f(2, 3, 4, 5), G(f(3, 4, 3, 3)), G(f(4))], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("ConvTranspose", ALL, [f(2, 3, 4, 5), G(f(3, 4, 3, 3))],
     {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    ("ConvTranspose", ALL, [f(2, 3, 4, 5), G(f(3, 4, 3, 3))], {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
    ("ConvTranspose", ALL, [f(2, 4, 4, 5), G(f(4, 3, 2, 2))], {"strides": [2, 2], "group": 2}),
    ("ConvTranspose", ALL, [f(2, 3, 6), G(f(3, 2, 3))], {"strides": [2]}),
    *[("ConvTranspose", (11, 13), [f(2, 3, 4, 5), G(f(3, 4, 3, 3))], {"strides": [2, 2], "auto_pad": how})
      for how in ("SAME_UPPER", "SAME_LOWER")],
    ("ConvTranspose", ALL, [f(2, 3, 4, 5), G(f(3, 4, 3, 3))], {"strides": [2, 2], "output_shape": [8, 10]}),
    *[("MaxPool", ALL, [IMAGE], {"kernel_shape": [3, 2], **more}) for more in
      ({}, {"strides": [2, 2]}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 2], "pads": [0, 0, 1, 1]},
       {"auto_pad": "SAME_UPPER", "strides": [2, 2]})],
    *[(op, (11, 13), [f(2, 3, 10, 7)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, **more})
      for op in ("MaxPool", "AveragePool") for more in ({}, {"pads": [1, 1, 1, 1]})],
    ("MaxPool", (11, 13), [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    ("MaxPool", ALL, [f(2, 3, 9)], {"kernel_shape": [3], "strides": [2]}),
    *[("AveragePool", ALL, [IMAGE], {"kernel_shape": [3, 2], "count_include_pad": count, **more}) for count in (0, 1)
      for more in ({}, {"strides": [2, 2]}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"pads": [0, 0, 1, 1]})],
    ("AveragePool", ALL, [f(1, 2, 6, 6, 6)], {"kernel_shape": [2, 2, 2]}),
    ("GlobalAveragePool", ALL, [IMAGE], {}), ("GlobalMaxPool", ALL, [IMAGE], {}),
    ("BatchNormalization", (7, 9, 14, 17), [IMAGE, G(f(3)), G(f(3)), G(f(3)), G(positive(3))], {"epsilon": 1e-3}),
    ("BatchNormalization", (9, 15), [f(4, 3), G(f(3)), G(f(3)), G(f(3)), G(positive(3))], {}),
    ("InstanceNormalization", ALL, [IMAGE, G(f(3)), G(f(3))], {"epsilon": 1e-3}),
    ("GroupNormalization", (21,), [f(2, 4, 5, 3), G(f(4)), G(f(4))], {"num_groups": 2}),
    *[("LayerNormalization", (17, 21), [f(2, 3, 4), G(f(*s)), G(f(*s))], {"axis": axis}) for axis, s in
      ((-1, (4,)), (1, (3, 4)))],
    ("LayerNormalization", (17,), [f(2, 3, 4), G(f(4))], {}),
    ("LayerNormalization", (17,), [f(2, 3, 4), G(f(3, 4)), G(f(3, 4))], {"axis": 1, "epsilon": 0.1}, 3),
    ("LRN", ALL, [f(2, 7, 3, 3)], {"size": 3, "alpha": 0.02, "beta": 0.6, "bias": 1.5}),
    *[("SoftmaxCrossEntropyLoss", (12, 13), [f(4, 5), ints(1, 0, 4, 2)], {"reduction": how}) for how in
      ("mean", "sum", "none")],
    ("SoftmaxCrossEntropyLoss", (12, 13), [f(2, 5, 3), ints(1, 0, 4, 2, 1, 1).reshape(2, 3)], {"ignore_index": 1}),
    ("Dropout", (7, 10), [f(3, 4)], {}), ("Dropout", (12, 13), [f(3, 4), G(np.float32(0.3))], {}),
]


def bytes_of(kind, *shape):
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)


def scale(*shape):
    return G((np.abs(RANDOM.standard_normal(shape)) * 0.05 + 0.01).astype(np.float32))


HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, -300], np.float32)
U8, I8 = np.uint8, np.int8
for _kind in (U8, I8):
    _zero = G(bytes_of(_kind, 1)[0])
    ROWS += [
        # What an int8 goes through is followed: to floating-point numbers again, or to an operator that knows of it.
        ("QuantizeLinear", (10, 13, 19, 21), [HALVES, G(np.float32(1)), G(_kind(3))], {}),
        ("QuantizeLinear", (10, 13, 21), [f(3, 40) * 4, scale(), _zero], {}),
        ("QuantizeLinear", (13, 21), [f(2, 3, 4) * 4, scale(3), G(bytes_of(_kind, 3))], {}),
        ("QuantizeLinear", (13, 21), [f(2, 3, 4) * 4, scale(4), G(bytes_of(_kind, 4))], {"axis": -1}),
        ("DequantizeLinear", (10, 13, 21), [G(bytes_of(_kind, 3, 4)), scale(), _zero], {}),
        ("DequantizeLinear", (10, 13), [G(bytes_of(_kind, 3, 4)), scale()], {}),
        ("DequantizeLinear", (13, 21), [G(bytes_of(_kind, 2, 3, 4)), scale(3), G(bytes_of(_kind, 3))], {}),
        ("DequantizeLinear", (13, 21), [G(bytes_of(_kind, 2, 3, 4)), scale(2)], {"axis": 0}),
        ("MatMulInteger", (10, 13), [G(bytes_of(U8, 5, 300)), G(bytes_of(_kind, 300, 4)), G(U8(7)), _zero], {}),
        ("MatMulInteger", (10,), [bytes_of(U8, 2, 5, 6), G(bytes_of(_kind, 6, 4)), G(U8(9)), G(bytes_of(_kind, 4))], {}),
        ("MatMulInteger", (10,), [bytes_of(U8, 5, 6), G(bytes_of(_kind, 6, 4))], {}),
        ("QLinearMatMul", (10,), [bytes_of(U8, 5, 30), scale(), G(U8(100)), G(bytes_of(_kind, 30, 4)), scale(), _zero,
                                  G(np.float32(0.7)), G(U8(120))], {}),
        ("QLinearConv", (10,), [bytes_of(U8, 2, 3, 7, 6), scale(), G(U8(100)), G(bytes_of(_kind, 4, 3, 3, 3)), scale(),
                                _zero, G(np.float32(0.7)), G(U8(120))], {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ]
ROWS += [
    ("QuantizeLinear", (10, 13), [f(3, 4) * 4, scale()], {}),
    ("DequantizeLinear", (10, 13), [ints(7, -3, 100000).astype(np.int32), scale()], {}),
    *[("DynamicQuantizeLinear", (11,), [x], {}, 3) for x in
      (f(3, 40), positive(5), -positive(5), np.zeros(4, np.float32), np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32))],
    ("ConvInteger", (10,), [bytes_of(U8, 2, 3, 7, 6), G(bytes_of(U8, 4, 3, 3, 3)), G(U8(100)), G(U8(128))],
     {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ("ConvInteger", (10,), [bytes_of(U8, 1, 4, 5, 5), G(bytes_of(U8, 4, 2, 2, 2))], {"group": 2}),
    ("QLinearConv", (10,), [bytes_of(U8, 2, 3, 7, 6), scale(), G(U8(100)), G(bytes_of(I8, 4, 3, 3, 3)), scale(4),
                            G(np.zeros(4, I8)), G(np.float32(0.7)), G(U8(120)),
                            G(RANDOM.integers(-9000, 9000, 4).astype(np.int32))], {"dilations": [1, 2]}),
]


def recurrent(op, gates, directions, bias, states, **attributes):
    n, size, steps, batch = 5, 3, 4, 2
    inputs = [f(steps, batch, n), G(f(directions, gates * size, n)), G(f(directions, gates * size, size)),
              G(f(directions, 2 * gates * size)) if bias else None, None]
    inputs += [f(directions, batch, size) for _ in range(states)]
    return (op, (7, 11, 14, 21), inputs, {"hidden_size": size, **attributes}, 3 if op == "LSTM" else 2)


for _direction, _n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
    for _bias in (False, True):
        ROWS += [recurrent("LSTM", 4, _n, _bias, 2 * _bias, direction=_direction),
                 recurrent("GRU", 3, _n, _bias, _bias, direction=_direction, linear_before_reset=1),
                 recurrent("GRU", 3, _n, _bias, _bias, direction=_direction),
                 recurrent("RNN", 1, _n, _bias, _bias, direction=_direction)]


def model_of(op, opset, inputs, attributes, n_out):
    names, ports, givens = [], [], []
    for i, item in enumerate(inputs):
        names.append("" if item is None else f"x{i}")
        if isinstance(item, Given):
            givens.append(numpy_helper.from_array(item.array, f"x{i}"))
        elif item is not None:
            kind = helper.np_dtype_to_tensor_dtype(item.dtype)
            ports.append(helper.make_tensor_value_info(f"x{i}", kind, item.shape))
    outs = [f"y{k}" for k in range(n_out)]
    nodes = [helper.make_node(op, names, outs, name="it", **attributes)]
    if op == "QuantizeLinear" and len(inputs) == 3 and inputs[2].array.dtype == np.int8:
        nodes += [helper.make_node("Reshape", ["y0", "flat"], ["kept"]),
                  helper.make_node("DequantizeLinear", ["kept", "one", "none"], ["z"])]
        givens += [numpy_helper.from_array(np.asarray(a), n) for n, a in
                   (("flat", np.array([-1])), ("one", np.float32(1)), ("none", np.int8(0)))]
        outs = ["z"]
    graph = helper.make_graph(nodes, "one", ports, [helper.make_empty_tensor_value_info(o) for o in outs],
                              givens)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(model)
    for o in inferred.graph.output:
        if not o.type.tensor_type.elem_type:  # functions are not looked into: as the input
            o.CopyFrom(helper.make_tensor_value_info(
                o.name, 1, [d.dim_value for d in ports[0].type.tensor_type.shape.dim]))
    return inferred


def compare(program, model, arrays, folder):
    onnx.save(model, f"{folder}/m.onnx")
    session = onnxruntime.InferenceSession(f"{folder}/m.onnx", providers=["CPUExecutionProvider"])
    want = session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})
    command = [program, "eval", f"{folder}/m.onnx", "-o", f"{folder}/out"]
    for i, array in enumerate(arrays):
        np.save(f"{folder}/{i}.npy", array)
        command += ["--in", f"{folder}/{i}.npy"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if child.returncode != 0:
        return [child.stderr.strip()]
    problems = []
    for k, b in enumerate(want):
        a = np.load(f"{folder}/out/out{k}.npy")
        if a.shape != b.shape or a.dtype != b.dtype:
            problems.append(f"output {k}: {a.shape} {a.dtype}, {b.shape} {b.dtype} expected")
        elif a.size and not np.allclose(a, b, 0, 1e-5 * (1 + np.abs(b[np.isfinite(b)].astype(np.float64)).max(initial=0))):
            problems.append(f"output {k} differs by {np.abs(a.astype(np.float64) - b).max()}")
    return problems


def differences(model, inputs, name):
    """The gradient of the sum of all outputs in one input, by onnxruntime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    gradient = np.zeros_like(inputs[name])
    for at in np.ndindex(gradient.shape):
        for sign in (1, -1):
            moved = {n: a.copy() for n, a in inputs.items()}
            moved[name][at] += sign * 1e-5
            gradient[at] += sign * sum(y.sum() for y in session.run(None, moved)) / 2e-5
    return gradient


def compare_gradients(program, model, inputs, folder):
    """After compare, whose files are there."""
    command = [program, "eval", f"{folder}/m.onnx", "-o", f"{folder}/grads"]
    for i in range(len(inputs)):
        command += ["--in", f"{folder}/{i}.npy"]
    for k in range(len(model.graph.output)):
        np.save(f"{folder}/gy{k}.npy", np.ones_like(np.load(f"{folder}/out/out{k}.npy")))
        command += ["--gy", f"{folder}/gy{k}.npy"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if child.returncode != 0:
        return [child.stderr.strip()]
    problems = []
    for i, (name, array) in enumerate(inputs.items()):
        want = differences(model, inputs, name) if array.dtype == np.float64 else None
        path = pathlib.Path(f"{folder}/grads/gin{i}.npy")
        got = np.load(path) if path.exists() else np.zeros_like(array)
        if want is not None and np.abs(got - want).max() > 1e-6 * (1 + np.abs(want).max()):
            problems.append(f"gradient of {name} differs by {np.abs(got - want).max()}")
    return problems


def check_control(report, program):
    for name, model, inputs in cases():
        with tempfile.TemporaryDirectory() as folder:
            problems = compare(program, model, list(inputs.values()), folder)
            if not problems:
                problems = compare_gradients(program, model, inputs, folder)
        report.claim(f"{name} gives what onnxruntime gives, and its gradients are differences", problems)
    for name, model, says in refused():
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            command = [program, "eval", f"{folder}/m.onnx"]
            for port in model.graph.input:
                kind = port.type.tensor_type
                np.save(f"{folder}/{port.name}.npy", np.ones([d.dim_value for d in kind.shape.dim],
                                                             helper.tensor_dtype_to_np_dtype(kind.elem_type)))
                command += ["--in", f"{folder}/{port.name}.npy"]
            child = subprocess.run(command, capture_output=True, text=True, timeout=60)
        report.claim(f"{name} is refused",
                     [] if child.returncode in (1, 2) and says in child.stderr else [child.stderr])


def check_picture(report, program):
    """A branch that goes by values needs arithmetic, which the picture of a model is otherwise made without."""
    if subprocess.run([program, "show", "--help"], capture_output=True, check=False).returncode != 0:
        print("# built without views")
        return
    for name, model, _ in (case for case in cases() if case[0].startswith("If")):
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            child = subprocess.run([program, "show", f"{folder}/m.onnx", "--view", "graph"], capture_output=True, text=True,
                                   timeout=60, env={**os.environ, "XDG_CACHE_HOME": folder})
        report.claim(f"{name} has a picture", [] if child.returncode == 0 and child.stdout and not child.stderr
                     else [child.stderr])


def check_size_that_is_set(report, program):
    port = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", port[:1], port[1:]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        np.save(f"{folder}/x.npy", np.ones((3, 2), np.float32))
        child = subprocess.run([program, "run", "-o", f"{folder}/t.tdtape", f"{folder}/m.onnx", "--input", f"x={folder}/x.npy",
                                "--size", "batch=3"], capture_output=True, text=True, timeout=60)
    report.claim("a size that a file has set is said to be so",
                 [] if child.returncode == 2 and "the open size batch is what --input's file has" in child.stderr
                 else [child.stderr])


def check_lacking(report, program):
    """What no call could run is refused by loading, and `tapedeck info` says the same."""
    for name, model, says in lacking():
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            loaded = subprocess.run([program, "eval", f"{folder}/m.onnx", "--in", "nothing"], capture_output=True, text=True,
                                    timeout=60)
            looked = subprocess.run([program, "info", f"{folder}/m.onnx"], capture_output=True, text=True, timeout=60)
        report.claim(f"{name} is refused, and info says why",
                     [] if loaded.returncode == 2 and f"not there: {says}" in loaded.stderr and says in looked.stdout
                     else [loaded.stderr, looked.stdout])


def check_voice_detector(report, program):
    """A real model with If, of shared/data."""
    shared = pathlib.Path(os.environ.get("TAPEDECK_SHARED", ROOT.parent / "shared"))
    path = shared / "data/onnx/silero_vad_16k/model.onnx"
    if not path.exists():
        print("# shared/data/onnx is not there")
        return
    for rate in (8000, 16000):
        arrays = [f(1, 576) * np.float32(0.1), f(2, 1, 128), np.array(rate, np.int64)]
        with tempfile.TemporaryDirectory() as folder:
            report.claim(f"silero_vad_16k at {rate} Hz gives what onnxruntime gives",
                         compare(program, onnx.load(path), arrays, folder))


def check_bfloat16(report, program):
    """npy has no such type: float32 goes in and comes out, values and gradients."""
    ports = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, ["batch", 2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node("Mul", ["x", "x"], ["y"])], "g", ports[:1], ports[1:]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        np.save(f"{folder}/x.npy", np.array([[1 / 3, 2]], np.float32))
        np.save(f"{folder}/gy.npy", np.array([[1, 3]], np.float32))
        child = subprocess.run([program, "eval", f"{folder}/m.onnx", "--in", f"{folder}/x.npy", "--gy", f"{folder}/gy.npy",
                                "-o", f"{folder}/out"], capture_output=True, text=True, timeout=60)
        third = 0.333984375  # the bfloat16 beside 1/3
        problems = [child.stderr] if child.returncode != 0 else [
            f"{name}: {got}" for name, want in (("out0", [[0.111328125, 4]]), ("gin0", [[2 * third, 12]]))
            if (got := np.load(f"{folder}/out/{name}.npy")).dtype != np.float32 or got.tolist() != want]
    report.claim("a model of bfloat16 is given float32", problems)


def main():
    report = Report()
    check_bfloat16(report, sys.argv[1])
    check_control(report, sys.argv[1])
    check_picture(report, sys.argv[1])
    check_size_that_is_set(report, sys.argv[1])
    check_lacking(report, sys.argv[1])
    check_voice_detector(report, sys.argv[1])
    for op, opsets, inputs, attributes, *rest in ROWS:
        problems, n_run = [], 0
        for opset in opsets:
            arrays = [a for a in inputs if a is not None and not isinstance(a, Given)]
            try:
                model = model_of(op, opset, inputs, attributes, rest[0] if rest else 1)
                onnx.checker.check_model(model, full_check=True)
                onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            except Exception:  # pylint: disable=broad-except # that opset has no such node, or onnxruntime has not
                continue
            n_run += 1
            with tempfile.TemporaryDirectory() as folder:
                problems += [f"opset {opset}: {p}" for p in compare(sys.argv[1], model, arrays, folder)]
        said = {key: value for key, value in attributes.items() if key != "value"}
        report.claim(f"{op} {said} in {n_run} opsets gives what onnxruntime gives",
                     problems if n_run > 0 else ["onnxruntime runs it in no opset"])
    report.end()


if __name__ == "__main__":
    main()
