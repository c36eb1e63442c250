"""Whole stacks of a memory snapshot: `tapedeck show --view blocks` has the stack of each block that a second
reading of the pickle comes to, and `tapedeck diff` tells blocks apart whose innermost line is the same.

    snapshot-stacks.py TAPEDECK FOLDER     FOLDER has the small snapshots

SPDX-License-Identifier: MIT
"""
import collections
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile

tapedeck, folder = sys.argv[1:3]
BASE = 0x7f0000000000
M = 1 << 20
LINEAR = ('/usr/lib/python3/dist-packages/torch/nn/functional.py', 2251, 'linear')
MALLOC = ('??', 0, 'c10::cuda::CUDACachingAllocator::malloc')
# One line of the program allocates all: what differs is around it, or within.
SHARED = ('/src/net/layers.py', 30, 'forward')
ENCODER, DECODER, MAIN = (('/src/net/model.py', 12, 'encode'), ('/src/net/model.py', 20, 'decode'),
                          ('/src/train.py', 40, '<module>'))
STACKS = [[MALLOC, LINEAR, SHARED, ENCODER, MAIN], [MALLOC, LINEAR, SHARED, DECODER, MAIN],
          [MALLOC, LINEAR, SHARED, DECODER], [LINEAR, SHARED, ENCODER, MAIN],
          [('/src/train.py', 7, 'load')], []]


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def frames(stack):
    return [{'filename': f, 'line': line, 'name': name} for f, line, name in stack]


def write(path, blocks, trace=()):
    """Blocks: (device, address, size, stack) without overlaps."""
    segments = []
    for device in sorted({b[0] for b in blocks}):
        at, rows = BASE, []
        for _, address, size, stack in sorted(b for b in blocks if b[0] == device):
            if address > at:
                rows.append({'address': at, 'size': address - at, 'requested_size': 0, 'state': 'inactive',
                             'frames': []})
            rows.append({'address': address, 'size': size, 'requested_size': size, 'state': 'active_allocated',
                         'frames': frames(STACKS[stack])})
            at = address + size
        segments.append({'device': device, 'address': BASE, 'total_size': at - BASE, 'stream': 0, 'blocks': rows,
                         'segment_type': 'large', 'segment_pool_id': (0, 0), 'frames': []})
    with open(path, 'wb') as file:
        pickle.dump({'segments': segments, 'device_traces': list(trace)}, file, 4)


def key(stack):
    """A stack as JSON gives it: what is not known is left out."""
    return tuple((name, '' if file == '??' else file, line) for file, line, name in stack)


def read_stack(said, row):
    stack = said['stacks'][row['stack']] if 'stack' in row else []
    return tuple((f.get('function', ''), f.get('file', ''), f.get('line', 0))
                 for f in (said['frames'][i] for i in stack))


def check_blocks():
    """Of the small snapshot, which has blocks from before the trace and from within it."""
    path = os.path.join(folder, 'small-4.pickle')
    with open(path, 'rb') as file:
        snapshot = pickle.load(file)
    expected = {(s['device'], b['address']): key((f['filename'], f['line'], f['name']) for f in b['frames'])
                for s in snapshot['segments'] for b in s['blocks'] if b['state'] != 'inactive'}
    said = json.loads(run('show', path, '--view', 'blocks', '--format', 'json').stdout)
    got = {(int(b['device'].split(':')[1]), b['address']): read_stack(said, b) for b in said['blocks']}
    assert got == expected, (got, expected)
    assert len(said['stacks']) == len(set(map(tuple, said['stacks']))) == len(set(expected.values()))
    assert len(said['frames']) == len({frame for stack in expected.values() for frame in stack})
    print('ok 1 - each block has the stack of the pickle, and JSON has each stack and frame once')

    block = max(said['blocks'], key=lambda b: len(read_stack(said, b)))
    texts = [run('show', path, '--view', 'blocks', '--node', node).stdout
             for node in (block['id'], hex(block['address']), hex(block['address'] + 5))]
    assert texts[0] == texts[1] == texts[2]
    lines = texts[0].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('stack '))
    told = [line.strip() for line in lines[at + 1:]]
    assert told == [f'{name} ({file}:{line})' if line else name for name, file, line in read_stack(said, block)], told
    one = json.loads(run('show', path, '--view', 'blocks', '--node', block['id'], '--format', 'json').stdout)
    assert [b['id'] for b in one['blocks']] == [block['id']] and len(one['stacks']) == 1
    assert 'no block of that node' in run('show', path, '--view', 'blocks', '--node', '0' * 15 + '1', status=2).stderr
    print('ok 2 - one block is printed with its whole stack, by its id and by an address in it')

    plain = run('show', path, '--view', 'blocks').stdout.splitlines()
    assert len(plain) == 1 + len(expected) and 'train.py:12' in '\n'.join(plain), plain
    print('ok 3 - the table says the place of each block')


def expected_diff(a, b):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for blocks, other, at in (b, a, 0), (a, b, 2):
        for block in set(blocks) - set(other):
            row = rows[f'device:{block[0]}', key(STACKS[block[3]])]
            row[at] += 1
            row[at + 1] += block[2]
    return dict(rows)


def check_diff(scratch):
    one, two = (os.path.join(scratch, n) for n in ('a.pickle', 'b.pickle'))
    chance = random.Random(11)
    for round in range(4):
        slots = [(d, BASE + i * 65536) for i in range(120) for d in range(2)]

        def fresh(slot):
            return slot + (512 * chance.randint(1, 100), chance.randrange(len(STACKS)))
        a = [fresh(s) for s in slots if chance.random() < 0.5]
        b = [x for x in a if chance.random() < 0.7]
        taken = {x[:2] for x in b}
        b += [fresh(s) for s in slots if s not in taken and chance.random() < 0.3]
        write(one, a)
        write(two, b)
        said = json.loads(run('diff', one, two, '--json', status=1).stdout)
        assert said['by_stack'] is True
        got = {(r['device'], read_stack(said, r)): [r['new'], r['new_bytes'], r['gone'], r['gone_bytes']]
               for r in said['places']}
        assert len(got) == len(said['places']) and got == expected_diff(a, b), (got, expected_diff(a, b))
    print('ok 4 - what is new and gone by stack is what the pickles say, four times, on two devices')

    write(one, [(0, BASE, M, 0)])
    write(two, [(0, BASE, M, 0), (0, BASE + 2 * M, M, 0), (0, BASE + 4 * M, 3 * M, 1), (0, BASE + 8 * M, M, 2),
                (0, BASE + 10 * M, M, 4)])
    lines = run('diff', one, two, status=1).stdout.splitlines()
    assert lines[0] == '1.05 MB, then 7.34 MB: 4 blocks new, 6.29 MB; 0 gone, 0 B', lines
    rows = {lines[i].split('· ')[1] + '|' + (lines[i + 1].strip() if i + 1 < len(lines) else ''): lines[i].split()[:3]
            for i in range(2, len(lines)) if '· ' in lines[i]}
    text = '\n'.join(lines)
    assert rows['/src/net/layers.py:30|through encode (/src/net/model.py:12)'][:2] == ['1', '1.05'], text
    assert rows['/src/net/layers.py:30|through <module> (/src/train.py:40)'][:2] == ['1', '3.15'], text
    assert rows['/src/net/layers.py:30|through no other call'][:2] == ['1', '1.05'], text
    assert text.count('/src/train.py:7') == 1 and text.count('through') == 3, text
    whole = run('diff', one, two, '--stacks', status=1).stdout
    assert whole.count('c10::cuda::CUDACachingAllocator::malloc') == 3 and 'through' not in whole, whole
    print('ok 5 - of one line with several callers each is told apart, and --stacks prints all of it')


print('1..5')
with tempfile.TemporaryDirectory() as scratch:
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')
    check_blocks()
    check_diff(scratch)
