"""One call of `tapedeck eval` and what NumPy says of it; the tables are eval_cases_*.py.

SPDX-License-Identifier: MIT
"""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Case:
    """A function on float64 inputs; outs are its outputs, or a function that judges them."""
    name: str
    ins: list
    attrs: dict
    outs: object
    check: bool = True  # gradients of both orders, against differences


def case(name, ins, outs, check=True, **attrs):
    if not callable(outs) and not isinstance(outs, list):
        outs = [outs]
    return Case(name, ins, attrs, outs, check)


def spread(*shape, low=-2.0, high=2.0, seed=0):
    """Different numbers over [low, high], away from zero and from each other, in no order."""
    n = int(np.prod(shape)) if shape else 1
    numbers = low + (high - low) * (np.arange(n) + 0.37 + 0.13 * (seed % 4)) / n
    numbers = np.where(np.abs(numbers) < 0.02, numbers + 0.05, numbers)
    return np.random.RandomState(seed + n).permutation(numbers).reshape(shape)


def positive(*shape, seed=0):
    return spread(*shape, low=0.3, high=2.5, seed=seed)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def softplus(x):
    return np.logaddexp(0, x)


def labels(*numbers):
    return np.array(numbers, np.int32)


def extend(w, x):
    """A parameter's axes are those of x after the first."""
    return w.reshape((1,) + w.shape + (1,) * (x.ndim - w.ndim - 1))


# --- windows: convolutions and poolings, written out ---

def pair(value, n):
    return (value,) * n if np.isscalar(value) else tuple(value)


def out_size(size, k, s, p, d=1, cover_all=False):
    dk = k + (k - 1) * (d - 1)
    return (size + p * 2 - dk + s - 1) // s + 1 if cover_all else (size + p * 2 - dk) // s + 1


def windows(x, ksize, stride, pad, dilate=1, cover_all=False, fill=0.0):
    """(n, c, k..., o...): every window of x, with `fill` beyond the edges."""
    nd = x.ndim - 2
    k, s, p, d = (pair(v, nd) for v in (ksize, stride, pad, dilate))
    o = [out_size(x.shape[2 + i], k[i], s[i], p[i], d[i], cover_all) for i in range(nd)]
    wide = np.full(x.shape[:2] + tuple(x.shape[2 + i] + 2 * p[i] + s[i] + k[i] * d[i]
                                       for i in range(nd)), float(fill))
    wide[(slice(None),) * 2 + tuple(slice(p[i], p[i] + x.shape[2 + i]) for i in range(nd))] = x
    out = np.empty(x.shape[:2] + k + tuple(o))
    for place in np.ndindex(*k):
        at = tuple(slice(place[i] * d[i], place[i] * d[i] + s[i] * o[i], s[i]) for i in range(nd))
        out[(slice(None),) * 2 + place] = wide[(slice(None),) * 2 + at]
    return out


def convolution(x, W, b=None, stride=1, pad=0, dilate=1, groups=1, cover_all=False):
    nd = x.ndim - 2
    cols = windows(x, W.shape[2:], stride, pad, dilate, cover_all)
    per_x, per_y = x.shape[1] // groups, W.shape[0] // groups
    axes = tuple(range(1, 2 + nd))
    ys = [np.tensordot(cols[:, g * per_x:(g + 1) * per_x], W[g * per_y:(g + 1) * per_y],
                       (axes, axes)) for g in range(groups)]
    y = np.moveaxis(np.concatenate(ys, axis=-1), -1, 1)
    return y if b is None else y + b.reshape((1, -1) + (1,) * nd)


def deconvolution(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1):
    """The transpose of convolution, element by element."""
    nd = x.ndim - 2
    s, p, d = (pair(v, nd) for v in (stride, pad, dilate))
    k = W.shape[2:]
    size = outsize or [s[i] * (x.shape[2 + i] - 1) + (k[i] - 1) * d[i] + 1 - 2 * p[i]
                       for i in range(nd)]
    per_x, per_y = x.shape[1] // groups, W.shape[1]
    y = np.zeros((x.shape[0], per_y * groups) + tuple(size))
    for place in np.ndindex(*x.shape[2:]):
        for tap in np.ndindex(*k):
            at = tuple(place[i] * s[i] + tap[i] * d[i] - p[i] for i in range(nd))
            if any(a < 0 or a >= size[i] for i, a in enumerate(at)):
                continue
            for g in range(groups):
                xs = x[(slice(None), slice(g * per_x, (g + 1) * per_x)) + place]
                ws = W[(slice(g * per_x, (g + 1) * per_x), slice(None)) + tap]
                y[(slice(None), slice(g * per_y, (g + 1) * per_y)) + at] += xs @ ws
    return y if b is None else y + b.reshape((1, -1) + (1,) * nd)
