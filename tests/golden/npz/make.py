"""Writes the npz files of this folder: NumPy 1.24.2's own output, as Chainer's save_npz makes it.

SPDX-License-Identifier: MIT
"""
import pickle
import zipfile

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
# an optimizer's file, as Chainer 7.8.1 writes that of Adam; and a safetensors file by hand
np.savez('optimizer.npz', **{'t': np.asarray(3), 'epoch': np.asarray(1), 'l1/W/t': np.asarray(3),
    'l1/W/m': arrays['l1/W'], 'l1/W/v': arrays['l1/W'] ** 2, 'l1/b/t': np.asarray(3),
    'l1/b/m': arrays['l1/b'], 'l1/b/v': arrays['l1/b'] ** 2})
head = (b'{"__metadata__":{"made":"by hand"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},'
        b'"l1/W":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},'
        b'"l1/b":{"dtype":"F32","shape":[2],"data_offsets":[32,40]}}')
head += b' ' * (-len(head) % 8)
with open('stored.safetensors', 'wb') as f:
    f.write(len(head).to_bytes(8, 'little') + head + arrays['n'].tobytes() + arrays['l1/W'].tobytes()
            + arrays['l1/b'].tobytes())
# members as torch.save calls them, and an archive of arrays with others beside them
with zipfile.ZipFile('pytorch.npz', 'w') as z:
    z.writestr('x/data.pkl', pickle.dumps({'l1.weight': 0}, protocol=2))
    z.writestr('x/data/0', arrays['l1/W'].tobytes())
    z.writestr('x/version', b'3\n')
np.savez('mixed.npz', **arrays)
with zipfile.ZipFile('mixed.npz', 'a') as z:
    z.writestr('l1/', b'')
    z.writestr('README.txt', b'by hand')
    z.writestr('.npy', b'nothing')
