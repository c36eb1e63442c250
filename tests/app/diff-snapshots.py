"""`tapedeck diff` of two memory snapshots: what is new and what is gone by place is what a second reading of
the pickles comes to.

    diff-snapshots.py TAPEDECK

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

tapedeck = sys.argv[1]
PLACES = [('/src/net/train.py', 12), ('/src/net/train.py', 40), ('/src/net/model.py', 7), None]


def run(*args, status):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def block(address, size, place):
    return {'address': address, 'size': size, 'requested_size': size, 'state': 'active_allocated',
            'frames': [{'filename': place[0], 'line': place[1], 'name': 'f'}] if place else []}


def write(path, blocks):
    at, rows = 0x7f0000000000, []
    for address, size, place in sorted(blocks, key=lambda b: b[0]):
        if address > at:
            rows.append({'address': at, 'size': address - at, 'requested_size': 0, 'state': 'inactive',
                         'frames': []})
        rows.append(block(address, size, place))
        at = address + size
    total = at - 0x7f0000000000
    snapshot = {'segments': [{'device': 0, 'address': 0x7f0000000000, 'total_size': total,
                              'allocated_size': sum(b[1] for b in blocks),
                              'active_size': sum(b[1] for b in blocks), 'stream': 0, 'blocks': rows,
                              'segment_type': 'large', 'segment_pool_id': (0, 0), 'frames': []}],
                'device_traces': []}
    with open(path, 'wb') as file:
        pickle.dump(snapshot, file, 4)


def expected(a, b):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for blocks, other, at in (b, a, 0), (a, b, 2):
        for key in set(blocks) - set(other):
            place = f'{key[2][0]}:{key[2][1]}' if key[2] else '?'
            rows[place][at] += 1
            rows[place][at + 1] += key[1]
    return dict(rows)


with tempfile.TemporaryDirectory() as scratch:
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')
    one, two = (os.path.join(scratch, n) for n in ('a.pickle', 'b.pickle'))
    chance = random.Random(7)
    for round in range(5):
        slots = [0x7f0000000000 + i * 65536 for i in range(200)]
        a = [(s, 512 * chance.randint(1, 100), chance.choice(PLACES)) for s in slots if chance.random() < 0.5]
        b = [x for x in a if chance.random() < 0.7]
        taken = {x[0] for x in b}
        b += [(s, 512 * chance.randint(1, 100), chance.choice(PLACES)) for s in slots
              if s not in taken and chance.random() < 0.3]
        write(one, a)
        write(two, b)
        said = json.loads(run('diff', one, two, '--json', status=1).stdout)
        rows = {r['place']: [r['new'], r['new_bytes'], r['gone'], r['gone_bytes']] for r in said['places']}
        assert rows == expected(a, b), (rows, expected(a, b))
        assert (said['bytes_a'], said['bytes_b']) == (sum(x[1] for x in a), sum(x[1] for x in b))
        for r in said['places']:
            assert r['bytes_b'] - r['bytes_a'] == r['new_bytes'] - r['gone_bytes']
    print('ok 1 - what is new and gone by place is what the pickles say, five times')
    text = run('diff', one, two, status=1).stdout
    grown = [r['bytes_b'] - r['bytes_a'] for r in said['places']]
    assert grown == sorted(grown, reverse=True) and said['places'][0]['place'] in text.splitlines()[2], text
    print('ok 2 - what grew most comes first')
    same = run('diff', one, one, status=0).stdout
    assert 'the same blocks' in same, same
    assert json.loads(run('diff', one, one, '--json', status=0).stdout)['same'] is True
    print('ok 3 - a snapshot has the same blocks as itself')
    trace = os.path.join(scratch, 'c.json')
    with open(trace, 'w') as file:
        file.write('[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]')
    assert 'with another one only' in run('diff', one, trace, status=2).stderr
    assert 'has no layers' in run('diff', one, two, '--by', 'layer', status=2).stderr
    print('ok 4 - with anything else it is not compared\n1..4')
