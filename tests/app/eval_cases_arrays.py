"""Shapes and pieces: Chainer's functions by NumPy's.

SPDX-License-Identifier: MIT
"""
import numpy as np

from eval_case import case, labels, spread, windows

x = spread(2, 3)
wide = spread(2, 3, 4)
image = spread(2, 2, 5, 4)


def added(a, index, b):
    y = a.copy()
    np.add.at(y, index, b)
    return y


CASES = [
    case("broadcast_to", [spread(3, 1)], np.broadcast_to(spread(3, 1), (2, 3, 4)), shape="2,3,4"),
    case("broadcast", [spread(3, 1), spread(2, 1, 4)],
         list(np.broadcast_arrays(spread(3, 1), spread(2, 1, 4)))),
    case("cast", [x], x.astype(np.float32).astype(np.float64), check=False, typ="float32"),
    case("cast", [x], x.astype(np.int32), check=False, typ="i"),
    case("concat", [x, spread(2, 2)], np.concatenate([x, spread(2, 2)], axis=1)),
    case("concat", [x, x * 2], np.concatenate([x, x * 2]), axis=0),
    case("copy", [x], x),
    case("expand_dims", [x], x[:, None], axis=1),
    case("expand_dims", [x], x[..., None], axis=-1),
    case("flatten", [wide], wide.ravel()),
    case("get_item", [wide], wide[1, ::-1, 1:4:2], slices="1,::-1,1:4:2"),
    case("get_item", [wide], wide[..., -1], slices="..., -1"),
    case("get_item", [wide, labels(2, 0, 2).reshape(3)[:2] % 2], wide[[0, 0]]),
    case("reshape", [wide], wide.reshape(4, 6), shape="4,-1"),
    case("select_item", [x, labels(2, 0)], x[[0, 1], [2, 0]]),
    case("split_axis", [wide], np.split(wide, 2, axis=2), indices_or_sections=2, axis=2),
    case("split_axis", [wide], np.split(wide, [1, 3], axis=2), indices_or_sections="1,3", axis=2),
    case("squeeze", [spread(2, 1, 3, 1)], spread(2, 1, 3, 1).squeeze()),
    case("squeeze", [spread(2, 1, 3, 1)], spread(2, 1, 3, 1).squeeze(axis=1), axis=1),
    case("stack", [x, x * 2], np.stack([x, x * 2])),
    case("stack", [x, x * 2], np.stack([x, x * 2], axis=2), axis=-1),
    case("transpose", [wide], wide.T),
    case("transpose", [wide], wide.transpose(1, 2, 0), axes="1,2,0"),
    case("where", [x > 0.3, x, x * 3], np.where(x > 0.3, x, x * 3)),
    case("im2col", [image], windows(image, 2, 1, 0).reshape(2, 8, 4, 3), ksize=2),
    case("im2col", [image], windows(image, (3, 2), 2, 1, (1, 2)).reshape(2, 12, 3, 2),
         ksize="3,2", stride=2, pad=1, dilate="1,2"),
    case("pad", [x], np.pad(x, 1, "constant"), pad_width=1, mode="constant"),
    case("pad", [x], np.pad(x, ((0, 1), (2, 0)), "constant", constant_values=0.5),
         pad_width="((0,1),(2,0))", mode="constant", constant_values=0.5),
    case("pad_sequence", [spread(3), spread(2)],
         np.stack([spread(3), np.concatenate([spread(2), [0]])])),
    case("pad_sequence", [spread(1, 2), spread(2, 2)],
         np.stack([np.pad(spread(1, 2), ((0, 3), (0, 0)), constant_values=-1),
                   np.pad(spread(2, 2), ((0, 2), (0, 0)), constant_values=-1)]),
         length=4, padding=-1),
    case("repeat", [x], np.repeat(x, 2, axis=1), repeats=2, axis=1),
    case("repeat", [x], np.repeat(x, [1, 0, 2], axis=1), repeats="1,0,2", axis=1),
    case("repeat", [x], np.repeat(x, 2), repeats=2),
    case("tile", [x], np.tile(x, (2, 1, 2)), reps="2,1,2"),
    case("tile", [x], np.tile(x, 2), reps=2),
    case("separate", [wide], list(wide)),
    case("separate", [wide], [wide[:, i] for i in range(3)], axis=1),
    case("swapaxes", [wide], wide.swapaxes(0, 2), axis1=0, axis2=2),
    case("moveaxis", [wide], np.moveaxis(wide, 0, -1), source=0, destination=-1),
    case("moveaxis", [wide], np.moveaxis(wide, (0, 1), (2, 0)), source="0,1", destination="2,0"),
    case("flip", [wide], wide[:, ::-1], axis=1),
    case("scatter_add", [wide, spread(3, 2)], added(wide, np.s_[1, :, 1:3], spread(3, 2)),
         slices="1,:,1:3"),
    case("hstack", [x, x * 2], np.hstack([x, x * 2])),
    case("hstack", [spread(2), spread(3)], np.hstack([spread(2), spread(3)])),
    case("vstack", [x, x * 2], np.vstack([x, x * 2])),
    case("vstack", [spread(3), spread(3, seed=1)], np.vstack([spread(3), spread(3, seed=1)])),
]
