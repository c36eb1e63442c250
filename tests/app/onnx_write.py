"""Small ONNX files, written field by field: what tests serve, without the package of ONNX.

SPDX-License-Identifier: MIT
"""
import numpy as np

FLOAT, INT64, HALF = 1, 7, 10
TYPES = {"float32": FLOAT, "int64": INT64}


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A number, or a text, bytes or message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(op, inputs, outputs, **attributes):
    """Attributes: whole numbers, or lists of them."""
    out = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    out += field(4, op)
    for name, value in attributes.items():
        many = isinstance(value, list)
        items = b"".join(field(8, v) for v in value) if many else field(3, value)
        out += field(5, field(1, name) + items + field(20, 7 if many else 2))
    return out


def initializer(name, array):
    array = np.ascontiguousarray(array)
    return (b"".join(field(1, dim) for dim in array.shape) + field(2, TYPES[str(array.dtype)])
            + field(8, name) + field(9, array.tobytes()))


def port(name, kind, dims):
    """A dim that is a text is a symbol."""
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def model(nodes, inputs, outputs, initializers=()):
    """A file's bytes, opset 17."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g")
    graph += b"".join(field(5, initializer(name, array)) for name, array in initializers)
    graph += b"".join(field(11, port(*p)) for p in inputs)
    graph += b"".join(field(12, port(*p)) for p in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))
