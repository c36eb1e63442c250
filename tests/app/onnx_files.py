"""Files of ONNX's test data, read field by field, as far as these need it.

SPDX-License-Identifier: MIT
"""
import numpy as np


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value if value < 1 << 63 else value - (1 << 64)), at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = 4 if key & 7 == 5 else 8
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def numbers(value):
    """One number, or packed ones."""
    if not isinstance(value, bytes):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def tensor(data):
    dims, kind, raw, name, items = [], 1, None, "", []
    for field, value in fields(data):
        if field == 1:
            dims += numbers(value)
        elif field == 2:
            kind = value
        elif field == 4:
            items += list(np.frombuffer(value, "<f4"))
        elif field == 7:
            items += numbers(value)
        elif field == 8:
            name = value.decode()
        elif field == 9:
            raw = value
    dtype = {1: "<f4", 7: "<i8"}[kind]
    array = np.frombuffer(raw, dtype) if raw is not None else np.array(items, dtype)
    return name, array.reshape(dims)
