"""Writes the npz files of this folder: NumPy 1.24.2's own output, as Chainer's save_npz makes it.

SPDX-License-Identifier: MIT
"""
import numpy as np

arrays = {
    'l1/W': np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
    'l1/b': np.array([-1.5, 2.25], dtype=np.float32),
    'n': np.array(42, dtype=np.int64),
}
np.savez_compressed('deflated.npz', **arrays)
np.savez('stored.npz', **arrays)
# the same numbers in other clothes: double precision, column order, half precision
np.savez('dressed.npz', **{
    'l1/W': np.asfortranarray(arrays['l1/W'].astype(np.float64)),
    'l1/b': arrays['l1/b'].astype(np.float16),
    'n': arrays['n'].astype(np.int32),
})
# a parameter without a shape is None in Chainer's files; anything else that is pickled is refused
np.savez('none.npz', **{'l1/W': np.array(None, dtype=object), 'l1/b': arrays['l1/b'], 'n': arrays['n']})
np.savez('object.npz', **{'l1/W': np.array([None, {'l1': 1}], dtype=object), 'l1/b': arrays['l1/b'], 'n': arrays['n']})
np.savez('shape.npz', **{'l1/W': arrays['l1/W'].T.copy(), 'l1/b': arrays['l1/b'], 'n': arrays['n']})
np.savez('big-endian.npz', **{'l1/W': arrays['l1/W'].astype('>f4'), 'l1/b': arrays['l1/b'], 'n': arrays['n']})
