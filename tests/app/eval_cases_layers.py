"""Connections, poolings, normalizations, recurrent nets: Chainer's functions by NumPy's.

SPDX-License-Identifier: MIT
"""
import numpy as np

from eval_case import (case, convolution, deconvolution, extend, labels, out_size, positive,
                       sigmoid, softmax, spread, windows)

x, W, b = spread(2, 3), spread(4, 3), spread(4)
image, kernel = spread(2, 4, 5, 4), spread(6, 4, 3, 2)
line, volume = spread(2, 2, 7), spread(1, 2, 4, 3, 4)
table = spread(5, 2)
gamma, beta = positive(4), spread(4)


def pooled(v, f, ksize, stride, pad, cover_all, fill):
    nd = v.ndim - 2
    cols = windows(v, ksize, stride, pad, 1, cover_all, fill)
    return f(cols, axis=tuple(range(2, 2 + nd)))


def depthwise(v, w, bias, **more):
    per = w.transpose(1, 0, 2, 3).reshape(-1, 1, *w.shape[2:])
    return convolution(v, per, bias, groups=v.shape[1], **more)


def unpooled(v, k, s, p, cover_all):
    size = [s * (n - 1) + k - 2 * p - (s - 1 if cover_all else 0) for n in v.shape[2:]]
    y = np.zeros(v.shape[:2] + tuple(size))
    for i, j in np.ndindex(*v.shape[2:]):
        for a, c in np.ndindex(k, k):
            at = (i * s + a - p, j * s + c - p)
            if 0 <= at[0] < size[0] and 0 <= at[1] < size[1]:
                y[:, :, at[0], at[1]] += v[:, :, i, j]
    return y


# --- normalizations ---

def batch_norm(v, axes, g, bias, eps=2e-5):
    mean, var = v.mean(axis=axes, keepdims=True), v.var(axis=axes, keepdims=True)
    return g * (v - mean) / np.sqrt(var + eps) + bias


def group_norm(v, groups, g, bias, eps=1e-5):
    split = v.reshape(v.shape[0], groups, -1)
    mean, var = split.mean(axis=2, keepdims=True), split.var(axis=2, keepdims=True)
    return ((split - mean) / np.sqrt(var + eps)).reshape(v.shape) * extend(g, v) + extend(bias, v)


def response_norm(v, n=5, k=2, alpha=1e-4, power=0.75):
    half, total = n // 2, np.zeros_like(v)
    for c in range(v.shape[1]):
        total[:, c] = (v[:, max(0, c - half):c + half + 1] ** 2).sum(axis=1)
    return v / (k + alpha * total) ** power


def attention(q, k, v, mask=0.0):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask, -1) @ v


# --- recurrent nets ---

def lstm(c, v):
    a, i, f, o = np.moveaxis(v.reshape(v.shape[0], -1, 4), 2, 0)
    new = sigmoid(i) * np.tanh(a) + sigmoid(f) * c
    return [new, sigmoid(o) * np.tanh(new)]


def lstm_cell(v, h, c, w, bias):
    gate = [v @ w[k].T + h @ w[k + 4].T + bias[k] + bias[k + 4] for k in range(4)]
    c = sigmoid(gate[0]) * np.tanh(gate[2]) + sigmoid(gate[1]) * c
    return sigmoid(gate[3]) * np.tanh(c), c


def gru_cell(v, h, c, w, bias):
    r = sigmoid(v @ w[0].T + h @ w[3].T + bias[0] + bias[3])
    z = sigmoid(v @ w[1].T + h @ w[4].T + bias[1] + bias[4])
    new = np.tanh(v @ w[2].T + bias[2] + r * (h @ w[5].T + bias[5]))
    return (1 - z) * new + z * h, c


def rnn_cell(v, h, c, w, bias):
    return np.tanh(v @ w[0].T + h @ w[1].T + bias[0] + bias[1]), c


def one_layer(cell, h, c, w, bias, steps, backward=False):
    """h, c after the last step and the outputs; shorter sequences end earlier."""
    h, c, ys = h.copy(), c.copy(), [None] * len(steps)
    for t in reversed(range(len(steps))) if backward else range(len(steps)):
        n = steps[t].shape[0]
        h[:n], c[:n] = cell(steps[t], h[:n], c[:n], w, bias)
        ys[t] = h[:n].copy()
    return h, c, ys


def n_step(cell, n_weights, n_layers, both, hx, cx, ws, bs, steps):
    h_out, c_out, ways = [], [], 2 if both else 1
    for layer in range(n_layers):
        made = []
        for way in range(ways):
            k = layer * ways + way
            at = slice(k * n_weights, (k + 1) * n_weights)
            h, c, ys = one_layer(cell, hx[k], cx[k], ws[at], bs[at], steps, way == 1)
            h_out.append(h)
            c_out.append(c)
            made.append(ys)
        steps = [np.concatenate(parts, axis=1) for parts in zip(*made)]
    return np.stack(h_out), np.stack(c_out), steps


def n_step_cases():
    size, units, layers = 2, 3, 2
    steps = [spread(3, size, seed=1), spread(2, size, seed=2), spread(1, size, seed=3)]
    for name, cell, n_weights, both, with_c in (
            ("n_step_lstm", lstm_cell, 8, False, True),
            ("n_step_bilstm", lstm_cell, 8, True, True),
            ("n_step_gru", gru_cell, 6, False, False),
            ("n_step_rnn", rnn_cell, 2, False, False)):
        ways = 2 if both else 1
        n_states = layers * ways
        hx, cx = spread(n_states, 3, units, seed=4), spread(n_states, 3, units, seed=5)
        ws, bs = [], []
        for k in range(n_states):
            for i in range(n_weights):
                below = size if k < ways else units * ways
                ws.append(spread(units, below if i < n_weights // 2 else units, seed=6 + k + i))
                bs.append(spread(units, seed=7 + k + i))
        hy, cy, ys = n_step(cell, n_weights, layers, both, hx, cx, ws, bs, steps)
        yield case(name, [hx, *([cx] if with_c else []), *ws, *bs, *steps],
                   [hy, *([cy] if with_c else []), *ys], check=False,
                   n_layers=layers, dropout_ratio=0)


vectors = spread(2, 4, low=-1)
CASES = [
    # connection
    case("linear", [x, W, b], x @ W.T + b),
    case("linear", [x.reshape(2, 3, 1), W], x @ W.T),
    case("linear", [spread(2, 5, 3), W, b], spread(2, 5, 3) @ W.T + b, n_batch_axes=2),
    case("convolution_2d", [image, kernel], convolution(image, kernel)),
    case("convolution_2d", [image, kernel, spread(6)],
         convolution(image, kernel, spread(6), (2, 1), (1, 0)), stride="2,1", pad="1,0"),
    case("convolution_2d", [image, spread(6, 2, 2, 2)],
         convolution(image, spread(6, 2, 2, 2), None, 2, 1, 2, 2), stride=2, pad=1, dilate=2,
         groups=2),
    case("convolution_2d", [image, kernel], convolution(image, kernel, None, 2, 0, cover_all=True),
         stride=2, cover_all="true"),
    case("deconvolution_2d", [image, spread(4, 3, 3, 2), spread(3)],
         deconvolution(image, spread(4, 3, 3, 2), spread(3), 2, 1), stride=2, pad=1),
    case("deconvolution_2d", [image, spread(4, 3, 3, 3)],
         deconvolution(image, spread(4, 3, 3, 3), None, 2, 1, (10, 8)), stride=2, pad=1,
         outsize="10,8"),
    case("deconvolution_2d", [image, spread(4, 2, 2, 2)],
         deconvolution(image, spread(4, 2, 2, 2), None, 1, 0, None, 2, 2), dilate=2, groups=2),
    case("embed_id", [labels(3, 0, 3), table], table[[3, 0, 3]]),
    case("embed_id", [labels(3, -1), table], np.stack([table[3], [0, 0]]), ignore_label=-1),
    case("convolution_1d", [line, spread(3, 2, 3), spread(3)],
         convolution(line, spread(3, 2, 3), spread(3), 2, 1), stride=2, pad=1),
    case("convolution_3d", [volume, spread(3, 2, 2, 2, 3)],
         convolution(volume, spread(3, 2, 2, 2, 3), None, 1, 1), pad=1),
    case("convolution_nd", [line, spread(3, 2, 2)], convolution(line, spread(3, 2, 2), dilate=2),
         dilate=2),
    case("convolution_nd", [volume, spread(4, 1, 2, 2, 2), spread(4)],
         convolution(volume, spread(4, 1, 2, 2, 2), spread(4), (2, 1, 1), 0, 1, 2),
         stride="2,1,1", groups=2),
    case("deconvolution_nd", [line, spread(2, 3, 3), spread(3)],
         deconvolution(line, spread(2, 3, 3), spread(3), 2, 1), stride=2, pad=1),
    case("deconvolution_nd", [volume, spread(2, 1, 2, 2, 2)],
         deconvolution(volume, spread(2, 1, 2, 2, 2), None, 2), stride=2),
    case("depthwise_convolution_2d", [image, spread(2, 4, 3, 3), spread(8)],
         depthwise(image, spread(2, 4, 3, 3), spread(8), stride=1, pad=1), pad=1),
    case("dilated_convolution_2d", [image, spread(3, 4, 2, 2), spread(3)],
         convolution(image, spread(3, 4, 2, 2), spread(3), 1, 1, 2), pad=1, dilate=2),
    # pooling
    case("max_pooling_2d", [image], pooled(image, np.max, 2, 2, 0, True, -np.inf), ksize=2),
    case("max_pooling_2d", [image], pooled(image, np.max, (3, 2), (2, 1), 1, False, -np.inf),
         ksize="3,2", stride="2,1", pad=1, cover_all="false"),
    case("average_pooling_2d", [image], pooled(image, np.mean, 2, 2, 0, False, 0), ksize=2),
    case("average_pooling_2d", [image], pooled(image, np.mean, 3, 2, 1, False, 0), ksize=3,
         stride=2, pad=1),
    case("max_pooling_nd", [volume], pooled(volume, np.max, 2, 2, 0, True, -np.inf), ksize=2),
    case("max_pooling_nd", [line], pooled(line, np.max, 3, 2, 1, False, -np.inf), ksize=3,
         stride=2, pad=1, cover_all="false"),
    case("average_pooling_nd", [volume], pooled(volume, np.mean, (2, 1, 2), 1, 0, False, 0),
         ksize="2,1,2", stride=1),
    case("average_pooling_nd", [line], pooled(line, np.mean, 3, 2, 1, False, 0), ksize=3,
         stride=2, pad=1),
    case("unpooling_2d", [image], unpooled(image, 2, 2, 0, False), ksize=2, cover_all="false"),
    case("unpooling_2d", [image], unpooled(image, 3, 2, 0, True), ksize=3, stride=2),
    # normalization
    case("batch_normalization", [image, gamma, beta],
         batch_norm(image, (0, 2, 3), extend(gamma, image), extend(beta, image))),
    case("batch_normalization", [vectors, gamma, beta], batch_norm(vectors, 0, gamma, beta, 0.1),
         eps=0.1),
    case("batch_normalization", [image, spread(5, 4), spread(5, 4, seed=1)],
         batch_norm(image, (0, 1), spread(5, 4), spread(5, 4, seed=1)), axis="0,1"),
    case("batch_normalization", [image, gamma, beta, spread(4, seed=2), positive(4, seed=1)],
         extend(gamma, image) * (image - extend(spread(4, seed=2), image))
         / np.sqrt(extend(positive(4, seed=1), image) + 1e-3) + extend(beta, image), eps=1e-3),
    case("fixed_batch_normalization",
         [vectors, gamma, beta, spread(4, seed=2), positive(4, seed=1)],
         gamma * (vectors - spread(4, seed=2)) / np.sqrt(positive(4, seed=1) + 2e-5) + beta),
    case("layer_normalization", [vectors, gamma, beta],
         gamma * (vectors - vectors.mean(axis=1, keepdims=True))
         / np.sqrt(vectors.var(axis=1, keepdims=True) + 1e-5) + beta),
    case("group_normalization", [image, gamma, beta], group_norm(image, 2, gamma, beta), groups=2),
    case("normalize", [image], image / (np.sqrt((image ** 2).sum(axis=1, keepdims=True)) + 1e-5)),
    case("normalize", [image],
         image / (np.sqrt((image ** 2).sum(axis=(1, 2), keepdims=True)) + 0.1), eps=0.1,
         axis="1,2"),
    case("local_response_normalization", [image], response_norm(image)),
    case("local_response_normalization", [image], response_norm(image, 3, 1, 0.1, 0.5), n=3, k=1,
         alpha=0.1, beta=0.5),
    # rnn
    case("lstm", [spread(2, 3), spread(2, 12)], lstm(spread(2, 3), spread(2, 12))),
    case("lstm", [spread(3, 2), spread(2, 8)],
         [np.concatenate([lstm(spread(3, 2)[:2], spread(2, 8))[0], spread(3, 2)[2:]]),
          lstm(spread(3, 2)[:2], spread(2, 8))[1]]),
    *n_step_cases(),
    # util
    case("forget", [x], sigmoid(x), check=False, func="sigmoid"),
    # not in Chainer
    case("rms_normalization", [vectors, gamma],
         gamma * vectors / np.sqrt((vectors ** 2).mean(axis=1, keepdims=True) + 1e-5)),
    case("scaled_dot_product_attention",
         [spread(2, 2, 3, 4), spread(2, 2, 5, 4), spread(2, 2, 5, 4, seed=1)],
         attention(spread(2, 2, 3, 4), spread(2, 2, 5, 4), spread(2, 2, 5, 4, seed=1))),
    case("scaled_dot_product_attention",
         [spread(2, 3, 4), spread(2, 5, 4), spread(2, 5, 2)],
         attention(spread(2, 3, 4), spread(2, 5, 4), spread(2, 5, 2),
                   np.where(np.tri(3, 5, 2) > 0, 0, -np.inf)), causal="true"),
    case("scaled_dot_product_attention",
         [spread(2, 3, 4), spread(2, 5, 4), spread(2, 5, 2)],
         attention(spread(2, 3, 4), spread(2, 5, 4), spread(2, 5, 2)), composed="true"),
    case("adaptive_average_pooling_2d", [spread(1, 2, 6, 4)],
         spread(1, 2, 6, 4).reshape(1, 2, 3, 2, 2, 2).mean(axis=(3, 5)), output_size="3,2"),
]
assert out_size(5, 2, 2, 0, cover_all=True) == 3
