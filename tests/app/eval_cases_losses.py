"""Losses and scores: Chainer's functions by NumPy's.

SPDX-License-Identifier: MIT
"""
import numpy as np

from eval_case import case, labels, positive, softmax, softplus, spread

x, y = spread(3, 4), spread(3, 4, seed=1)
t = labels(2, 0, 3)
some = labels(2, -1, 3)
zeros_ones = np.array([[1, 0, -1, 1], [0, 0, 1, 1], [1, -1, -1, 0]], np.int32)
weight = positive(4)
rows = -np.log(softmax(x))[np.arange(3), t]
error = x - y


def sigmoid_rows():
    loss = softplus(x) - zeros_ones * x
    return np.where(zeros_ones == -1, 0, loss)


def huber(delta):
    a = np.abs(error)
    return np.where(a < delta, 0.5 * a * a, delta * (a - 0.5 * delta))


def hinged():
    z = x.copy()
    z[np.arange(3), t] *= -1
    return np.maximum(0, 1 + z)


def scores(p, truth, beta=1.0, ignore=None, n=None):
    """Precision, recall, F and support per class."""
    n = n or max(p.max(), truth.max()) + 1
    keep = truth != ignore if ignore is not None else np.full(truth.shape, True)
    p, truth = p[keep], truth[keep]
    right = np.array([((p == k) & (truth == k)).sum() for k in range(n)], float)
    relevant = np.array([(p == k).sum() for k in range(n)], float)
    support = np.array([(truth == k).sum() for k in range(n)])
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = right / relevant, right / support
    f = (1 + beta ** 2) * precision * recall / (beta ** 2 * precision + recall)
    return precision, recall, f, support


many = spread(12, 3)
truth = labels(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2)
many[np.arange(0, 12, 2), truth[::2]] = 3  # half of them are right
precision, recall, f1, support = scores(many.argmax(axis=1), truth)
nll = 0.5 * (y + np.log(2 * np.pi) + (x - positive(3, 4)) ** 2 * np.exp(-y))
kl = 0.5 * (x * x + np.exp(y) - y - 1)


def sampled(outs):
    """Random samples: a positive number."""
    (loss,) = outs
    assert loss.shape == () and 0 < loss < 100


CASES = [
    # loss
    case("softmax_cross_entropy", [x, t], rows.mean()),
    case("softmax_cross_entropy", [x, some], (rows[0] + rows[2]) / 2),
    case("softmax_cross_entropy", [x, some], (rows[0] + rows[2]) / 3, normalize="false"),
    case("softmax_cross_entropy", [x, t, weight], (rows * weight[t]).mean()),
    case("softmax_cross_entropy", [x, t], rows, reduce="no"),
    case("softmax_cross_entropy", [x, labels(2, 0, 0)],
         -np.log(softmax(x))[0, 2], ignore_label=0),
    case("sigmoid_cross_entropy", [x, zeros_ones], sigmoid_rows().sum() / 9),
    case("sigmoid_cross_entropy", [x, zeros_ones], sigmoid_rows().sum() / 3, normalize="false"),
    case("sigmoid_cross_entropy", [x, zeros_ones], sigmoid_rows(), reduce="no"),
    case("mean_squared_error", [x, y], (error ** 2).mean()),
    case("mean_absolute_error", [x, y], np.abs(error).mean()),
    case("absolute_error", [x, y], np.abs(error)),
    case("squared_error", [x, y], error ** 2),
    case("huber_loss", [x, y], huber(1.1).sum(axis=1), delta=1.1),
    case("huber_loss", [x, y], huber(0.7), delta=0.7, reduce="no"),
    case("hinge", [x, t], hinged().sum() / 3),
    case("hinge", [x, t], (hinged() ** 2).sum() / 3, norm="L2"),
    case("hinge", [x, t], hinged(), reduce="no"),
    case("bernoulli_nll", [positive(3, 4), y], (softplus(y) - positive(3, 4) * y).sum()),
    case("bernoulli_nll", [positive(3, 4), y], softplus(y) - positive(3, 4) * y, reduce="no"),
    case("gaussian_nll", [x, positive(3, 4), y], nll.sum()),
    case("gaussian_nll", [x, positive(3, 4), y], nll.mean(), reduce="mean"),
    case("gaussian_kl_divergence", [x, y], kl.sum()),
    case("gaussian_kl_divergence", [x, y], kl.mean(), reduce="mean"),
    case("gaussian_kl_divergence", [x, y], kl, reduce="no"),
    case("negative_sampling", [x, t, spread(5, 4)], sampled, check=False, sample_size=2),
    case("negative_sampling", [x, t, spread(5, 4), labels(1, 4, 2, 2, 0, 1).reshape(3, 2)],
         (softplus(-(x * spread(5, 4)[t]).sum(axis=1))
          + softplus(np.einsum("nd,nkd->nk", x, spread(5, 4)[[[1, 4], [2, 2], [0, 1]]]))
          .sum(axis=1)).sum()),
    # evaluation
    case("accuracy", [many, truth], (many.argmax(axis=1) == truth).mean()),
    case("accuracy", [many, truth], (many.argmax(axis=1) == truth)[truth != 1].mean(),
         ignore_label=1),
    case("binary_accuracy", [x, zeros_ones],
         ((x >= 0) == zeros_ones)[zeros_ones != -1].mean()),
    case("classification_summary", [many, truth], [precision, recall, f1, support], check=False),
    case("classification_summary", [many, truth], list(scores(many.argmax(axis=1), truth, 2.0)),
         check=False, beta=2),
    case("classification_summary", [many, truth],
         list(scores(many.argmax(axis=1), truth, ignore=1)),
         check=False, ignore_label=1),
    case("precision", [many, truth], [precision, support]),
    case("recall", [many, truth], [recall, support]),
    case("f1_score", [many, truth], [f1, support]),
]
