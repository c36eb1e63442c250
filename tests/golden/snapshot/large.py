"""A large snapshot, as a training run of many steps leaves it: written entry by entry, for the values
of a GB do not fit into Python's memory.

    large.py FILE ENTRIES     some 250 bytes for each entry of the trace
    large.py --check          what is written is what Python's pickle reads, with what is shared

What PyTorch does is done alike: a frame is one dictionary for all stacks that have it, a block's
stack is a list of its own, shared by what speaks of the same block, a free has another one; with
the default of _record_memory_history stacks are of C++ and Python, 40 to 80 frames.

SPDX-License-Identifier: MIT
"""
import pickle
import random
import struct
import sys
import tempfile

N_PLACES, N_PARAMETERS, N_LAYERS = 600, 400, 96
BASE = 0x7f0000000000


class Writer:
    """Opcodes as the pickler of Python writes them for protocol 4, without frames of bytes."""

    def __init__(self, file):
        self.file, self.n_memo, self.texts = file, 0, {}
        file.write(b'\x80\x04')

    def put(self, data):
        self.file.write(data)

    def memoize(self):
        self.n_memo += 1
        self.put(b'\x94')
        return self.n_memo - 1

    def get(self, memo):
        self.put(b'h%c' % memo if memo < 256 else b'j' + struct.pack('<I', memo))

    def text(self, text):
        if text in self.texts:
            return self.get(self.texts[text])
        data = text.encode()
        self.put((b'\x8c%c' % len(data) if len(data) < 256 else b'X' + struct.pack('<I', len(data))) + data)
        self.texts[text] = self.memoize()

    def number(self, x):
        if x < 256:
            self.put(b'K%c' % x)
        elif x < 65536:
            self.put(b'M' + struct.pack('<H', x))
        elif x < 1 << 31:
            self.put(b'J' + struct.pack('<i', x))
        else:
            n = x.bit_length() // 8 + 1
            self.put(b'\x8a%c' % n + x.to_bytes(n, 'little'))

    def members(self, pairs):
        self.put(b'}')
        self.memoize()
        self.put(b'(')
        for key, value in pairs:
            self.text(key)
            if callable(value):
                value()
            elif isinstance(value, str):
                self.text(value)
            else:
                self.number(value)
        self.put(b'u')

    def items(self, writers):
        self.put(b']')
        self.memoize()
        n = 0
        for write in writers:
            if n % 1000 == 0:
                self.put(b'e(' if n > 0 else b'(')
            write()
            n += 1
        self.put(b'e' if n > 0 else b'')


class Stacks:
    """Frames are there once, and so is a stack that several values share."""

    def __init__(self, out):
        rng = random.Random(7)
        self.out, self.frame_memo, self.list_memo = out, {}, {}
        self.frames = [('/usr/lib/python3/dist-packages/torch/nn/modules/m%d.py' % (i % 40), 10 + i, 'forward%d' % i)
                       if i % 3 else ('??', 0, 'at::native::kernel_%d(at::Tensor const&, long, bool)' % i)
                       for i in range(3000)]
        self.frames += [('/src/net/model.py', 10 + i, 'block%d' % (i % 20)) for i in range(200)]
        trunk = [rng.randrange(3000, 3200) for _ in range(6)]
        self.stacks = [[rng.randrange(3000) for _ in range(rng.randrange(30, 70))]
                       + [3000 + i % 200] + trunk[i % 3:] for i in range(N_PLACES)]
        self.bodies = [None] * N_PLACES

    def frame(self, i):
        if i in self.frame_memo:
            return self.out.get(self.frame_memo[i])
        self.frame_memo[i] = self.out.n_memo
        file, line, name = self.frames[i]
        self.out.members([('name', name), ('filename', file), ('line', line)])

    def write(self, place, share):
        """The stack of a place; `share`: who has the same list."""
        if share in self.list_memo:
            return self.out.get(self.list_memo.pop(share))
        self.list_memo[share] = self.out.n_memo
        if self.bodies[place] is not None:
            self.out.put(b']\x94(' + self.bodies[place] + b'e')
            self.out.n_memo += 1
            return
        self.out.items([lambda i=i: self.frame(i) for i in self.stacks[place]])
        memos = [self.frame_memo[i] for i in self.stacks[place]]
        self.bodies[place] = b''.join(b'h%c' % m if m < 256 else b'j' + struct.pack('<I', m) for m in memos)


def trace(n):
    """Entries: action, address, size, place, and the name of the list that it shares."""
    done = 0
    for i in range(N_PARAMETERS):
        yield 'alloc', BASE + i * (1 << 21), 1 << 20, i % N_PLACES, ('p', i)
    done = N_PARAMETERS
    step = 0
    while done + 3 * N_LAYERS <= n:
        sizes = [512 * (1 + (layer * 37 + step) % 900) for layer in range(N_LAYERS)]
        for layer in range(N_LAYERS):
            yield ('alloc', BASE + (1 << 36) + layer * (1 << 20), sizes[layer], (layer * 5) % N_PLACES,
                   ('a', step, layer))
        for layer in reversed(range(N_LAYERS)):
            for action in ('free_requested', 'free_completed'):
                yield (action, BASE + (1 << 36) + layer * (1 << 20), sizes[layer], (layer * 5 + 1) % N_PLACES,
                       ('f', step, layer))
        done += 3 * N_LAYERS
        step += 1


def write(file, n):
    out = Writer(file)
    stacks = Stacks(out)

    def block(i):
        out.members([('address', BASE + i * (1 << 21)), ('size', 1 << 20), ('requested_size', (1 << 20) - 12),
                     ('state', 'active_allocated'), ('frames', lambda: stacks.write(i % N_PLACES, ('p', i)))])

    def segment(i):
        out.members([('device', 0), ('address', BASE + i * (1 << 21)), ('total_size', 1 << 21),
                     ('allocated_size', 1 << 20), ('active_size', 1 << 20), ('stream', 0),
                     ('segment_type', 'large'), ('blocks', lambda: out.items([lambda: block(i)]))])

    def entry(e, k):
        action, at, size, place, share = e
        out.members([('action', action), ('addr', at), ('size', size), ('stream', 0),
                     ('time_us', 1_700_000_000_000_000 + k * 7), ('frames', lambda: stacks.write(place, share))])
        if action == 'alloc' and share[0] == 'a':
            del stacks.list_memo[share]

    def entries():
        for k, e in enumerate(trace(n)):
            yield lambda e=e, k=k: entry(e, k)

    out.members([('segments', lambda: out.items([lambda i=i: segment(i) for i in range(N_PARAMETERS)])),
                 ('device_traces', lambda: out.items([lambda: out.items(entries())])),
                 ('allocator_settings', lambda: out.members([('PYTORCH_CUDA_ALLOC_CONF', '')]))])
    out.put(b'.')


def check():
    with tempfile.TemporaryFile() as file:
        write(file, 3000)
        file.seek(0)
        value = pickle.load(file)
    frames = [e['frames'] for e in value['device_traces'][0]]
    assert len(frames) == N_PARAMETERS + 3 * N_LAYERS * ((3000 - N_PARAMETERS) // (3 * N_LAYERS))
    assert value['segments'][5]['blocks'][0]['frames'] is frames[5]
    free = [e for e in value['device_traces'][0] if e['action'].startswith('free')]
    assert free[0]['frames'] is free[1]['frames'] and free[0]['frames'] is not free[2]['frames']
    assert len({id(f) for s in frames for f in s}) <= 3200


if sys.argv[1] == '--check':
    check()
else:
    with open(sys.argv[1], 'wb', buffering=1 << 20) as file:
        write(file, int(sys.argv[2]))
