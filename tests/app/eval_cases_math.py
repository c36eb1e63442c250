"""Activations, mathematics, noise: Chainer's functions by NumPy's.

SPDX-License-Identifier: MIT
"""
import math

import numpy as np

from eval_case import case, extend, labels, positive, sigmoid, softmax, softplus, spread

x, y = spread(2, 3), spread(2, 3, seed=1)
wide = spread(2, 4, 3)
away = np.where(np.abs(np.abs(x) - 1) < 0.05, x + 0.1, x)  # from kinks at -1 and 1
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def elu(v, alpha):
    return np.where(v > 0, v, alpha * (np.exp(v) - 1))


def reductions():
    for name, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min),
                    ("prod", np.prod)):
        yield case(name, [wide], f(wide))
        yield case(name, [wide], f(wide, axis=(0, 2)), axis="0,2")
        yield case(name, [wide], f(wide, axis=-1, keepdims=True), axis=-1, keepdims="true")


def gumbel(outs):
    """Random: each column is a distribution."""
    (p,) = outs
    assert p.shape == (3, 4) and (p > 0).all()
    assert np.allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert np.ptp(p) > 1e-3


def dropped(outs):
    """Random: zeros, and the others scaled by 1 / (1 - ratio)."""
    (z,) = outs
    kept = z != 0
    assert 200 < kept.sum() < 400 and np.allclose(z[kept], 4 / 3, rtol=1e-12)


beta = positive(3)
big = spread(2, 6, 2)
CASES = [
    # activation
    case("relu", [x], np.maximum(x, 0)),
    case("leaky_relu", [x], np.where(x >= 0, x, 0.2 * x)),
    case("leaky_relu", [x], np.where(x >= 0, x, 0.3 * x), slope=0.3),
    case("sigmoid", [x], sigmoid(x)),
    case("tanh", [x], np.tanh(x)),
    case("softmax", [wide], softmax(wide)),
    case("softmax", [wide], softmax(wide, 2), axis=2),
    case("log_softmax", [wide], np.log(softmax(wide))),
    case("elu", [x], elu(x, 1)),
    case("elu", [x], elu(x, 0.5), alpha=0.5),
    case("softplus", [x], softplus(x)),
    case("softplus", [x], softplus(2 * x) / 2, beta=2),
    case("clipped_relu", [x * 15], np.clip(x * 15, 0, 20)),
    case("clipped_relu", [away], np.clip(away, 0, 1), z=1),
    case("relu6", [x * 5], np.clip(x * 5, 0, 6)),
    case("hard_sigmoid", [x * 3], np.clip(x * 3 * 0.2 + 0.5, 0, 1)),
    case("selu", [x], SELU_SCALE * elu(x, SELU_ALPHA)),
    case("swish", [x, beta], x * sigmoid(beta * x)),
    case("prelu", [x, beta], np.where(x >= 0, x, beta * x)),
    case("prelu", [wide, spread(4)], np.where(wide >= 0, wide, extend(spread(4), wide) * wide)),
    case("maxout", [big], big.reshape(2, 3, 2, 2).max(axis=2), pool_size=2),
    case("maxout", [big], big.reshape(2, 6, 1, 2).max(axis=3), pool_size=2, axis=2),
    # math
    case("absolute", [x], np.abs(x)),
    case("add", [x, y], x + y),
    case("add", [x, y, x], x + y + x),
    case("sub", [x, y], x - y),
    case("mul", [x, y[:1]], x * y[:1]),
    case("div", [x, y], x / y),
    case("pow", [np.abs(x), y], np.abs(x) ** y),
    case("neg", [x], -x),
    case("add_scalar", [x], x + 1.5, value=1.5),
    case("sub_scalar", [x], x - 1.5, value=1.5),
    case("mul_scalar", [x], x * 1.5, value=1.5),
    case("div_scalar", [x], x / 1.5, value=1.5),
    case("pow_scalar", [x], x ** 3, value=3),
    case("rsub_scalar", [x], 1.5 - x, value=1.5),
    case("rdiv_scalar", [x], 1.5 / x, value=1.5),
    case("rpow_scalar", [x], 1.5 ** x, value=1.5),
    case("average", [wide], wide.mean()),
    case("average", [wide], wide.mean(axis=1), axis=1),
    case("average", [wide, positive(4)], np.average(wide, axis=1, weights=positive(4)), axis=1),
    case("average", [wide, positive(2, 4, 3)], np.average(wide, weights=positive(2, 4, 3))),
    case("clip", [x], np.clip(x, -0.6, 0.8), x_min=-0.6, x_max=0.8),
    case("exp", [x], np.exp(x)),
    case("log", [np.abs(x)], np.log(np.abs(x))),
    case("identity", [x], x),
    case("identity", [x, wide], [x, wide]),
    case("matmul", [spread(2, 3), spread(3, 4)], spread(2, 3) @ spread(3, 4)),
    case("matmul", [spread(3, 2), spread(4, 3)], spread(3, 2).T @ spread(4, 3).T,
         transa="true", transb="true"),
    case("matmul", [spread(2, 2, 3), spread(2, 3, 4)], spread(2, 2, 3) @ spread(2, 3, 4)),
    case("matmul", [spread(3), spread(3, seed=1)], spread(3) @ spread(3, seed=1)),
    case("batch_matmul", [spread(2, 3, 2), spread(2, 3, 4)],
         np.einsum("bkm,bkn->bmn", spread(2, 3, 2), spread(2, 3, 4)), transa="true"),
    case("maximum", [x, y], np.maximum(x, y)),
    case("minimum", [x, y], np.minimum(x, y)),
    *reductions(),
    case("argmax", [wide], np.argmax(wide)),
    case("argmax", [wide], np.argmax(wide, axis=1), axis=1),
    case("argmin", [wide], np.argmin(wide)),
    case("argmin", [wide], np.argmin(wide, axis=-1), axis=-1),
    case("sqrt", [np.abs(x)], np.sqrt(np.abs(x))),
    case("square", [x], x * x),
    case("sum_to", [wide], wide.sum(axis=(0, 2), keepdims=True)[0], shape="4,1"),
    case("sin", [x], np.sin(x)),
    case("cos", [x], np.cos(x)),
    case("logsumexp", [wide], np.log(np.exp(wide).sum())),
    case("logsumexp", [wide], np.log(np.exp(wide).sum(axis=1)), axis=1),
    case("bias", [wide, spread(4)], wide + extend(spread(4), wide)),
    case("bias", [wide, spread(2, 4)], wide + spread(2, 4)[:, :, None], axis=0),
    case("scale", [wide, spread(4)], wide * extend(spread(4), wide)),
    case("scale", [wide, spread(4, 3)], wide * spread(4, 3), axis=1),
    case("cumsum", [wide], np.cumsum(wide)),
    case("cumsum", [wide], np.cumsum(wide, axis=1), axis=1),
    case("einsum", [spread(2, 3), spread(3, 4)], spread(2, 3) @ spread(3, 4),
         subscripts="ij,jk->ik"),
    case("einsum", [spread(3, 3)], np.trace(spread(3, 3)), subscripts="ii"),
    case("einsum", [spread(2, 3), spread(3)], np.einsum("ij,j->i", spread(2, 3), spread(3)),
         subscripts="ij,j->i"),
    case("tensordot", [wide, spread(4, 3, 2)], np.tensordot(wide, spread(4, 3, 2))),
    case("tensordot", [wide, spread(3, 2)], np.tensordot(wide, spread(3, 2), axes=1), axes=1),
    case("tensordot", [wide, spread(3, 5, 4)], np.tensordot(wide, spread(3, 5, 4), ((1, 2), (2, 0))),
         axes="1,2,2,0"),
    case("erf", [x], np.vectorize(math.erf)(x)),
    case("log1p", [np.abs(x)], np.log1p(np.abs(x))),
    case("expm1", [x], np.expm1(x)),
    case("rsqrt", [np.abs(x)], 1 / np.sqrt(np.abs(x))),
    case("sign", [x], np.sign(x)),
    case("linear_interpolate", [sigmoid(x), y, x * y], sigmoid(x) * y + (1 - sigmoid(x)) * x * y),
    # noise
    case("dropout", [np.full((20, 20), 1.0)], dropped, check=False, ratio=0.25),
    case("dropout", [x], x, train="false"),
    case("dropout", [x, np.array([[0, 2, 0], [2, 2, 0.0]])],
         x * np.array([[0, 2, 0], [2, 2, 0]])),
    case("gaussian", [x, y, spread(2, 3, seed=2)], x + spread(2, 3, seed=2) * np.exp(y / 2)),
    case("gumbel_softmax", [spread(3, 4)], gumbel, check=False, tau=0.5),
    # not in Chainer
    case("gelu", [x], 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
    case("silu", [x], x * sigmoid(x)),
    case("one_hot", [labels(1, 0, 2)], np.eye(3)[[1, 0, 2]], n=3),
]
