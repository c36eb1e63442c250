"""Snapshots of the form that torch.cuda.memory._snapshot() has, by an allocator that is only as
much of one as they need.  Run in this folder; what comes out is checked in.

    make.py                       the small files of this folder
    make.py FILE ENTRIES [PROTOCOL]   one large one: how fast, and in how much memory, is it read

SPDX-License-Identifier: MIT
"""
import pickle
import sys

MIB = 1 << 20


def frames(*rows):
    return [{'filename': f, 'line': line, 'name': name} for f, line, name in rows]


LIBRARY = '/usr/lib/python3/dist-packages/torch/nn/modules/linear.py'
STACKS = [
    frames(('??', 0, 'c10::cuda::CUDACachingAllocator::malloc'),
           (LIBRARY, 114, 'forward'), ('/src/net/train.py', 12, 'forward'),
           ('/src/net/train.py', 40, '<module>')),
    frames(('../aten/src/ATen/EmptyTensor.cpp', 31, 'at::detail::empty_generic'),
           ('/src/net/train.py', 21, 'loss')),
    frames((LIBRARY, 90, '__init__'), ('/src/net/model.py', 7, '__init__')),
    [],
]


class Device:
    """Segments, blocks and the trace of one device."""

    def __init__(self, number, base, clock):
        self.number, self.base, self.clock = number, base, clock
        self.segments, self.trace, self.recording = [], [], False

    def note(self, action, at, size, stream, stack, key='addr'):
        if not self.recording:
            return
        self.clock[0] += 7
        self.trace.append({'action': action, key: at, 'size': size, 'stream': stream,
                           'time_us': self.clock[0], 'frames': stack})

    def segment(self, size, stream=0, pool=(0, 0), stack=STACKS[3]):
        address = self.base + sum(s['total_size'] + 16 * MIB for s in self.segments)
        self.segments.append({
            'device': self.number, 'address': address, 'total_size': size, 'allocated_size': 0,
            'active_size': 0, 'requested_size': 0, 'stream': stream,
            'segment_type': 'large' if size > 2 * MIB else 'small', 'segment_pool_id': pool,
            'is_expandable': False, 'frames': stack,
            'blocks': [{'address': address, 'size': size, 'requested_size': 0,
                        'state': 'inactive', 'frames': []}]})
        self.note('segment_alloc', address, size, stream, stack)
        return self.segments[-1]

    def alloc(self, segment, requested, stack):
        size = (requested + 511) // 512 * 512
        for i, block in enumerate(segment['blocks']):
            if block['state'] == 'inactive' and block['size'] >= size:
                break
        else:
            raise MemoryError(requested)
        rest = dict(block, address=block['address'] + size, size=block['size'] - size)
        block.update(size=size, requested_size=requested, state='active_allocated',
                     frames=stack)
        if rest['size'] > 0:
            segment['blocks'].insert(i + 1, rest)
        segment['allocated_size'] += size
        segment['active_size'] += size
        segment['requested_size'] += requested
        self.note('alloc', block['address'], size, segment['stream'], stack)
        return block

    def free(self, segment, block, completed=True):
        self.note('free_requested', block['address'], block['size'], segment['stream'],
                  block['frames'])
        segment['allocated_size'] -= block['size']
        block['state'] = 'active_pending_free'
        if completed:
            self.complete(segment, block)

    def complete(self, segment, block):
        self.note('free_completed', block['address'], block['size'], segment['stream'],
                  block['frames'])
        segment['active_size'] -= block['size']
        segment['requested_size'] -= block['requested_size']
        block.update(state='inactive', requested_size=0, frames=[])
        blocks = segment['blocks']
        i = blocks.index(block)
        if i + 1 < len(blocks) and blocks[i + 1]['state'] == 'inactive':
            block['size'] += blocks.pop(i + 1)['size']
        if i > 0 and blocks[i - 1]['state'] == 'inactive':
            blocks[i - 1]['size'] += blocks.pop(i)['size']

    def drop(self, segment):
        self.segments.remove(segment)
        self.note('segment_free', segment['address'], segment['total_size'],
                  segment['stream'], [])


def snapshot(devices):
    return {'segments': [s for d in devices for s in d.segments],
            'device_traces': [d.trace for d in devices],
            'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': '', 'max_split_size': -1,
                                   'garbage_collection_threshold': 0.0,
                                   'expandable_segments': False,
                                   'roundup_power2_divisions': {'1': 0, '2': 0}},
            'external_annotations': []}


def small():
    """Two devices; on the first, blocks from before the trace, one of them given back in it."""
    clock = [1_700_000_000_000_000]
    one, two = (Device(i, 0x7f0000000000 + (i << 36), clock) for i in range(2))
    large = one.segment(20 * MIB)
    weights = one.alloc(large, 4_000_000, STACKS[2])
    old = one.alloc(large, 1_000_000, STACKS[3])
    one.recording = two.recording = True
    a = one.alloc(large, 2_000_000, STACKS[0])
    one.free(large, old)
    b = one.alloc(large, 3_000_001, STACKS[1])
    little = one.segment(2 * MIB, stream=7, pool=(0, 1), stack=STACKS[1])
    c = one.alloc(little, 100, STACKS[0])
    gone = one.segment(30 * MIB)
    d = one.alloc(gone, 30 * MIB, STACKS[0])
    one.free(gone, d)
    one.drop(gone)
    one.note('oom', 5 * MIB, 1 << 40, 0, STACKS[1], key='device_free')
    one.free(large, a)
    one.free(little, c, completed=False)
    one.note('snapshot', 0, 0, 0, [])
    other = two.segment(2 * MIB)
    two.alloc(other, 1024, STACKS[2])
    assert weights['state'] == b['state'] == 'active_allocated'
    return snapshot([one, two])


def old_form():
    """As before 2.0: no trace, no addresses, no requested sizes, stacks within histories."""
    blocks = [{'size': 1024, 'state': 'active_allocated',
               'history': [{'addr': 0x7f0000000000, 'real_size': 1000, 'frames': STACKS[0]}]},
              {'size': 3072, 'state': 'inactive'},
              {'size': 4096, 'state': 'active_pending_free',
               'history': [{'addr': 0x7f0000001000, 'real_size': 4096, 'frames': STACKS[2]}]}]
    return [{'device': 0, 'address': 0x7f0000000000, 'total_size': 8192, 'allocated_size': 1024,
             'active_size': 5120, 'stream': 0, 'segment_type': 'small', 'blocks': blocks}]


LINEAR = ('/usr/lib/python3/dist-packages/torch/nn/functional.py', 2251, 'linear')
LAYER = ('/src/net/layers.py', 30, 'forward')
MAIN = ('/src/net/train.py', 40, '<module>')


def deep(caller, depth=0):
    """As the default of _record_memory_history has it: names of C++, then Python, here also recursion."""
    native = [('??', 0, f'at::native::kernel_{i}(at::Tensor const&, long, bool)') for i in range(22)]
    return frames(*native, LINEAR, LAYER, *[('/src/net/tree.py', 8, 'descend')] * depth, caller, MAIN)


def stacks(step):
    """Blocks of one line with two callers; the second step has more of one and less of the other. The program
    said what it was doing, to the allocator and by annotations."""
    clock = [1_700_000_000_000_000 + step]
    device = Device(0, 0x7f0000000000, clock)
    segment = device.segment(20 * MIB)
    device.recording = True
    encode, decode = ('/src/net/model.py', 12, 'encode'), ('/src/net/model.py', 20, 'decode')
    notes = []

    def note(name, stage):
        notes.append({'name': name, 'stage': stage, 'device': 0, 'time_us': clock[0] + 1})

    note('Optimizer.step#SGD', 'START')
    first = [device.alloc(segment, 1 << 20, deep(encode)) for _ in range(3)]
    note('Optimizer.step#SGD', 'END')
    device.trace[-1]['user_metadata'] = 'epoch 2, batch 7'
    note('forward', 'START')
    for _ in range(step * 2):
        device.alloc(segment, 1 << 19, deep(decode, depth=20))
    note('forward', 'END')
    if step == 2:
        device.free(segment, first[0])
    return dict(snapshot([device]), external_annotations=notes)


def long(n):
    """A training loop: batches of activations that come and go, sizes that vary."""
    device = Device(0, 0x7f0000000000, [0])
    device.recording = True
    segments = [device.segment(64 * MIB) for _ in range(8)]
    live, step = [], 0
    while len(device.trace) < n:
        step += 1
        segment = segments[step % 8]
        stack = STACKS[step % 3] + frames(('/src/net/train.py', 100 + step % 50, 'step'))
        live.append((segment, device.alloc(segment, 4096 + step * 37 % 60000, stack)))
        if len(live) > 400:
            for segment, block in live[:200:2]:
                device.free(segment, block)
            live = [x for i, x in enumerate(live) if i >= 200 or i % 2]
            live, extra = live[100:], live[:100]
            for segment, block in extra:
                device.free(segment, block)
    device.trace = device.trace[-n:]
    return snapshot([device])


class Harmful:
    def __reduce__(self):
        return print, ('this was run',)


def write(path, value, protocol):
    with open(path, 'wb') as file:
        pickle.dump(value, file, protocol=protocol)


if len(sys.argv) > 2:
    write(sys.argv[1], long(int(sys.argv[2])), int(sys.argv[3]) if len(sys.argv) > 3 else 4)
else:
    for protocol in range(2, 6):
        write(f'small-{protocol}.pickle', small(), protocol)
    for step in (1, 2):
        write(f'stacks-{step}.pickle', stacks(step), 4)
    write('old.pickle', old_form(), 3)
    write('harmful.pickle', dict(small(), extra=Harmful()), 4)
